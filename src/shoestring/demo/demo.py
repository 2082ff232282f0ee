"""The demo: a real study on machines that are preempted, then the same study simulated on 64 machines."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from shoestring.api import simulate, tune
from shoestring.demo.digits import SPACE, train
from shoestring.report.study import Study
from shoestring.runs.drive import read_site
from shoestring.runs.folder import run_folder
from shoestring.runs.progress_line import LiveLine, line_of
from shoestring.runs.sim_workload import recorded
from shoestring.storage.journal.sqlite import SqliteJournal

NAME = "demo"
TRIALS = 24
HOUR_S = 5.0
"""Real seconds a market hour takes on a computer with nothing else to do."""
MOST_SLOWER = 20.0
MAX_MACHINES = 4
MACHINES = ("c6i.2xlarge", "m6i.2xlarge", "r5.2xlarge")
MARKET = {"kind": "modern", "machines": MACHINES, "interruptions_per_hour": 0.5}

SAMPLE = "from shoestring.demo.digits import digits; digits(4000, seed=1)"
"""What every trial does first."""
SAMPLE_S = 0.7
"""How long that takes for as many trials as there are machines, on two cores with nothing else to do."""

Say = Callable[[str], None]


def demo(say: Say, store: str | Path | None = None) -> Study:
    """Run both parts and print their results; returns the real study."""
    _clear(store)
    hour_s = _hour_s(store)
    say(
        f"A study of {TRIALS} trials on real processes, on machines that will be preempted "
        f"(1 market hour = {hour_s:.0f} s): classify noisy digits.\n"
    )
    if hour_s > 1.5 * HOUR_S:
        say(f"This computer is busy or slow, so the market is slowed down {hour_s / HOUR_S:.0f} times.\n")
    study = tune(
        train,
        name=NAME,
        space=SPACE,
        minimize="error",
        trials=TRIALS,
        max_steps=81,
        budget="$5",
        deadline="10h",
        market={**MARKET, "speedup": 3600 / hour_s},
        store=store,
        max_machines=MAX_MACHINES,
        slice_s=7200,
        wind_down_s=900,
        options={"grace_steps": 9, "every_s": 1800},
    )
    _show(study, say)
    if study.status in ("deadline_reached", "out_of_budget"):
        say(too_busy(study, hour_s))
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
        market=MARKET,
        name=f"{NAME}-cloud",
        max_machines=64,
        options={"grace_steps": 9, "every_s": 1800},
    )
    took_s = time.perf_counter() - began
    _show(larger, say)
    say(f"({larger.state.seq:,} events in {took_s:.1f} s)\n")
    return study


def too_busy(study: Study, hour_s: float) -> str:
    """Said when not all trials ended: by design they do, unless the computer is slower than it was at the start."""
    ended = sum(trial.status in ("finished", "pruned") for trial in study.trials)
    return (
        f"This computer was too busy: {ended} of {TRIALS} trials ended in time, at {hour_s:.0f} s for a market hour. "
        "Run it again when the computer has less to do.\n"
    )


def _hour_s(store: str | Path | None) -> float:
    """Real seconds for a market hour: more on a computer that takes longer over a trial. A demo that is resumed keeps
    what it began with."""
    folder = run_folder(NAME, store)
    if folder.place.exists():
        return 3600 / read_site(folder).market.speedup
    return HOUR_S * min(MOST_SLOWER, max(1.0, _sample_s() / SAMPLE_S))


def _sample_s() -> float:
    began = time.monotonic()
    samples = [subprocess.Popen([sys.executable, "-P", "-c", SAMPLE]) for _ in range(MAX_MACHINES)]
    for sample in samples:
        sample.wait()
    return time.monotonic() - began


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
