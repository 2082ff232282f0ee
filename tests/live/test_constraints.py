"""TrimTuner on real processes of this machine: data fractions, constraints on time and on a metric, an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import shoestring as ss
from shoestring.kernel import decisions as d

SOURCE = """
import time


def train(trial):
    seconds = 0.4 * trial["width"] * trial.fraction
    for step in trial.steps():
        time.sleep(seconds / 2)
        trial.report(error=(0.1 + abs(trial["rate"] - 3)) / trial["width"] / trial.fraction**0.2, size=trial["width"])
"""


@pytest.fixture
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_HOME", raising=False)
    (tmp_path / "sleepy.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("_at_home")
def test_a_real_run_satisfies_its_constraints_and_measures_time_itself() -> None:
    import importlib

    train = importlib.import_module("sleepy").train
    study = ss.tune(
        train,
        space={"rate": ss.integer(1, 5), "width": ss.choice(1, 2, 4)},
        minimize="error",
        fractions=[0.1, 1],
        constraints=["size <= 2", "time <= 1m"],
        recipe="trimtuner",
        options={"parallel": 2},
        trials=8,
        max_steps=2,
        seed=1,
        name="sleepy",
    )
    state = study.state
    assert state.concluded
    assert len(state.jobs) == 8
    assert {job.fraction for job in state.jobs.values()} <= {0.1, 1.0}
    for job in state.jobs.values():
        assert job.seconds is not None
        assert job.seconds >= 0.35 * int(job.config["width"] or 0) * job.fraction
    assert any(isinstance(x, d.Think) for entry in study.entries() for x in entry.decisions)
    assert study.answer is not None
    assert study.answer.config["width"] <= 2
    assert {str(outlook.constraint) for outlook in study.answer.constraints} == {"size <= 2", "seconds <= 1m"}
