"""Nodes started on this machine end with everything on them: given back, killed by others, or paid for by nobody."""

import os
import signal
import time
from pathlib import Path

import pytest

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
def story(tmp_path):
    clock = RunClock(started_at=START, wall_at=time.time(), speedup=20.0)
    rig = Rig(tmp_path / "run", "hung", ScriptedProvider(), clock, deadman_s=60.0)
    story = ObservedEvents(on_started_nodes(rig), rig)
    yield story
    story.settle()
    story.backend.close()
    for path in rig.run_dir.rglob("pid.json"):
        assert session_of(read_json(path, dict)["pid"]) == [], f"something of {path.parent} is left"


def node_of(story, lease):
    return session_of(read_json(story.rig.run_dir / "leases" / lease / "node" / "pid.json", dict)["pid"])


def wait_for_work(story, segment):
    story.wait_for(JobReported, lambda event: event.segment == segment)


def test_whatever_ends_a_node_ends_what_is_on_it(story):
    story.rent(L0)
    story.rent(L1, for_s=500)
    story.start(S0, until_step=10, lease=L0)
    story.start(S1, until_step=10, lease=L1)
    wait_for_work(story, S0)
    wait_for_work(story, S1)
    assert len(node_of(story, L0)) > 6, "the raylet, its agents, an actor, the worker and its children"

    for pid in node_of(story, L0):
        os.kill(pid, signal.SIGKILL)
    gone = story.wait_for(LeaseEnded)
    assert (gone.lease, gone.cause) == (L0, "lost")
    ended = story.end_of(S0)
    assert (ended.cause, ended.step, ended.detail) == ("lost", 1, "its Ray node died")
    assert list(story.backend.inventory()) == [L1]

    story.backend.close()  # nobody looks after them now
    until = time.monotonic() + 45
    while node_of(story, L1) and time.monotonic() < until:
        time.sleep(0.1)
    assert node_of(story, L1) == [], "prepaid time is over"
    heir = ObservedEvents(on_started_nodes(story.rig), story.rig)
    story.backend = heir.backend
    ended = heir.wait_for(LeaseEnded, lambda event: event.lease == L1)
    assert ended.cause == "expired"
    assert ended.charged_usd <= 500.001
    assert heir.end_of(S1).cause == "lost"
    assert len(heir.told(SegmentEnded)) == 2


def test_a_head_that_dies_takes_its_leases_with_it_and_is_replaced(story):
    story.rent(L0)
    head = read_json(story.rig.run_dir / "ray" / "head-0" / "pid.json", dict)["pid"]
    address = story.backend._nodes.link.address
    with pytest.raises(PermanentError):
        look_at(address, Path(os.devnull))  # it obeys nobody else
    for pid in session_of(head):
        os.kill(pid, signal.SIGKILL)
    gone = story.wait_for(LeaseEnded)
    assert (gone.lease, gone.cause) == (L0, "lost")
    story.rent(L1)
    assert story.backend._nodes.link.address != address
    assert list(story.backend.inventory()) == [L1]
