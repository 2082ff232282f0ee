"""On an existing cluster: leases are assigned nodes, gangs span them, and a dead node is a lost machine."""

import os
import signal
import time
from contextlib import suppress

import pytest

from shoestring.backends.ray.joined_nodes import JoinedNodes
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import (
    CheckpointSaved,
    JobReported,
    LeaseDenied,
    LeaseEnded,
    RevocationNoticed,
    SegmentEnded,
)
from shoestring.kernel.spec import Code
from shoestring.kernel.types import LeaseId
from shoestring.testing.backend_rig import L0, L1, OFFER, S0, S1, START, ObservedEvents, Rig, ScriptedProvider
from shoestring.worker.task import OUTBOX
from shoestring.world.live.clock import RunClock
from tests.backends.backends_at_work import processes_of
from tests.on_ray import numpy_gang
from tests.on_ray.at_work import on_cluster

pytest.importorskip("ray")
pytestmark = pytest.mark.heavy


@pytest.fixture
def observe(tmp_path, cluster):
    observed = []

    def make(function="train", kind=Rig, **provider):
        clock = RunClock(started_at=START, wall_at=time.time(), speedup=20.0)
        rig = kind(tmp_path / "run", function, ScriptedProvider(**provider), clock)
        nodes = JoinedNodes(rig.site.run_dir, cluster.address)
        observed.append(ObservedEvents(on_cluster(rig, cluster, nodes), rig))
        observed[-1].nodes = nodes
        return observed[-1]

    yield make
    observed[-1].settle()
    until = time.monotonic() + 5
    while processes_of(observed[-1].rig.run_dir) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_of(observed[-1].rig.run_dir) == {}
    actors_end(observed[-1])
    observed[-1].backend.close()


def actors_end(observed):
    until = time.monotonic() + 10
    while True:
        observed.poll()
        link = observed.nodes.link
        if link.view.heard >= 0 and not link.view.actors:
            return
        assert time.monotonic() < until, f"actors are left: {link.view.actors}"
        time.sleep(0.05)


class NumpyRig(Rig):
    @property
    def code(self):
        return Code(function=f"{numpy_gang.__file__}:train")


def test_a_gang_on_two_nodes_learns_the_same_as_one_process_on_the_whole_batch(observe):
    observed = observe(kind=NumpyRig)
    observed.rent(L0)
    observed.rent(L1)
    observed.start(S0, until_step=8, lr=0.1)
    observed.start(S1, until_step=8, shares={L0: 1, L1: 2}, lr=0.1)
    for segment in (S0, S1):
        ended = observed.end_of(segment)
        assert (ended.cause, ended.step) == ("reached", 8), ended.detail
    alone, together = observed.metrics(S0), observed.metrics(S1)
    assert [step["workers"] for step in together] == [3.0] * 8
    assert [step["loss"] for step in together] == pytest.approx([step["loss"] for step in alone], rel=1e-9)
    assert alone[-1]["loss"] < 0.5 * alone[0]["loss"]


def test_a_failing_worker_on_another_node_fails_its_gang_with_its_error(observe):
    observed = observe("gang_with_a_failure")
    observed.rent(L0)
    observed.rent(L1)
    observed.start(S0, shares={L0: 1, L1: 1}, it="raises")
    ended = observed.end_of(S0)
    assert (ended.cause, ended.step) == ("failed", 1)
    assert ended.detail.startswith("rank 1: ValueError: a bad batch (user_code.py:")
    observed.start(S1, shares={L0: 1, L1: 1}, it="returns")
    assert observed.end_of(S1).cause == "reached"


def test_a_dead_driver_is_replaced_and_nothing_is_lost_or_done_twice(observe):
    observed = observe()
    observed.rent(L0)
    observed.start(S0, until_step=20, step_s=0.05)
    while observed.nodes.link.view.heard < 1:
        observed.poll()
    observed.nodes.link._driver.kill()  # the actor is starting, and has no order yet
    observed.wait_for(JobReported)
    observed.nodes.link._driver.kill()
    assert observed.end_of(S0).cause == "reached"
    assert observed.steps() == list(range(1, 21))


def test_there_are_no_more_leases_than_nodes_except_for_nodes_launched_for_a_lease(observe, cluster):
    observed = observe()
    observed.rent(L0)
    observed.rent(L1)
    wanted = LeaseId("l7")
    observed.backend.acquire(RequestLease(lease=LeaseId("l5"), offer=OFFER, end_by=START + 6000, why="test"))
    assert observed.wait_for(LeaseDenied).reason == "no_capacity"
    cluster.add("launched", **{f"lease-{wanted}": 1})
    while not observed.nodes._named(wanted):
        observed.poll()
    observed.rent(wanted)
    observed.start(S0, lease=wanted, until_step=2)
    assert observed.wait_for(SegmentEnded).cause == "reached"
    cluster.kill("launched")
    assert observed.wait_for(LeaseEnded).lease == wanted


def test_a_dead_node_ends_its_lease_and_its_gang(observe, cluster):
    observed = observe("together")
    cluster.add("doomed", **{f"lease-{L1}": 1})
    while not observed.nodes._named(L1):
        observed.poll()
    observed.rent(L0)
    observed.rent(L1)
    observed.start(S0, until_step=10_000, shares={L0: 1, L1: 1}, step_s=0.02)
    observed.wait_for(JobReported)
    observed.backend.signal(S0, "save", 0.0)
    saved = observed.wait_for(CheckpointSaved)
    cluster.kill("doomed")
    ended = observed.end_of(S0)
    gone = observed.wait_for(LeaseEnded)
    assert (ended.cause, gone.cause, gone.lease) == ("lost", "lost", L1)
    assert list(observed.backend.inventory()) == [L0]
    observed.start(S1, until_step=saved.step + 2, resume_from=saved.ref)
    assert observed.end_of(S1).cause == "reached"


@pytest.mark.parametrize("first", ["supervisor", "user code"])
def test_what_dies_a_moment_before_its_node_is_lost_with_it_and_the_notice_comes_first(observe, cluster, first):
    observed = observe("hung")
    cluster.add("doomed", **{f"lease-{L0}": 1})
    while not observed.nodes._named(L0):
        observed.poll()
    observed.rent(L0)
    observed.start(S0, until_step=10)
    observed.wait_for(JobReported)
    supervisor, *others = sorted(processes_of(observed.rig.run_dir))
    for pid in (supervisor, *others) if first == "supervisor" else others:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if first == "supervisor":
        while observed.nodes.link.view.heard < 0 or observed.nodes.link.view.actors:
            observed.poll()  # until Ray knows that its actor is gone; not yet that its node is
    else:
        outbox = observed.rig.run_dir / "segments" / S0 / OUTBOX
        while "killed by SIGKILL" not in outbox.read_text():
            time.sleep(0.01)
        observed.poll()
    cluster.kill("doomed")
    gone = observed.wait_for(LeaseEnded)
    ended = observed.end_of(S0)
    assert (gone.cause, ended.cause, ended.detail) == ("lost", "lost", "its Ray node died")
    kinds = [type(event) for event in observed.events]
    assert kinds.index(RevocationNoticed) < kinds.index(SegmentEnded) < kinds.index(LeaseEnded)
