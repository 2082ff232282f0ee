"""`shoestring export`: write the trials or the results of a bag as a table."""

from __future__ import annotations

from pathlib import Path

import click

from shoestring.cli.options import NAME, STORE


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
        click.echo(as_text(study, chosen), nl=False)
        return
    noun = "jobs" if study.spec.kind == "bag" else "trials"
    click.echo(f"wrote {export(study, output, chosen)} {noun} to {output}")
