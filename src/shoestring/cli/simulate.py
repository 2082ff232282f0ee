"""`shoestring simulate`: one simulation of a study, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shoestring.cli.options import JSON, overrides, run_options
from shoestring.cli.output import about, echo, next_commands, say_json, show_study


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@run_options
@click.option(
    "--like", metavar="NAME", help="Take learning curves and speed from this earlier run.  [default: this run, if any]"
)
@click.option("--seconds-per-step", type=float, help="Duration of a step on four cores.")
@click.option("--checkpoint-gb", type=float, help="Size of a checkpoint in GB.")
@JSON
def command(
    file: Path,
    as_json: bool,
    like: str | None,
    seconds_per_step: float | None,
    checkpoint_gb: float | None,
    **options: Any,
) -> None:
    """Simulate FILE in virtual time, with prices and preemptions of a market: cost, time, decisions. No code is run.

    Learning curves come from an earlier run of the study, or from --like; otherwise they are guessed, so trust cost and
    time but not the metric. The result is stored as NAME-simulated, for report, why and export.

    \b
      shoestring simulate study.py --budget 20 --deadline 6h --max-machines 64 --trials 256
    """
    from shoestring.runs.cli_context import CliContext
    from shoestring.runs.study_file import run_file

    fields = overrides(options)
    simulation = {"like": like, "seconds_per_step": seconds_per_step, "checkpoint_gb": checkpoint_gb}
    if given := {name: value for name, value in simulation.items() if value is not None}:
        fields["simulate"] = given
    context = CliContext(overrides=fields, mode="simulate", say=lambda text: echo(text, err=True))
    studies = run_file(file, context)
    if as_json:
        say_json(studies[0].to_plain() if len(studies) == 1 else [study.to_plain() for study in studies])
        return
    for study in studies:
        show_study(study)
    next_commands(f"shoestring report {about(studies[-1], options['store'])} --log", f"shoestring run {file}")
