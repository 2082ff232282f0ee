"""Nodes started on this machine end with everything on them: released, killed from outside, or unpaid."""

import os
import signal
import time
from pathlib import Path

import pytest

from shoestring.backends.ray.keeper import Keep
from shoestring.backends.ray.link import look_at
from shoestring.errors import PermanentError
from shoestring.kernel.events import JobReported, LeaseEnded, SegmentEnded
from shoestring.testing.backend_rig import L0, L1, S0, S1, START, ObservedEvents, Rig, ScriptedProvider
from shoestring.worker.task import read_json
from shoestring.world.live.clock import RunClock
from tests.on_ray.at_work import on_started_nodes
from tests.on_ray.test_study import session_of

pytest.importorskip("ray")
pytestmark = pytest.mark.heavy


@pytest.fixture
def observed(tmp_path):
    clock = RunClock(started_at=START, wall_at=time.time(), speedup=20.0)
    rig = Rig(tmp_path / "run", "hung", ScriptedProvider(), clock, deadman_s=60.0)
    observed = ObservedEvents(on_started_nodes(rig), rig)
    yield observed
    observed.settle()
    observed.backend.close()
    for path in rig.run_dir.rglob("pid.json"):
        assert session_of(read_json(path, dict)["pid"]) == [], f"something of {path.parent} is left"


def node_of(observed, lease):
    return session_of(read_json(observed.rig.run_dir / "leases" / lease / "node" / "pid.json", dict)["pid"])


def head_of(observed, number):
    keep = read_json(observed.rig.run_dir / "ray" / f"head-{number}" / "keep.json", Keep)
    port = next(word.partition("=")[2] for word in keep.command if word.startswith("--port="))
    return f"127.0.0.2:{port}"


def wait_for_work(observed, segment):
    observed.wait_for(JobReported, lambda event: event.segment == segment)


def test_all_processes_of_a_node_end_with_it(observed):
    observed.rent(L0)
    observed.rent(L1, for_s=500)
    observed.start(S0, until_step=10, lease=L0)
    observed.start(S1, until_step=10, lease=L1)
    wait_for_work(observed, S0)
    wait_for_work(observed, S1)
    assert len(node_of(observed, L0)) > 6, "the raylet, its agents, an actor, the worker and its children"

    for pid in node_of(observed, L0):
        os.kill(pid, signal.SIGKILL)
    gone = observed.wait_for(LeaseEnded)
    assert (gone.lease, gone.cause) == (L0, "lost")
    ended = observed.end_of(S0)
    assert (ended.cause, ended.step, ended.detail) == ("lost", 1, "its Ray node died")
    assert list(observed.backend.inventory()) == [L1]

    observed.backend.close()  # they have no controller now
    until = time.monotonic() + 45
    while node_of(observed, L1) and time.monotonic() < until:
        time.sleep(0.1)
    assert node_of(observed, L1) == [], "prepaid time is over"
    successor = ObservedEvents(on_started_nodes(observed.rig), observed.rig)
    observed.backend = successor.backend
    ended = successor.wait_for(LeaseEnded, lambda event: event.lease == L1)
    assert ended.cause == "expired"
    assert ended.charged_usd <= 500.001
    assert successor.end_of(S1).cause == "lost"
    assert len(successor.seen(SegmentEnded)) == 2


def test_a_dead_head_ends_its_leases_and_is_replaced(observed):
    observed.rent(L0)
    head = read_json(observed.rig.run_dir / "ray" / "head-0" / "pid.json", dict)["pid"]
    address = head_of(observed, 0)
    with pytest.raises(PermanentError):
        look_at(address, Path(os.devnull))  # it refuses other clients
    for pid in session_of(head):
        os.kill(pid, signal.SIGKILL)
    gone = observed.wait_for(LeaseEnded)
    assert (gone.lease, gone.cause) == (L0, "lost")
    observed.rent(L1)
    assert head_of(observed, 1) != address
    assert list(observed.backend.inventory()) == [L1]
