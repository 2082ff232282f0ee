"""The local backend under what real life does to it: kill -9, half done starts, dead workers, forgotten machines."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import pytest

from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import CheckpointSaved, JobReported, LeaseEnded, LeaseGranted, SegmentEnded
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.testing.backend_rig import L0, OFFER, S0, ObservedEvents
from shoestring.testing.backend_suite import BackendSuite
from shoestring.worker.task import read_json
from tests.backends.backends_at_work import left_of, local


@pytest.fixture
def story(tmp_path):
    suite = BackendSuite()

    def make(function="train", **provider):
        rig = suite.rig(tmp_path, function, **provider)
        make.made = ObservedEvents(local(rig), rig)
        return make.made

    yield make
    make.made.settle()
    assert left_of(make.made.rig.run_dir) == []


def heir_of(story):
    """What a new controller finds."""
    story.backend.close()
    heir = ObservedEvents(local(story.rig), story.rig)
    story.backend = heir.backend
    return heir


CONTROLLER = """
    import sys
    from pathlib import Path
    import msgspec
    from tests.backends.backends_at_work import local
    from shoestring.testing.backend_rig import Rig, ScriptedProvider, Story
    from shoestring.world.live.clock import RunClock

    clock = RunClock(*map(float, sys.argv[2:5]))
    rig = Rig(Path(sys.argv[1]), "train", ScriptedProvider(), clock)
    story = Story(local(rig), rig)
    for number in range(3):
        story.rent(f"l{number}")
        story.start(f"s{number}", until_step=40, step_s=0.005, lease=f"l{number}")
    print("started", flush=True)
    while True:
        story.look()
"""


def test_a_controller_killed_again_and_again_loses_nothing_and_runs_nothing_twice(story):
    told = story()
    rig = told.rig
    told.backend.close()
    clock = [repr(rig.clock.started_at), repr(rig.clock.wall_at), repr(rig.clock.speedup)]
    for wait in (0.0, 0.02, 0.1, 0.3):
        controller = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CONTROLLER), str(rig.run_dir), *clock],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
        )
        controller.stdout.readline()
        time.sleep(wait)
        controller.kill()
        controller.wait()
        controller.stdout.close()
    heir = heir_of(told)
    for number in range(3):
        segment = SegmentId(f"s{number}")
        ended = heir.wait_for(SegmentEnded, lambda event, segment=segment: event.segment == segment)
        assert (ended.cause, ended.step) == ("reached", 40)
        assert heir.steps(segment) == list(range(1, 41))
    assert [event.lease for event in heir.told(LeaseGranted)] == ["l0", "l1", "l2"]
    for saved in heir.told(CheckpointSaved):
        rig.store.get(saved.ref, rig.run_dir / "checked" / saved.segment)


def test_a_start_that_died_before_its_worker_is_made_good(story, monkeypatch):
    told = story()
    told.rent()
    with monkeypatch.context() as patched:
        patched.setattr("shoestring.backends.local.process.WorkerProcess.start", lambda _: None)
        order = told.start(until_step=3)
    heir = heir_of(told)
    heir.backend.start(order)
    assert heir.wait_for(SegmentEnded).cause == "reached"
    assert heir.steps() == [1, 2, 3]


def test_a_worker_that_comes_up_after_its_lease_was_released_runs_nothing(story, monkeypatch):
    told = story()
    told.rent()
    with monkeypatch.context() as patched:
        patched.setattr("shoestring.backends.local.process.WorkerProcess.start", lambda _: None)
        told.start(until_step=3)
        heir = heir_of(told)
    heir.backend.release(L0)
    segment = told.rig.run_dir / "segments" / S0
    subprocess.run([sys.executable, "-P", "-m", "shoestring.worker", str(segment)], check=False, start_new_session=True)
    heir.wait_for(LeaseEnded)
    assert heir.steps() == []
    assert heir.told(SegmentEnded)[0].cause == "lost"


def test_a_worker_killed_by_somebody_else_has_failed_since_its_machine_lives(story):
    told = story("hung")
    told.rent()
    told.start(until_step=10)
    told.wait_for(JobReported)
    pid = read_json(told.rig.run_dir / "segments" / S0 / "pid.json", dict)["pid"]
    os.kill(pid, signal.SIGKILL)
    ended = told.wait_for(SegmentEnded)
    assert (ended.cause, ended.detail, ended.step) == ("failed", "the worker was killed by SIGKILL", 1)
    assert left_of(told.rig.run_dir) == []
    assert list(told.backend.inventory()) == [L0]


def test_what_was_overdue_while_nobody_looked_is_billed_until_it_was_due(story):
    told = story(revoked={L0: (150.0, 200.0)})
    told.rent()
    granted = told.told(LeaseGranted)[0]
    told.start(until_step=10_000, step_s=0.01)
    told.wait_for(JobReported)
    told.backend.close()
    while told.rig.clock.now() < granted.at + 220:
        time.sleep(0.01)
    heir = heir_of(told)
    ended = heir.wait_for(LeaseEnded)
    assert (ended.cause, ended.at) == ("revoked", granted.at + 200.0)
    assert ended.charged_usd == pytest.approx(200.0)
    assert heir.told(SegmentEnded)[0].cause == "halted"
    assert all(event.at <= ended.at for event in heir.events)


def test_a_machine_given_back_by_its_worker_is_billed_until_then(story):
    told = story()
    told.rig.deadman_s = 1.0
    told.backend.close()
    told.backend = local(told.rig)
    told.rent()
    told.start(until_step=10_000, step_s=0.01)
    told.wait_for(JobReported)
    told.backend.close()
    left_of(told.rig.run_dir)
    time.sleep(0.2)
    heir = heir_of(told)
    gone = heir.wait_for(LeaseEnded)
    ended = heir.told(SegmentEnded)[0]
    assert (ended.cause, gone.cause, gone.at) == ("halted", "released", ended.at)
    assert told.rig.clock.now() - gone.at > 20


def test_a_cancelled_request_costs_nothing(story, monkeypatch):
    told = story()
    monkeypatch.setattr(told.rig.provider, "grant", lambda _, now: msgspec.defstruct("Grant", ["at"])(now + 1e6))
    told.backend.acquire(RequestLease(lease=LeaseId("l9"), offer=OFFER, end_by=1e9, why="test"))
    told.backend.release(LeaseId("l9"))
    ended = told.wait_for(LeaseEnded)
    assert (ended.cause, ended.charged_usd) == ("released", 0.0)
    assert told.told(LeaseGranted) == []
