"""The local backend under faults: kill -9, incomplete starts, dead workers, forgotten machines."""

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
def observe(tmp_path):
    suite = BackendSuite()

    def make(function="train", **provider):
        rig = suite.rig(tmp_path, function, **provider)
        make.made = ObservedEvents(local(rig), rig)
        return make.made

    yield make
    make.made.settle()
    assert left_of(make.made.rig.run_dir) == []


def successor_of(observed):
    """The view of a new controller."""
    observed.backend.close()
    successor = ObservedEvents(local(observed.rig), observed.rig)
    observed.backend = successor.backend
    return successor


CONTROLLER = """
    import sys
    from pathlib import Path
    import msgspec
    from tests.backends.backends_at_work import local
    from shoestring.testing.backend_rig import ObservedEvents, Rig, ScriptedProvider
    from shoestring.world.live.clock import RunClock

    clock = RunClock(*map(float, sys.argv[2:5]))
    rig = Rig(Path(sys.argv[1]), "train", ScriptedProvider(), clock)
    observed = ObservedEvents(local(rig), rig)
    for number in range(3):
        observed.rent(f"l{number}")
        observed.start(f"s{number}", until_step=40, step_s=0.005, lease=f"l{number}")
    print("started", flush=True)
    while True:
        observed.poll()
"""


def test_a_controller_killed_repeatedly_loses_nothing_and_runs_nothing_twice(observe):
    observed = observe()
    rig = observed.rig
    observed.backend.close()
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
    successor = successor_of(observed)
    for number in range(3):
        segment = SegmentId(f"s{number}")
        ended = successor.wait_for(SegmentEnded, lambda event, segment=segment: event.segment == segment)
        assert (ended.cause, ended.step) == ("reached", 40)
        assert successor.steps(segment) == list(range(1, 41))
    assert [event.lease for event in successor.seen(LeaseGranted)] == ["l0", "l1", "l2"]
    for saved in successor.seen(CheckpointSaved):
        rig.store.get(saved.ref, rig.run_dir / "checked" / saved.segment)


def test_a_start_recorded_before_a_crash_is_carried_out_after_it(observe, monkeypatch):
    observed = observe()
    observed.rent()
    with monkeypatch.context() as patched:
        patched.setattr("shoestring.host.process.WorkerProcess.start", lambda _: None)
        order = observed.start(until_step=3)
    successor = successor_of(observed)
    successor.backend.start(order)
    assert successor.wait_for(SegmentEnded).cause == "reached"
    assert successor.steps() == [1, 2, 3]


def test_a_worker_that_starts_after_its_lease_was_released_runs_nothing(observe, monkeypatch):
    observed = observe()
    observed.rent()
    with monkeypatch.context() as patched:
        patched.setattr("shoestring.host.process.WorkerProcess.start", lambda _: None)
        observed.start(until_step=3)
        successor = successor_of(observed)
    successor.backend.release(L0)
    segment = observed.rig.run_dir / "segments" / S0
    subprocess.run([sys.executable, "-P", "-m", "shoestring.worker", str(segment)], check=False, start_new_session=True)
    successor.wait_for(LeaseEnded)
    assert successor.steps() == []
    assert successor.seen(SegmentEnded)[0].cause == "lost"


def test_a_worker_killed_from_outside_has_failed_if_its_machine_is_up(observe):
    observed = observe("hung")
    observed.rent()
    observed.start(until_step=10)
    observed.wait_for(JobReported)
    pid = read_json(observed.rig.run_dir / "segments" / S0 / "pid.json", dict)["pid"]
    os.kill(pid, signal.SIGKILL)
    ended = observed.wait_for(SegmentEnded)
    assert (ended.cause, ended.detail, ended.step) == ("failed", "the worker was killed by SIGKILL", 1)
    assert left_of(observed.rig.run_dir) == []
    assert list(observed.backend.inventory()) == [L0]


def test_a_lease_that_ended_without_a_controller_is_billed_until_it_was_due(observe):
    observed = observe(revoked={L0: (150.0, 200.0)})
    observed.rent()
    granted = observed.seen(LeaseGranted)[0]
    observed.start(until_step=10_000, step_s=0.01)
    observed.wait_for(JobReported)
    observed.backend.close()
    while observed.rig.clock.now() < granted.at + 220:
        time.sleep(0.01)
    successor = successor_of(observed)
    ended = successor.wait_for(LeaseEnded)
    assert (ended.cause, ended.at) == ("revoked", granted.at + 200.0)
    assert ended.charged_usd == pytest.approx(200.0)
    assert successor.seen(SegmentEnded)[0].cause == "halted"
    assert all(event.at <= ended.at for event in successor.events)


def test_a_machine_released_by_its_worker_is_billed_until_then(observe):
    observed = observe()
    observed.rig.deadman_s = 1.0
    observed.backend.close()
    observed.backend = local(observed.rig)
    observed.rent()
    observed.start(until_step=10_000, step_s=0.01)
    observed.wait_for(JobReported)
    observed.backend.close()
    left_of(observed.rig.run_dir)
    time.sleep(observed.rig.clock.real_s(25.0))
    successor = successor_of(observed)
    gone = successor.wait_for(LeaseEnded)
    ended = successor.seen(SegmentEnded)[0]
    assert (ended.cause, gone.cause, gone.at) == ("halted", "released", ended.at)
    assert observed.rig.clock.now() - gone.at > 20


def test_a_cancelled_request_is_free_of_charge(observe, monkeypatch):
    observed = observe()
    monkeypatch.setattr(observed.rig.provider, "grant", lambda _, now: msgspec.defstruct("Grant", ["at"])(now + 1e6))
    observed.backend.acquire(RequestLease(lease=LeaseId("l9"), offer=OFFER, end_by=1e9, why="test"))
    observed.backend.release(LeaseId("l9"))
    ended = observed.wait_for(LeaseEnded)
    assert (ended.cause, ended.charged_usd) == ("released", 0.0)
    assert observed.seen(LeaseGranted) == []
