"""The demo: a real study on machines that are preempted, then the same study simulated on 64 machines."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from shoestring.api import simulate, tune
from shoestring.demo.digits import SPACE, train
from shoestring.report.study import Study
from shoestring.runs.folder import run_folder
from shoestring.runs.progress_line import LiveLine, line_of
from shoestring.runs.sim_workload import recorded
from shoestring.storage.journal.sqlite import SqliteJournal

NAME = "demo"
HOUR_S = 5.0
"""Real seconds a market hour takes."""
MACHINES = ("c6i.2xlarge", "m6i.2xlarge", "r5.2xlarge")
MARKET = {"kind": "modern", "machines": MACHINES, "interruptions_per_hour": 0.5, "speedup": 3600 / HOUR_S}

Say = Callable[[str], None]


def demo(say: Say, store: str | Path | None = None) -> Study:
    """Run both parts and print their results; returns the real study."""
    say(
        "A study of 24 trials on real processes, on machines that will be preempted "
        f"(1 market hour = {HOUR_S:.0f} s): classify noisy digits.\n"
    )
    _clear(store)
    study = tune(
        train,
        name=NAME,
        space=SPACE,
        minimize="error",
        trials=24,
        max_steps=81,
        budget="$5",
        deadline="10h",
        market=MARKET,
        store=store,
        max_machines=4,
        slice_s=7200,
        wind_down_s=900,
        options={"grace_steps": 9, "every_s": 1800},
    )
    _show(study, say)
    say(
        "\nThe same study in virtual time, at the scale of a cloud: 256 trials on up to 64 machines, "
        "with the learning curves recorded above.\n"
    )
    began = time.perf_counter()
    larger = simulate(
        workload=recorded(study, study.spec),
        space=SPACE,
        minimize="error",
        trials=256,
        max_steps=81,
        budget="$20",
        deadline="6h",
        market={**MARKET, "speedup": 1.0},
        name=f"{NAME}-cloud",
        max_machines=64,
        options={"grace_steps": 9, "every_s": 1800},
    )
    took_s = time.perf_counter() - began
    _show(larger, say)
    say(f"({larger.state.seq:,} events in {took_s:.1f} s)\n")
    return study


def _show(study: Study, say: Say) -> None:
    if not LiveLine().shown:  # on a terminal it is there already
        say(f" {line_of(study.state)}")
    say(f" best  {study.best}\n")
    say(str(study.receipt))


def _clear(store: str | Path | None) -> None:
    """A finished demo is deleted for the next one; an interrupted one is resumed."""
    folder = run_folder(NAME, store)
    if folder.exists() and Study.in_folder(folder).state.concluded:
        with closing(SqliteJournal.open(folder.journal)):
            shutil.rmtree(folder.path)
