"""On a cluster that is there: nodes are taken as leases, gangs span them, and a node that dies is a machine lost."""

import time

import pytest

from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import CheckpointSaved, JobReported, LeaseDenied, LeaseEnded, SegmentEnded
from shoestring.kernel.spec import Code
from shoestring.kernel.types import LeaseId
from shoestring.testing.backend_rig import L0, L1, OFFER, S0, S1, START, ObservedEvents, Rig, ScriptedProvider
from shoestring.world.live.clock import RunClock
from tests.backends.backends_at_work import processes_of
from tests.on_ray import numpy_gang
from tests.on_ray.at_work import on_cluster

pytest.importorskip("ray")
pytestmark = pytest.mark.heavy


@pytest.fixture
def story(tmp_path, cluster):
    told = []

    def make(function="train", **provider):
        clock = RunClock(started_at=START, wall_at=time.time(), speedup=20.0)
        rig = Rig(tmp_path / "run", function, ScriptedProvider(**provider), clock)
        told.append(ObservedEvents(on_cluster(rig, cluster), rig))
        return told[-1]

    yield make
    told[-1].settle()
    until = time.monotonic() + 5
    while processes_of(told[-1].rig.run_dir) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_of(told[-1].rig.run_dir) == {}
    actors_end(told[-1].backend)
    told[-1].backend.close()


def actors_end(backend):
    until = time.monotonic() + 10
    while True:
        backend.poll()
        link = backend._nodes.link
        if link.view.heard >= 0 and not link.view.actors:
            return
        assert time.monotonic() < until, f"actors are left: {link.view.actors}"
        time.sleep(0.05)


class NumpyRig(Rig):
    @property
    def code(self):
        return Code(function=f"{numpy_gang.__file__}:train")


def test_a_gang_on_two_nodes_trains_together_as_one_process_would_on_the_whole_batch(story):
    told = story()
    told.rig.__class__ = NumpyRig
    told.backend._code = told.rig.code
    told.rent(L0)
    told.rent(L1)
    told.start(S0, until_step=8, lr=0.1)
    told.start(S1, until_step=8, shares={L0: 1, L1: 2}, lr=0.1)
    for segment in (S0, S1):
        ended = told.end_of(segment)
        assert (ended.cause, ended.step) == ("reached", 8), ended.detail
    alone, together = told.metrics(S0), told.metrics(S1)
    assert [step["workers"] for step in together] == [3.0] * 8
    assert [step["loss"] for step in together] == pytest.approx([step["loss"] for step in alone], rel=1e-9)
    assert alone[-1]["loss"] < 0.5 * alone[0]["loss"]


def test_a_failing_worker_on_another_node_fails_its_gang_with_its_last_words(story):
    told = story("gang_with_a_failure")
    told.backend._nodes.patience_s = 2.0
    told.rent(L0)
    told.rent(L1)
    told.start(S0, shares={L0: 1, L1: 1}, it="raises")
    ended = told.end_of(S0)
    assert (ended.cause, ended.step) == ("failed", 1)
    assert ended.detail.startswith("rank 1: ValueError: a bad batch (user_code.py:")
    told.start(S1, shares={L0: 1, L1: 1}, it="returns")
    assert told.end_of(S1).cause == "reached"


def test_a_driver_that_dies_is_replaced_and_nothing_is_lost_or_done_twice(story):
    told = story()
    told.rent(L0)
    told.start(S0, until_step=20, step_s=0.05)
    while told.backend._nodes.link.view.heard < 1:
        told.look()
    told.backend._nodes.link._driver.kill()  # the actor is on its way up, and nobody has told it what to do yet
    told.wait_for(JobReported)
    told.backend._nodes.link._driver.kill()
    assert told.end_of(S0).cause == "reached"
    assert told.steps() == list(range(1, 21))


def test_there_are_no_more_leases_than_nodes_except_for_nodes_that_joined_for_one(story, cluster):
    told = story()
    told.rent(L0)
    told.rent(L1)
    wanted = LeaseId("l7")
    told.backend.acquire(RequestLease(lease=LeaseId("l5"), offer=OFFER, end_by=START + 6000, why="test"))
    assert told.wait_for(LeaseDenied).reason == "no_capacity"
    cluster.add("launched", **{f"lease-{wanted}": 1})
    while not told.backend._nodes._named(wanted):
        told.look()
    told.rent(wanted)
    told.start(S0, lease=wanted, until_step=2)
    assert told.wait_for(SegmentEnded).cause == "reached"
    cluster.kill("launched")
    assert told.wait_for(LeaseEnded).lease == wanted


def test_a_node_that_dies_takes_its_lease_and_its_gang_with_it(story, cluster):
    told = story("together")
    cluster.add("doomed", **{f"lease-{L1}": 1})
    while not told.backend._nodes._named(L1):
        told.look()
    told.rent(L0)
    told.rent(L1)
    told.start(S0, until_step=10_000, shares={L0: 1, L1: 1}, step_s=0.02)
    told.wait_for(JobReported)
    told.backend.signal(S0, "save", 0.0)
    saved = told.wait_for(CheckpointSaved)
    cluster.kill("doomed")
    ended = told.end_of(S0)
    gone = told.wait_for(LeaseEnded)
    assert (ended.cause, gone.cause, gone.lease) == ("lost", "lost", L1)
    assert list(told.backend.inventory()) == [L0]
    told.start(S1, until_step=saved.step + 2, resume_from=saved.ref)
    assert told.end_of(S1).cause == "reached"
