"""`shoestring report`: results and receipt, on the terminal or as an HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from shoestring.cli.options import JSON, NAME, STORE
from shoestring.cli.output import about, echo, next_commands, say_json, show_study


@click.command()
@NAME
@STORE
@JSON
@click.option(
    "--html", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML page instead."
)
@click.option("--log", is_flag=True, help="Also print every decision and its reason.")
def command(name: str | None, store: str | None, as_json: bool, html: Path | None, log: bool) -> None:
    """Show the best trial and the receipt of the run NAME, finished or not.

    \b
      shoestring report
      shoestring report digits --html digits.html
      shoestring report digits --json | jq .best
    """
    from shoestring.report.study import Study
    from shoestring.runs.folder import find_run

    study = Study.in_folder(find_run(name, store))
    if html is not None:
        from shoestring.report.html import write_page

        write_page(study, html)
        echo(f"wrote {html}")
        return
    if as_json:
        say_json(study.to_plain())
        return
    echo(f"{study.name}: {study.status}{f', {study.status_detail}' if study.status_detail else ''}")
    show_study(study)
    if log:
        echo("")
        echo(str(study.log()))
    best = study.best
    next_commands(
        f"shoestring why {0 if best is None else best.number} {about(study, store)}",
        f"shoestring export {about(study, store)} -o trials.csv",
    )
