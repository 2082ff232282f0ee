"""Training functions for testing backends: tiny, without any library, each with one habit."""

from __future__ import annotations

import os
import time

from shoestring.trial import Trial


def train(trial: Trial) -> None:
    """Well behaved: goes on from its checkpoint, reports, saves. The loss tells how many steps were really trained."""
    trained = int((trial.checkpoint / "trained").read_text()) if trial.checkpoint else 0
    for _ in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        trained += 1
        trial.report(loss=1.0 / trained, trained=trained)
        with trial.save() as folder:
            if folder:
                (folder / "trained").write_text(str(trained))


def forgetful(trial: Trial) -> None:
    """Never saves."""
    for step in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        trial.report(loss=1.0 / step)


def hung(trial: Trial) -> None:
    """Reports one step, then never comes back, and leaves a child behind that would outlive it."""
    trial.report(loss=1.0)
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    time.sleep(600)


def broken(trial: Trial) -> None:
    for step in trial.steps():
        trial.report(loss=1.0)
        if step == 2:
            raise ValueError("the loss went through the roof")


def silent(trial: Trial) -> None:
    """Reports, but not what the study is about."""
    for _ in trial.steps():
        trial.report(accuracy=0.5)


def plain(trial: Trial) -> None:
    """Knows nothing of steps."""
    assert trial.id
