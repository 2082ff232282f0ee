"""What the trials of a storm compute: a chain of numbers, in which every step needs the one before it.

A trial that resumes from a wrong checkpoint, skips a step or does one twice reports other numbers. Standard library
only: also run as a program, `python work.py SETTINGS X`.
"""

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

SAVE_EVERY = 3


def following(x, state, step):
    """The state after this step."""
    return (state * 0.75 + x / step + 0.1) % 1.0


def loss(state, step):
    return abs(state - 0.3) + 1.0 / step


def undisturbed(x, steps):
    """The loss at every step of a trial that nothing disturbs."""
    state, losses = 0.0, {}
    for step in range(1, steps + 1):
        state = following(x, state, step)
        losses[step] = loss(state, step)
    return losses


class Alone:
    """No trial may run twice at a time: each attempt holds the trial's lock while its process lives. It also starts a
    child and a daemon that would outlive it."""

    def __init__(self, settings, x):
        self._settings = settings
        self._lock = os.open(Path(settings["store"]) / f"{x!r}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            with (Path(settings["store"]) / "doubled").open("a") as file:
                file.write(f"the trial of {x} is run by process {os.getpid()} and by another\n")
        for daemon in (False, True):
            if os.fork() == 0:
                if daemon:
                    os.setsid()
                os.execlp("sleep", "sleep", "600")

    def take_a_step(self, step):
        """The last step of every trial lasts until the storm is over: there is always something to hit."""
        time.sleep(self._settings["step_s"])
        while step == self._settings["steps"] and not (Path(self._settings["store"]) / "may_end").exists():
            time.sleep(0.05)


def train(trial, settings):
    """As a function."""
    alone = Alone(settings, trial["x"])
    state = json.loads((trial.checkpoint / "state").read_text()) if trial.checkpoint else 0.0
    for step in trial.steps():
        alone.take_a_step(step)
        state = following(trial["x"], state, step)
        trial.report(loss=loss(state, step))
        with trial.save() as folder:
            if folder:
                (folder / "state").write_text(json.dumps(state))


def main():
    settings, x = json.loads(Path(sys.argv[1]).read_text()), float(sys.argv[2])
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append("to stop"))
    alone = Alone(settings, x)
    saved = os.environ["SHOESTRING_CHECKPOINT"]
    done, state = json.loads(Path(saved, "state").read_text()) if saved else (0, 0.0)
    until = int(os.environ["SHOESTRING_UNTIL_STEP"])
    for step in range(done + 1, until + 1):
        alone.take_a_step(step)
        state = following(x, state, step)
        print(json.dumps({"step": step, "loss": loss(state, step)}), flush=True)
        if told or step % SAVE_EVERY == 0 or step == until:
            folder = Path(os.environ["SHOESTRING_SAVE_TO"], f"state-{step}")
            folder.mkdir()
            (folder / "state").write_text(json.dumps((step, state)))
            print(json.dumps({"saved": folder.name, "step": step}), flush=True)
        if told:
            sys.exit(128 + signal.SIGTERM)  # it is not done


if __name__ == "__main__":
    main()
