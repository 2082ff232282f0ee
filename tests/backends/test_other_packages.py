"""A backend of another package, found by its entry point: it satisfies the laws, and a study runs on it."""

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from shoestring.backends.registry import find_place, forms
from shoestring.errors import SpecError
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import CheckpointSaved, JobReported, LeaseDenied, LeaseEnded, LeaseGranted
from shoestring.kernel.types import LeaseId
from shoestring.testing.backend_rig import L0, OFFER, S0, START, Rig, ScriptedProvider
from shoestring.testing.backend_suite import BackendSuite
from shoestring.world.live.clock import RunClock
from tests.backends.backends_at_work import processes_of

PACKAGE = Path(__file__).parent / "shed_package"


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.setenv("PYTHONPATH", f"{PACKAGE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


@pytest.mark.heavy
class TestShed(BackendSuite):
    @pytest.fixture(autouse=True)
    def _speed(self, request):
        # Some leases of these tests last twenty market seconds, in which a host has to start.
        self.speedup = 2.0 if "extended" in request.node.name else 40.0

    def rig(self, tmp_path, function="train", **provider):
        clock = RunClock(started_at=START, wall_at=time.time(), speedup=self.speedup)
        return Rig(tmp_path / "run", function, ScriptedProvider(**provider), clock)

    def make(self, rig: Rig):
        return find_place("shed:9").open(rig.site, rig.provider)

    def running(self, rig: Rig):
        return processes_of(rig.run_dir)


@pytest.fixture
def observed(tmp_path):
    suite = TestShed()
    suite.speedup = 20.0
    observed = suite.observe(tmp_path)
    yield observed
    suite.finish(observed)


def test_a_warned_machine_saves_and_is_preempted(observed):
    observed.rent()
    observed.start(S0, until_step=10_000, step_s=0.02)
    observed.wait_for(JobReported)
    pid = json.loads((observed.rig.run_dir / "leases" / L0 / "machine.json").read_text())["pid"]
    os.kill(pid, 15)
    ended, gone = observed.end_of(S0), observed.wait_for(LeaseEnded)
    assert (ended.cause, gone.cause) == ("halted", "revoked")
    assert observed.seen(CheckpointSaved)[-1].step == ended.step


def test_a_machine_that_stops_without_a_word_is_lost(observed):
    observed.rent()
    machine = observed.rig.run_dir / "leases" / L0 / "machine.json"
    os.kill(json.loads(machine.read_text())["pid"], 9)
    assert observed.wait_for(LeaseEnded).cause == "lost"


def test_more_machines_than_there_are_is_a_denial(observed):
    small = find_place("shed:1").open(observed.rig.site, observed.rig.provider)
    observed.backend.close()
    observed.backend = small
    observed.rent(L0)
    observed.backend.acquire(RequestLease(lease=LeaseId("l1"), offer=OFFER, end_by=START + 6000, why="test"))
    assert observed.wait_for(LeaseDenied).reason == "quota"


def test_a_host_is_found_again_by_the_next_controller(observed):
    observed.rent()
    observed.backend.close()
    observed.backend = find_place("shed:9").open(observed.rig.site, observed.rig.provider)
    observed.events.clear()
    assert observed.wait_for(LeaseGranted).lease == L0
    assert list(observed.backend.inventory()) == [L0]


def test_its_words_are_those_of_a_place():
    assert "shed:MACHINES" in forms()
    assert find_place("shed:3").on == "shed:3"
    with pytest.raises(SpecError, match="says no number of machines"):
        find_place("shed:few")
    with pytest.raises(SpecError, match="on='shet' is unknown") as caught:
        find_place("shet")
    assert "shed" in caught.value.hint


def test_a_study_runs_on_it(tmp_path):
    (tmp_path / "study.py").write_text(
        textwrap.dedent(
            """
            import shoestring as ss

            def train(trial):
                for step in trial.steps():
                    trial.report(loss=trial["x"] / step)

            if __name__ == "__main__":
                ss.tune(train, space={"x": ss.uniform(0, 1)}, minimize="loss", trials=4, max_steps=2, recipe="random")
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", "from shoestring.cli import main; main()", "run", "study.py", "--on", "shed:2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ", on shed-machine" in done.stdout.splitlines()[0]
    assert json.loads((tmp_path / ".shoestring" / "study" / "place.json").read_text())["on"] == "shed:2"
