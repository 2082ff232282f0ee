"""`shoestring why`: every event and decision about a trial, with reasons."""

from __future__ import annotations

import click

from shoestring.cli.options import JSON, NAME, STORE
from shoestring.cli.output import echo, say_json


@click.command()
@click.argument("trial", type=int)
@NAME
@STORE
@JSON
def command(trial: int, name: str | None, store: str | None, as_json: bool) -> None:
    """Explain every decision about trial number TRIAL of the run NAME. Times count from the start of the run.

    \b
      shoestring why 17
      shoestring why 17 digits
    """
    from shoestring.report.study import Study
    from shoestring.runs.folder import find_run

    study = Study.in_folder(find_run(name, store))
    explanation = study.why(trial)
    if as_json:
        say_json([{"since_start_s": line.since_start_s, "text": line.text} for line in explanation])
        return
    row = study.trials[trial]
    echo(f"trial {trial} of {study.name}: {row.status} at step {row.step}")
    echo(str(explanation))
