"""Statuses a script can rely on, each reached by a whole run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import shoestring as ss
from shoestring.kernel import decisions as d
from shoestring.report.export import as_text

STUDY: dict[str, object] = {
    "space": {"x": ss.uniform(0.0, 1.0)},
    "minimize": "loss",
    "trials": 12,
    "max_steps": 9,
    "recipe": "random",
    "max_machines": 3,
    "market": "modern",
}


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ({"budget": 5, "deadline": "1d"}, "completed"),
        ({"budget": 0.02, "deadline": "1d"}, "out_of_budget"),
        ({"budget": 5, "deadline": "20m"}, "deadline_reached"),
    ],
    ids=["completed", "out_of_budget", "deadline_reached"],
)
def test_the_reason_of_an_ending_is_the_status(limits: dict[str, object], status: str) -> None:
    study = ss.simulate(**{**STUDY, **limits})  # type: ignore[arg-type]
    assert study.status == status, study.state.ending
    assert study.status_detail == study.state.ending
    assert json.loads(as_text(study, "json"))["status"] == status
    endings = [x for entry in study.entries() for x in entry.decisions if isinstance(x, d.WindDown)]
    assert [ending.reason for ending in endings] == [status]


def test_a_study_in_which_every_trial_failed_has_failed(tmp_path: Path) -> None:
    def train(trial: ss.Trial) -> None:
        raise RuntimeError(f"out of memory with x={trial['x']}")

    study = ss.tune(
        train, space={"x": ss.uniform(0, 1)}, minimize="loss", trials=2, recipe="random", on="inline", store=tmp_path
    )
    assert study.status == "failed"
    assert study.status_detail == "all trials failed (2)"


def test_one_finished_trial_is_enough_to_be_completed(tmp_path: Path) -> None:
    def train(trial: ss.Trial) -> None:
        if trial["x"] == 1:
            raise RuntimeError("out of memory")
        trial.report(loss=0.5)

    study = ss.tune(
        train, space={"x": ss.choice(1, 2)}, minimize="loss", recipe="grid", on="inline", store=tmp_path, max_steps=1
    )
    assert study.status == "completed"
