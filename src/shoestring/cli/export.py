"""`shoestring export`: the trials as a table in a file."""

from __future__ import annotations

from pathlib import Path

import click

from shoestring.cli.options import NAME, STORE


@click.command(short_help="Trials or results as CSV, JSON or parquet.")
@NAME
@STORE
@click.option("--format", "kind", type=click.Choice(["csv", "json", "parquet"]), help="[default: by the file's name]")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="[default: standard output]")
def command(name: str | None, store: str | None, kind: str | None, output: Path | None) -> None:
    """One record per trial of the run NAME: configuration, value, status, machines, time, cost.

    Of a bag, one per job: its parameters, status, everything it reported last, the last line it printed, attempts,
    revocations, time, cost.

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
    kind_of_rows = "jobs" if study.spec.kind == "bag" else "trials"
    click.echo(f"wrote {export(study, output, chosen)} {kind_of_rows} to {output}")
