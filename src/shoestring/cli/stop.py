"""`shoestring stop`: stop a run for good, from any shell."""

from __future__ import annotations

import time

import click

from shoestring.cli.options import NAME, STORE
from shoestring.cli.output import about, next_commands, show_study

PATIENCE_S = 60.0


@click.command()
@NAME
@STORE
def command(name: str | None, store: str | None) -> None:
    """Stop the run NAME for good: trials are saved, machines are released, and the receipt is final.

    Works from any shell: a running controller receives the request; without one, this command does it. To pause
    instead, press Ctrl-C where it runs.
    """
    from shoestring.errors import JournalTaken
    from shoestring.report.study import Study
    from shoestring.runs.folder import find_run
    from shoestring.runs.launch import conclude
    from shoestring.world.live.user_requests import post_request

    folder = find_run(name, store)
    study = Study.in_folder(folder)
    if study.state.concluded:
        click.echo(f"{study.name} is over already ({study.state.ending})")
    else:
        try:
            conclude(folder)
        except JournalTaken:
            post_request(folder.path, "stop")
            click.echo(f"stop requested from the controller of {study.name}", err=True)
            until = time.monotonic() + PATIENCE_S
            while not study.refresh().state.concluded and time.monotonic() < until:
                time.sleep(0.2)
        if not study.refresh().state.concluded:
            click.echo(
                f"{study.name} is still winding down; its machines end at the latest when their prepaid time is over"
            )
    show_study(study)
    next_commands(f"shoestring report {about(study, store)}", f"shoestring export {about(study, store)} -o trials.csv")
