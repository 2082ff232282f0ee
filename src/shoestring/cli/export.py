"""`shoestring export`: write the trials or the results of a bag as a table."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from shoestring.cli.options import NAME, STORE
from shoestring.cli.output import echo


@click.command()
@NAME
@STORE
@click.option(
    "--format", "kind", type=click.Choice(["csv", "json", "parquet"]), help="[default: from the file's suffix]"
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="[default: standard output]")
def command(name: str | None, store: str | None, kind: str | None, output: Path | None) -> None:
    """Write one record per trial of the run NAME: configuration, value, status, machines, time, cost.

    For a bag, one record per job: parameters, status, last reported metrics, last line printed, attempts,
    preemptions, time, cost.

    \b
      shoestring export digits -o trials.csv
      shoestring export sweep -o results.csv
      shoestring export digits --format json | jq '.trials[].value'
    """
    from shoestring.report.export import as_text, export, format_for
    from shoestring.report.study import Study
    from shoestring.runs.folder import find_run

    study = Study.in_folder(find_run(name, store))
    chosen = format_for(output, kind)
    if output is None:
        text = as_text(study, chosen)
        if sys.stdout.isatty():
            echo(text.rstrip("\n"))
        else:
            click.echo(text, nl=False, color=True)  # as -o writes it: by default a pipe would get it without escapes
        return
    noun = "jobs" if study.spec.kind == "bag" else "trials"
    echo(f"wrote {export(study, output, chosen)} {noun} to {output}")
