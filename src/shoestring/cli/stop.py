"""`shoestring stop`: stop a run for good, from any shell."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from shoestring.cli.options import NAME, STORE
from shoestring.cli.output import about, echo, next_commands, show_study

if TYPE_CHECKING:
    from shoestring.report.study import Study
    from shoestring.runs.folder import RunFolder

PATIENCE_S = 60.0
LOOK_EVERY_S = 0.2


@click.command()
@NAME
@STORE
def command(name: str | None, store: str | None) -> None:
    """Stop the run NAME for good: trials are saved, machines are released, and the receipt is final.

    Works from any shell: a running controller receives the request; without one, this command does it. To pause
    instead, press Ctrl-C where it runs.
    """
    from shoestring.report.study import Study
    from shoestring.runs.folder import find_run

    folder = find_run(name, store)
    study = Study.in_folder(folder)
    if study.state.concluded:
        echo(f"{study.name} is over already ({study.state.ending})")
    else:
        _stop(folder, study)
        if not study.refresh().state.concluded:
            echo(f"{study.name} is still winding down; its machines end at the latest when their prepaid time is over")
    show_study(study)
    next_commands(f"shoestring report {about(study, store)}", f"shoestring export {about(study, store)} -o trials.csv")


def _stop(folder: RunFolder, study: Study) -> None:
    """Wait for its controller to stop it; do it here as soon as there is none, also if it dies while this waits."""
    from shoestring.errors import JournalTaken
    from shoestring.runs.launch import conclude
    from shoestring.world.live.user_requests import post_request

    requested = False
    until = time.monotonic() + PATIENCE_S
    while not study.refresh().state.concluded and time.monotonic() < until:
        if requested and folder.is_driven():
            time.sleep(LOOK_EVERY_S)
            continue
        try:
            conclude(folder)
        except JournalTaken:
            if not requested:
                post_request(folder.path, "stop")
                echo(f"stop requested from the controller of {study.name}", err=True)
                requested = True
            time.sleep(LOOK_EVERY_S)
