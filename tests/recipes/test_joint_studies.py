"""Whole studies over hyper-parameters and machines: simulated, inline, and on real processes of a synthetic market."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import shoestring as ss
from shoestring.report.study import Study
from shoestring.testing.slowness import PATIENCE_S

SPACE = {
    "x": ss.uniform(0, 1),
    "machine": ss.machine_type("m5.large", "c5.xlarge"),
    "nodes": ss.machine_count(1, 2),
    "spot": ss.on_spot(),
}
SPEED = {"m5.large": 1.0, "c5.xlarge": 4.0}
WORKLOAD = ss.Workload(
    curve=lambda config: lambda step: {"loss": abs(config["x"] - 0.3) + 1 / (step * SPEED[config["machine"]])},
    seconds_per_step=ss.SublinearSpeed(300.0),
)
REAL_STUDY = """
import shoestring as ss

def train(trial):
    for step in trial.steps():
        trial.report(loss=abs(trial["x"] - 0.3) + 1 / step, workers=trial.world_size)

if __name__ == "__main__":
    ss.tune(
        train,
        space={
            "x": ss.uniform(0, 1),
            "machine": ss.machine_type("m5.large", "c5.xlarge"),
            "nodes": ss.machine_count(1, 2),
            "where": ss.zone(),
        },
        minimize="loss",
        recipe="tpe",
        options={"startup": 2},
        trials=4,
        max_steps=2,
        budget="$500",
        deadline="90 days",
        market={"kind": "modern", "interruptions_per_hour": 0.0, "speedup": 900, "provision_s": 60},
        name="joint",
    )
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_HOME", raising=False)


def check_machines(study: Study) -> None:
    """Each trial ran on what its configuration names, and on nothing else."""
    for trial in study.trials:
        config: Mapping[str, object] = trial.config
        assert trial.machines, f"trial {trial.number} never ran"
        for place in trial.machines:
            assert place.startswith(f"{config['machine']} ")
            if "spot" in config:
                assert (" spot " in place) == config["spot"]
            if "where" in config:
                assert place.endswith(f" in {config['where']}")


@pytest.mark.parametrize(("recipe", "options"), [("random", {}), ("tpe", {"startup": 5}), ("asha_tpe", {"startup": 5})])
def test_a_simulated_study_chooses_machines_with_the_rest(recipe: str, options: dict) -> None:
    study = ss.simulate(
        space=SPACE,
        minimize="loss",
        recipe=recipe,
        options=options,
        trials=24,
        max_steps=9,
        budget="$40",
        deadline="4 days",
        market={"kind": "modern", "interruptions_per_hour": 0.3},
        workload=WORKLOAD,
    )
    assert study.status == "completed"
    assert len(study.trials) == 24
    check_machines(study)
    assert {trial.config["machine"] for trial in study.trials} == set(SPEED)
    assert study.best is not None
    assert study.best.config["machine"] == "c5.xlarge"


def test_a_trial_on_two_machines_costs_twice_the_price_of_one() -> None:
    given = [{"x": 0.5, "machine": "m5.large", "nodes": nodes, "spot": False} for nodes in (1, 2)]
    study = ss.simulate(
        space=SPACE,
        minimize="loss",
        given=given,
        recipe="random",
        trials=2,
        max_steps=9,
        budget="$40",
        deadline="1 day",
        workload=WORKLOAD,
    )
    one, two = study.trials
    assert (one.config["nodes"], two.config["nodes"]) == (1, 2)
    per_hour = [trial.cost_usd / trial.seconds for trial in (one, two)]
    assert per_hour[1] == pytest.approx(2 * per_hour[0], rel=0.15)


def test_in_this_process_the_machines_of_a_trial_are_on_the_bill() -> None:
    study = ss.tune(
        lambda trial: trial.report(loss=trial["x"]),
        space={"x": ss.uniform(0, 1), "machine": ss.machine_type("m5.large", "c5.xlarge"), "where": ss.zone()},
        minimize="loss",
        recipe="random",
        trials=4,
        budget="$50",
        deadline="9d",
        speedup=300,
        on="inline",
        name="inline",
    )
    assert study.status == "completed"
    check_machines(study)
    again = ss.resume("inline")
    assert [trial.config for trial in again.trials] == [trial.config for trial in study.trials]


def test_on_real_processes_each_trial_has_its_machines_and_workers() -> None:
    Path("joint.py").write_text(REAL_STUDY)
    subprocess.run([sys.executable, "joint.py"], check=True, timeout=PATIENCE_S)
    study = ss.resume("joint")
    assert study.status == "completed"
    assert [trial.status for trial in study.trials] == ["finished"] * 4
    check_machines(study)
    assert {trial.config["nodes"] for trial in study.trials} == {1, 2}
    for trial in study.trials:
        assert trial.metrics["workers"] == trial.config["nodes"]
