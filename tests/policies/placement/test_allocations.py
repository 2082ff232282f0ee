"""Machines for programs that are launched once on all of them: rented, used and given back as one allocation."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.spec import Code
from shoestring.models.lifetimes.source import LifetimeSource
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.policies.placement.scispot.gang_size import Gangs
from shoestring.policies.placement.scispot.policy import SciSpot
from shoestring.testing.story import SPEC, ConstantPrices, Story
from tests.policies.placement.test_scispot_gangs import SMALL, preempted, started

ONCE = Code(command=("mpirun", "./simulate"), launch="once")
LOOK = e.TimerFired(at=1.0, name=RETRY)


def bag(*, counts: tuple[int, ...] = (2,), jobs: int = 1, code: Code = ONCE, max_machines: int = 8) -> Story:
    spec = replace(SPEC, code=code, listings=(SMALL,), max_steps=1, trials=jobs, max_machines=max_machines)
    run = Story(Gangs(LifetimeSource(), counts), SciSpot(LifetimeSource()), spec=spec)
    run.feed = run.state.feed = ConstantPrices({SMALL.offer: 0.3})
    run.begin()
    for number in range(jobs):
        run.add(f"j{number}", until_step=1)
    return run


def requests(decisions: list[d.Decision]) -> list[tuple[str, object]]:
    return [(x.lease, x.gang) for x in decisions if isinstance(x, d.RequestLease)]


def releases(decisions: list[d.Decision]) -> dict[str, str]:
    return {x.lease: x.why for x in decisions if isinstance(x, d.ReleaseLease)}


def granted(run: Story, *leases: str, at: float = 2.0) -> list[d.Decision]:
    return [x for lease in leases for x in run.tell(e.LeaseGranted(at=at, lease=lease))]


def test_each_gang_is_an_allocation_of_its_own_and_starts_on_it() -> None:
    run = bag(jobs=2)
    assert requests(run.tell(LOOK)) == [("l0", "l0"), ("l1", "l0"), ("l2", "l2"), ("l3", "l2")]
    assert started(granted(run, "l0", "l2")) == [], "two machines, of two allocations"
    assert started(granted(run, "l3")) == [("j1", ("l2", "l3"), (1, 1))], "the other waits for l1"


def test_machines_of_other_programs_are_rented_together_and_are_no_allocation() -> None:
    run = bag(code=Code(function="train.py:train"))
    assert requests(run.tell(LOOK)) == [("l0", UNSET), ("l1", UNSET)]


def test_what_is_left_after_a_loss_is_given_back_before_another_allocation_is_rented() -> None:
    run = bag()
    run.tell(LOOK)
    granted(run, "l0", "l1")
    run.happened(e.SegmentStarted(at=3.0, segment="s0"))
    decisions = run.tell(preempted("l1", at=50.0))
    assert releases(decisions) == {"l0": "the rest of an allocation that lost l1: no waiting job runs on one machine"}
    assert requests(decisions) == [("l2", "l2"), ("l3", "l2")]
    assert isinstance(decisions[0], d.ReleaseLease)


def test_what_is_left_after_a_loss_serves_a_job_of_its_size() -> None:
    run = bag(counts=(1, 2), jobs=2)
    for job, slots in (("j0", 2), ("j1", 1)):
        run.order(d.RunJob(job=job, until_step=1, slots=slots, offer=SMALL.offer, why="the story"))
    leases = [
        d.RequestLease(lease=x, offer=SMALL.offer, end_by=9000.0, gang="l0", why="the story") for x in ("l0", "l1")
    ]
    run.order(*leases)
    run.happened(e.LeaseGranted(at=0.5, lease="l0"), e.LeaseGranted(at=0.5, lease="l1"))
    run.order(
        d.StartSegment(
            segment="s0",
            job="j0",
            leases=("l0", "l1"),
            config={},
            until_step=1,
            slots=2,
            shares=(1, 1),
            why="the story",
        )
    )
    decisions = run.tell(preempted("l0", at=50.0))
    starts = [x for x in decisions if isinstance(x, d.StartSegment)]
    assert [x.leases for x in starts] == [("l1",)]
    assert starts[0].why.endswith("the rest of an allocation that lost l0")


def test_one_machine_of_an_allocation_serves_no_job_while_the_others_are_held() -> None:
    run = bag(counts=(1, 2), jobs=1)
    run.order(d.RunJob(job="j0", until_step=1, slots=1, offer=SMALL.offer, why="the story"))
    leases = [
        d.RequestLease(lease=x, offer=SMALL.offer, end_by=9000.0, gang="l0", why="the story") for x in ("l0", "l1")
    ]
    run.order(*leases)
    run.happened(e.LeaseGranted(at=0.5, lease="l0"), e.LeaseGranted(at=0.5, lease="l1"))
    decisions = run.tell(LOOK)
    assert started(decisions) == []
    assert requests(decisions) == [("l2", UNSET)]
