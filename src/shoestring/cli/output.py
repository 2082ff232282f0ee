"""What commands print: results, and the commands to type next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from shoestring.units import show_text

if TYPE_CHECKING:
    from shoestring.report.receipt import Receipt
    from shoestring.report.study import Study


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines of text. Some of it is a trial's own: a terminal must show its escape sequences, not obey them."""
    click.echo(show_text(text, keep="\n"), err=err)


def say_json(plain: object) -> None:
    from shoestring.report.export import to_json

    echo(to_json(plain))


def next_commands(*commands: str) -> None:
    """The useful commands after this one."""
    echo(f"next: {' · '.join(commands)}")


def aligned(lines: Sequence[Sequence[str]], to_the_left: int = 1) -> list[str]:
    """Cells in columns: the first `to_the_left` are text, left-aligned; the others are numbers, right-aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index < to_the_left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def show_study(study: Study) -> None:
    """The outcome for people: best trial, or jobs done, then the receipt."""
    if study.spec.kind == "bag" and study.spec.metric is None:
        echo(_jobs_done(study))
    else:
        best = study.best
        echo(study.without_best if best is None else f"best  {best}")
        if study.spec.constraints or study.spec.fractions:
            _show_answer(study)
    if _got_anywhere(study):
        echo("")
        _show_receipt(study.receipt)
    if (unspent := study.unspent) is not None:
        echo(str(unspent))


def _got_anywhere(study: Study) -> bool:
    """Was anything paid, or any trial trained? Otherwise a receipt of zeros would only hide the error after it."""
    state = study.state
    return bool(
        state.spent_usd or state.leases or state.by_status["finished"] or any(job.step for job in state.jobs.values())
    )


def _show_answer(study: Study) -> None:
    """The recommended configuration, and one line per constraint: whether it is satisfied."""
    answer = study.answer
    if answer is None:
        return
    from shoestring.report.trials import show_config
    from shoestring.units import show_number

    known = "measured" if answer.measured else "predicted"
    echo(f"use   {show_config(answer.config)}: {study.metric} {show_number(answer.objective)} ({known})")
    for outlook in answer.constraints:
        echo(f"      {outlook}")
    if answer.why:
        echo(f"      {answer.why}")


def _jobs_done(study: Study) -> str:
    status = study.state.by_status
    failed = f", {status['failed']} failed" if status["failed"] else ""
    return f"{status['finished']} of {study.spec.trials} jobs finished{failed}"


def _show_receipt(receipt: Receipt) -> None:
    """Bold and colours only on a terminal; plain text where a program may read it."""
    if not sys.stdout.isatty():
        echo(str(receipt))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from shoestring.report.receipt import TITLES

    table = Table(box=None, pad_edge=False, title=None, show_footer=True)
    *rows, total = receipt.cells()
    for index, (title, foot) in enumerate(zip(TITLES, total, strict=True)):
        table.add_column(title, foot, justify="left" if index < 2 else "right", footer_style="bold")
    for row in rows:
        table.add_row(*(Text(show_text(cell)) for cell in row))
    console = Console(highlight=False)
    console.print(table)
    for note in receipt.notes():
        console.print(show_text(note), markup=False)


def about(study: Study, store: str | None) -> str:
    """The arguments that name this run in another command."""
    place = f" --store {shlex.quote(store)}" if store else ""
    return f"{shlex.quote(study.name if study.folder is None else study.folder.name)}{place}"
