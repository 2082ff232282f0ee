"""Before the paid end of their machines trials save and stop, once, and nothing is started that would have to leave
again at once: the same number for workers and placement, on every backend."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import shoestring as ss
from shoestring.kernel import events as e

DEADLINE_S = 120.0
"""In market time: with the default wind-down of a twentieth, 6 s."""


def train(trial: ss.Trial) -> None:
    for step in trial.steps():
        time.sleep(0.05)
        trial.report(loss=1 / step)
        with trial.save() as folder:
            if folder:
                (folder / "step").write_text(str(step))


@pytest.mark.parametrize("on", ["local", "inline"])
def test_in_its_last_minute_a_run_trains_on_and_starts_nothing_again(on: str, tmp_path: Path) -> None:
    study = ss.tune(
        train,
        space={"x": ss.uniform(0.0, 1.0)},
        minimize="loss",
        trials=2 if on == "local" else 1,
        max_steps=100_000,
        recipe="random",
        deadline=DEADLINE_S,
        market={"speedup": 24, "slots": 2},
        on=on,
        store=tmp_path,
    )
    assert study.status == "deadline_reached"
    assert study.state.segments_made == len(study.trials)
    ended = [entry.event.at for entry in study.entries() if isinstance(entry.event, e.SegmentEnded)]
    assert min(ended) >= study.state.started_at + DEADLINE_S - study.spec.wind_down_s


def test_in_the_simulator_trials_leave_as_early_as_on_machines() -> None:
    study = ss.simulate(
        space={"x": ss.uniform(0.0, 1.0)},
        minimize="loss",
        trials=2,
        max_steps=100_000,
        recipe="random",
        deadline="3m",
        market={"slots": 2},
        workload=ss.Workload(curve=lambda _: lambda step: {"loss": 1 / step}, seconds_per_step=lambda *_: 0.5),
    )
    assert study.state.segments_made == 2
    ended = [entry.event.at for entry in study.entries() if isinstance(entry.event, e.SegmentEnded)]
    assert all(0.0 <= at - study.state.started_at - (180.0 - 9.0) < 5.0 for at in ended)
