"""`shoestring status`: progress of runs, read from their journals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoestring.cli.options import JSON, NAME, STORE
from shoestring.cli.output import echo, next_commands, say_json

if TYPE_CHECKING:
    from shoestring.report.study import Study


@click.command()
@NAME
@STORE
@JSON
def command(name: str | None, store: str | None, as_json: bool) -> None:
    """Show progress, cost, time and preemptions of the run NAME, or of all runs, one line each.

    \b
      shoestring status
      shoestring status digits --json
    """
    from shoestring.report.study import Study
    from shoestring.runs.folder import find_run, known_runs
    from shoestring.runs.progress_line import line_of

    folders = [find_run(name, store)] if name else known_runs(store) or [find_run(None, store)]
    studies = [Study.in_folder(folder) for folder in folders]
    if as_json:
        rows = [{key: value for key, value in study.to_plain().items() if key != "trials"} for study in studies]
        say_json(rows[0] if name else rows)
        return
    for study in studies:
        _look_up_prices(study)
        echo(f"{study.folder.name if study.folder else study.name}: {study.status} · {line_of(study.state)}")
        if study.status_detail:
            echo(f"  {study.status_detail}")
        if study.state.concluded and study.without_best:
            echo(f"  without a result: {study.without_best}")
        if (unspent := study.unspent) is not None:
            echo(f"  {unspent}")
        for warning in study.receipt.warnings:
            echo(f"  warning: {warning}")
    next_commands("shoestring report", "shoestring why TRIAL", "shoestring stop")


def _look_up_prices(study: Study) -> None:
    """Machines that still run are not billed yet: their cost so far is computed from the prices of their market."""
    from shoestring.errors import ShoestringError
    from shoestring.runs.drive import read_site

    if study.folder is None or not study.state.leases:
        return
    try:
        market = read_site(study.folder).market
        study.state.feed = market.open_recorded(study.folder.path, study.spec.deadline_s).feed
    except ShoestringError:
        pass  # a price file that was moved: only billed cost is shown
