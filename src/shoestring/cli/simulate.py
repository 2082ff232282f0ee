"""`shoestring simulate`: the same study in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shoestring.cli.options import JSON, overrides, run_options
from shoestring.cli.output import about, next_commands, say_json, show_study


@click.command(short_help="The same study in virtual time, for nothing.")
@click.argument("file", type=click.Path(path_type=Path))
@run_options
@click.option("--like", metavar="NAME", help="Trials behave as in this earlier run.  [default: this run's, if any]")
@click.option("--seconds-per-step", type=float, help="How long a step takes on four cores.")
@click.option("--checkpoint-gb", type=float, help="How large a checkpoint is.")
@JSON
def command(
    file: Path,
    as_json: bool,
    like: str | None,
    seconds_per_step: float | None,
    checkpoint_gb: float | None,
    **options: Any,
) -> None:
    """What would FILE cost and how long would it take? Prices and revocations of a market, nothing really run.

    Learning curves come from an earlier run of the study, or from --like; else they are guessed, and good for money and
    time only. The result is kept as NAME-simulated, for report, why and export.

    \b
      shoestring simulate study.py --budget 20 --deadline 6h --max-machines 64 --trials 256
    """
    from shoestring.runs.cli_context import CliContext
    from shoestring.runs.study_file import run_file

    said = overrides(options)
    asked = {"like": like, "seconds_per_step": seconds_per_step, "checkpoint_gb": checkpoint_gb}
    if given := {name: value for name, value in asked.items() if value is not None}:
        said["simulate"] = given
    prompt = CliContext(overrides=said, mode="simulate", say=lambda text: click.echo(text, err=True))
    studies = run_file(file, prompt)
    if as_json:
        say_json(studies[0].to_plain() if len(studies) == 1 else [study.to_plain() for study in studies])
        return
    for study in studies:
        show_study(study)
    next_commands(f"shoestring report {about(studies[-1], options['store'])} --log", f"shoestring run {file}")
