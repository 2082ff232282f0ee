"""`shoestring run`: run or resume a study or a bag."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoestring.cli.main import BAD_INPUT
from shoestring.cli.options import JSON, PLACE, SPEEDUP, overrides, run_options
from shoestring.cli.output import about, echo, next_commands, say_json, show_study

if TYPE_CHECKING:
    from shoestring.report.study import Study


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@run_options
@PLACE
@SPEEDUP
@JSON
def command(file: Path, as_json: bool, **options: Any) -> None:
    """Run what FILE describes: a Python file that calls tune() or run_bag(), or a .yaml or .toml spec.

    Options override the file. After an interruption, run the same command again to resume; with a larger --budget or a
    later --deadline it resumes with those.

    \b
      shoestring run study.py
      shoestring run study.py --budget 20 --deadline 6h --market modern --speedup 900
      shoestring run examples/command.yaml --trials 8
    """
    from shoestring.backends.registry import find_place
    from shoestring.runs.cli_context import CliContext
    from shoestring.runs.study_file import run_file

    fields = overrides(options)
    if "on" in fields and "market" not in fields and find_place(fields["on"]).is_this_computer:
        fields |= {"market": "free", "speedup": 1.0}
    context = CliContext(overrides=fields, say=lambda text: echo(text, err=True))
    show_outcome(run_file(file, context), options["store"], as_json)


def show_outcome(studies: Sequence[Study], store: str | None, as_json: bool) -> None:
    """Print the results as text or JSON; exit code 2 if there are none."""
    if as_json:
        say_json(studies[0].to_plain() if len(studies) == 1 else [study.to_plain() for study in studies])
    else:
        for study in studies:
            show_study(study)
        _suggest_next(studies[-1], store)
    if not all(_has_result(study) for study in studies):
        raise click.exceptions.Exit(BAD_INPUT)


def _suggest_next(study: Study, store: str | None) -> None:
    best, name = study.best, about(study, store)
    look = f"export {name} -o results.csv" if study.spec.kind == "bag" else f"report {name} --html report.html"
    next_commands(f"shoestring {look}", f"shoestring why {0 if best is None else best.number} {name}")


def _has_result(study: Study) -> bool:
    """A study has a best trial, a bag a finished job; otherwise the reason is printed to stderr."""
    state = study.state
    if state.best is not None or (study.spec.kind == "bag" and state.by_status["finished"]):
        return True
    answer = study.answer
    if answer is not None and answer.feasible:
        return True
    reason = answer.why if answer is not None and answer.why else study.without_best
    echo(f"shoestring: {study.name} ended without a result: {reason}", err=True)
    if state.by_status["failed"]:
        where = f" in {study.folder.path}/segments/*/log.txt" if study.folder is not None else ""
        failed = state.by_status["failed"]
        echo(f"  {failed} {'trial' if failed == 1 else 'trials'} failed; the output is{where}", err=True)
    return False
