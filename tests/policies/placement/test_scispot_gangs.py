"""How many machines work on one job of a bag together, and how they are rented together."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Pace
from shoestring.kernel.types import Listing, Offer
from shoestring.models.lifetimes.source import LifetimeSource
from shoestring.policies.placement.scispot.candidates import place_on, place_with_cpus
from shoestring.policies.placement.scispot.gang_size import Gangs
from shoestring.policies.placement.scispot.policy import SciSpot
from shoestring.policies.placement.scispot.reuse import job_here_usd, reuse_here_s, spare_here_s
from shoestring.policies.placement.scispot.supply import Supply
from shoestring.testing.story import SPEC, ConstantPrices, Story

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def machine(name: str, vcpus: float, usd: float, *, slots: int = 1) -> Listing:
    offer = Offer(provider="gcp", zone="a", machine=name, spot=True)
    return Listing(
        offer=offer, vcpus=vcpus, memory_gb=8, slots=slots, on_demand_usd_per_hour=usd, max_life_s=DAY_S, notice_s=0.0
    )


SMALL, LARGE, WIDE = machine("small", 2, 1.0), machine("large", 8, 4.0), machine("wide", 8, 4.0, slots=4)


def bag(
    *listings: Listing,
    jobs: int = 5,
    counts: tuple[int, ...] = (1, 2, 4),
    paces: dict[tuple[str, int], Pace] | None = None,
    cpus: int | None = None,
    **fields,
) -> Story:
    """A bag whose first job runs, on the first of the machines; `paces` are what it measured."""
    fields = {
        "max_steps": 1,
        "trials": jobs,
        "deadline_s": 20 * DAY_S,
        "budget_usd": 1e4,
        "slice_s": 2 * DAY_S,
        "max_machines": 4,
        **fields,
    }
    run = Story(
        Gangs(LifetimeSource(), counts, cpus),
        SciSpot(LifetimeSource()),
        spec=replace(SPEC, listings=listings, **fields),
    )
    run.feed = run.state.feed = ConstantPrices({x.offer: 0.3 * x.on_demand_usd_per_hour for x in listings})
    run.begin()
    run.order(d.AddJob(job="j0", config={"x": 0.5}, why="the story"))
    run.order(d.RunJob(job="j0", until_step=1, slots=1, offer=listings[0].offer, why="the story"))
    run.rent("l0", offer=listings[0].offer)
    run.start("s0", "j0", "l0", running_since=1.0)
    for number in range(1, jobs):
        run.add(f"j{number}", until_step=1)
    run.state.jobs["j0"].paces = {(listings[0].offer.machine, 1): Pace(1, HOUR_S)} if paces is None else dict(paces)
    return run


def first_is_done(run: Story, at: float = HOUR_S) -> list[d.Decision]:
    return run.tell(e.SegmentEnded(at=at, segment="s0", step=1, cause="reached"))


def preempted(lease: str, at: float) -> e.LeaseEnded:
    return e.LeaseEnded(at=at, lease=lease, cause="revoked", charged_usd=0.0)


def chosen(decisions: list[d.Decision]) -> dict[str, tuple[str, int]]:
    return {x.job: (x.offer.machine, x.slots) for x in decisions if isinstance(x, d.RunJob) and x.offer is not None}


def rented(decisions: list[d.Decision]) -> list[str]:
    return [x.offer.machine for x in decisions if isinstance(x, d.RequestLease)]


def started(decisions: list[d.Decision]) -> list[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    return [(x.job, x.leases, x.slots_on) for x in decisions if isinstance(x, d.StartSegment)]


def measured(one_s: float, two_s: float, four_s: float) -> dict[tuple[str, int], Pace]:
    return {("small", n): Pace(1, s) for n, s in ((1, one_s), (2, two_s), (4, four_s))}


# -- the choice --------------------------------------------------------------------------------------------------------
def test_a_job_that_scales_well_gets_a_gang_where_alone_it_would_miss_the_deadline() -> None:
    run = bag(SMALL, jobs=2, paces=measured(HOUR_S, HOUR_S / 2, HOUR_S / 4), deadline_s=1.8 * HOUR_S)
    decisions = first_is_done(run)
    assert chosen(decisions) == {"j1": ("small", 2)}  # four would be sooner still, and more expensive
    assert rented(decisions) == ["small"]  # the other is up


def test_with_time_to_spare_it_stays_alone() -> None:
    run = bag(SMALL, jobs=2, paces=measured(HOUR_S, HOUR_S / 2, HOUR_S / 4))
    decisions = first_is_done(run)
    assert chosen(decisions) == {"j1": ("small", 1)}
    assert started(decisions) == [("j1", ("l0",), (1,))]


def test_a_job_that_does_not_scale_stays_alone_whatever_the_deadline() -> None:
    """Where none is in time, the bag as a whole is done soonest with as many jobs at once as possible."""
    paces = measured(HOUR_S, 0.95 * HOUR_S, 0.93 * HOUR_S)
    decisions = first_is_done(bag(SMALL, jobs=9, paces=paces, deadline_s=2 * HOUR_S))
    assert set(chosen(decisions).values()) == {("small", 1)}


def test_where_all_would_be_late_the_soonest_is_chosen_even_if_a_machine_for_another_choice_is_up() -> None:
    run = bag(SMALL, jobs=2, paces=measured(HOUR_S, HOUR_S / 2, HOUR_S / 4), deadline_s=1.2 * HOUR_S)
    run.order(d.RunJob(job="j1", until_step=1, slots=1, offer=SMALL.offer, why="the story"))
    assert chosen(first_is_done(run)) == {"j1": ("small", 4)}


def test_a_gang_is_tried_once_at_a_time_while_there_are_jobs_to_gain_by_it() -> None:
    tries = list(chosen(first_is_done(bag(SMALL, jobs=40, max_machines=8))).values())
    assert tries.count(("small", 2)) == 1
    assert tries.count(("small", 1)) > 30
    assert set(chosen(first_is_done(bag(SMALL, jobs=2))).values()) == {("small", 1)}


def test_what_a_gang_of_two_measured_need_not_be_tried_with_four() -> None:
    """Twice the machines were hardly faster: four would not be either."""
    paces = {("small", 1): Pace(1, HOUR_S), ("small", 2): Pace(1, 0.9 * HOUR_S)}
    run = bag(SMALL, jobs=40, max_machines=8, paces=paces)
    assert set(chosen(first_is_done(run)).values()) == {("small", 1)}


def test_one_pending_machine_does_not_try_a_gang() -> None:
    run = bag(SMALL, jobs=40, max_machines=8)
    run.rent("l1", offer=SMALL.offer)
    assert ("small", 2) in chosen(first_is_done(run)).values()


def test_a_job_that_no_machine_outlives_alone_is_for_a_gang() -> None:
    paces = measured(30 * HOUR_S, 16 * HOUR_S, 9 * HOUR_S)
    decisions = first_is_done(bag(SMALL, jobs=2, paces=paces), at=31 * HOUR_S)
    assert chosen(decisions)["j1"][1] > 1


def test_before_a_job_is_done_each_has_the_cheapest_machine_alone_or_the_fewest_that_it_may() -> None:
    run = bag(SMALL, LARGE, paces={})
    assert set(chosen(run.tell(preempted("l0", 5.0))).values()) == {("small", 1)}
    run = bag(SMALL, LARGE, counts=(2, 4), paces={})
    decisions = run.tell(preempted("l0", 5.0))
    assert set(chosen(decisions).values()) == {("small", 2)}


def test_a_choice_is_kept_while_its_machines_are_pending() -> None:
    run = bag(SMALL, jobs=40, max_machines=8)
    (tried,) = [job for job, where in chosen(first_is_done(run)).items() if where == ("small", 2)]
    prices = ConstantPrices({SMALL.offer: 0.9})
    run.feed = run.state.feed = prices
    assert tried not in chosen(run.tell(preempted("l0", HOUR_S + 1)))


def test_after_a_denial_another_kind_is_chosen() -> None:
    paces = {("small", 2): Pace(1, HOUR_S), ("large", 2): Pace(1, HOUR_S / 3)}
    run = bag(SMALL, LARGE, jobs=2, counts=(2,), paces=paces, deadline_s=2 * HOUR_S)
    assert chosen(first_is_done(run)) == {"j1": ("large", 2)}
    decisions = run.tell(e.LeaseDenied(at=HOUR_S + 60, lease="l1", reason="no_capacity"))
    assert chosen(decisions) == {"j1": ("small", 2)}
    assert rented(decisions) == ["small"]  # the first is up already


def test_a_gang_that_cannot_be_paid_for_is_not_chosen() -> None:
    paces = measured(HOUR_S, HOUR_S / 2, HOUR_S / 4)
    run = bag(SMALL, jobs=2, paces=paces, deadline_s=1.8 * HOUR_S, slice_s=900.0, budget_usd=1.0 + 0.15)
    run.state.spent_usd = 0.9
    assert chosen(first_is_done(run)) == {"j1": ("small", 2)}


# -- a number of CPUs --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("vcpus", "slots", "worker", "expected"),
    [
        (8, 1, 1, (8, 8)),  # R / cpus = 64 / 8
        (64, 1, 1, (1, 1)),
        (96, 1, 1, (1, 1)),  # more than it needs, for a machine is not divisible
        (30, 1, 1, (3, 3)),  # rounded up
        (128, 4, 1, (2, 1)),  # half of its slots
        (32, 4, 1, (8, 2)),
        (128, 8, 3, (6, 1)),  # whole workers of three slots each
    ],
)
def test_the_number_of_machines_follows_from_the_cpus_of_a_job(
    vcpus: float, slots: int, worker: int, expected: tuple[int, int]
) -> None:
    place = place_with_cpus(machine("any", vcpus, 1.0, slots=slots), 64, worker)
    assert (place.slots, place.count) == expected


def test_jobs_of_so_many_cpus_run_on_the_type_and_number_that_cost_least() -> None:
    paces = {("small", 4): Pace(1, 3 * HOUR_S), ("large", 1): Pace(1, HOUR_S)}
    run = bag(SMALL, LARGE, jobs=2, paces=paces, cpus=8)
    assert chosen(first_is_done(run)) == {"j1": ("large", 1)}
    paces = {("small", 4): Pace(1, HOUR_S / 3), ("large", 1): Pace(1, HOUR_S)}
    run = bag(SMALL, LARGE, jobs=2, paces=paces, cpus=8)
    assert chosen(first_is_done(run)) == {"j1": ("small", 4)}


def test_types_of_which_too_many_would_be_needed_are_left_out() -> None:
    run = bag(SMALL, LARGE, jobs=2, paces={("small", 4): Pace(1, 1.0)}, cpus=8, max_machines=3)
    assert chosen(first_is_done(run)) == {"j1": ("large", 1)}


# -- its machines ------------------------------------------------------------------------------------------------------
def gang(count: int = 2, *, max_machines: int = 4, jobs: int = 2, listing: Listing = SMALL) -> Story:
    """The first job runs, and waiting jobs may run only on this many machines."""
    name = listing.offer.machine
    return bag(
        listing,
        jobs=jobs,
        counts=(count,),
        paces={(name, count * listing.slots): Pace(1, HOUR_S)},
        max_machines=max_machines,
    )


def test_a_gang_starts_when_the_last_of_its_machines_is_up() -> None:
    run = gang(3)
    decisions = first_is_done(run)
    assert rented(decisions) == ["small", "small"]
    assert not started(decisions)
    assert not started(run.tell(e.LeaseGranted(at=HOUR_S + 60, lease="l1")))
    decisions = run.tell(e.LeaseGranted(at=HOUR_S + 90, lease="l2"))
    assert started(decisions) == [("j1", ("l0", "l1", "l2"), (1, 1, 1))]


def test_a_gang_that_lost_a_machine_waits_for_one_more_and_keeps_the_others() -> None:
    run = gang(2)
    first_is_done(run)
    run.tell(e.LeaseGranted(at=HOUR_S + 60, lease="l1"))
    run.happened(e.SegmentStarted(at=HOUR_S + 80, segment="s1"))
    decisions = run.tell(preempted("l1", 1.5 * HOUR_S))
    assert rented(decisions) == ["small"]
    assert not [x for x in decisions if isinstance(x, d.ReleaseLease)]
    assert started(run.tell(e.LeaseGranted(at=1.6 * HOUR_S, lease="l2"))) == [("j1", ("l0", "l2"), (1, 1))]


def test_no_job_overtakes_a_gang_whose_machines_may_not_be_rented_yet() -> None:
    """Four machines may be held, and three others are busy: two more free ones are waited for."""
    run = gang(3, max_machines=4, jobs=5)
    for number in (1, 2, 3):
        run.order(d.RunJob(job=f"j{number}", until_step=1, slots=1, offer=SMALL.offer, why="the story"))
        run.rent(f"l{number}", offer=SMALL.offer)
        run.start(f"s{number}", f"j{number}", f"l{number}")
    run.add("j5", until_step=1)
    decisions = first_is_done(run)
    assert not started(decisions)
    assert not rented(decisions)
    run.tell(e.SegmentEnded(at=HOUR_S + 10, segment="s1", step=1, cause="reached"))
    decisions = run.tell(e.SegmentEnded(at=HOUR_S + 20, segment="s2", step=1, cause="reached"))
    assert [job for job, *_ in started(decisions)] == ["j4"]


def test_idle_machines_of_another_kind_make_room() -> None:
    paces = {("small", 2): Pace(1, 10 * HOUR_S), ("large", 2): Pace(1, HOUR_S)}
    run = bag(SMALL, LARGE, jobs=2, counts=(2,), paces=paces, max_machines=2)
    decisions = first_is_done(run)
    assert [(x.lease, x.why) for x in decisions if isinstance(x, d.ReleaseLease)] == [
        ("l0", "released to make room for machines of another type, for the next job")
    ]
    assert rented(decisions) == ["large", "large"]


def test_a_gang_has_all_slots_of_its_machines_and_single_jobs_share_one() -> None:
    run = gang(2, listing=WIDE)
    assert chosen(first_is_done(run)) == {"j1": ("wide", 8)}
    assert started(run.tell(e.LeaseGranted(at=HOUR_S + 60, lease="l1"))) == [("j1", ("l0", "l1"), (4, 4))]
    run = bag(WIDE, jobs=7, counts=(1, 2), paces={("wide", 1): Pace(1, HOUR_S), ("wide", 8): Pace(1, HOUR_S)})
    decisions = first_is_done(run)
    assert [leases for _, leases, _ in started(decisions)] == [("l0",)] * 4
    assert rented(decisions) == ["wide"]


def test_without_money_for_all_of_a_gang_none_of_it_is_rented_and_the_run_ends() -> None:
    run = gang(4)
    run.state.spent_usd = run.spec.budget_usd - 0.05
    decisions = run.tell(preempted("l0", 5.0))
    assert not rented(decisions)
    (over,) = [x for x in decisions if isinstance(x, d.WindDown)]
    assert over.why == "$0.05 left in the budget cannot pay 4 x small spot in a"


def test_claims_are_laid_in_order() -> None:
    run = gang(2)
    run.rent("l1", offer=SMALL.offer)
    run.rent("l2", offer=SMALL.offer)
    supply, two = Supply.of(run.view), place_on(run.view, SMALL, 2)
    assert supply.claim(two) == ("l1", "l2")
    assert supply.missing(two) == 2
    assert not supply.withdraw(SMALL.offer, "l1")


# -- how old a machine may be ------------------------------------------------------------------------------------------
def test_what_a_machine_is_worth_depends_on_the_job_to_run_on_it() -> None:
    """Alone the job would outlive this machine; on four it is done well before."""
    run = bag(SMALL, jobs=3, paces=measured(6 * HOUR_S, 3 * HOUR_S, 1.5 * HOUR_S))
    run.happened(e.SegmentEnded(at=20 * HOUR_S, segment="s0", step=1, cause="reached"))
    run.order(d.RunJob(job="j2", until_step=1, slots=4, offer=SMALL.offer, why="the story"))
    lease, alone, four = run.state.leases["l0"], run.state.jobs["j1"], run.state.jobs["j2"]
    assert (
        reuse_here_s(run.view, LifetimeSource(), alone, lease)
        < 0
        < reuse_here_s(run.view, LifetimeSource(), four, lease)
    )
    alone_usd, four_usd = (job_here_usd(run.view, LifetimeSource(), job, lease) for job in (alone, four))
    assert alone_usd is not None
    assert four_usd is not None
    assert four_usd < alone_usd


def test_a_spare_is_kept_for_the_gang_that_might_need_it() -> None:
    run = bag(SMALL, jobs=2, paces=measured(6 * HOUR_S, 3 * HOUR_S, 1.5 * HOUR_S))
    run.happened(e.SegmentEnded(at=10 * HOUR_S, segment="s0", step=1, cause="reached"))
    lease = run.state.leases["l0"]
    alone_s = spare_here_s(run.view, LifetimeSource(), lease)
    run.order(d.RunJob(job="j1", until_step=1, slots=4, offer=SMALL.offer, why="the story"))
    assert spare_here_s(run.view, LifetimeSource(), lease) != pytest.approx(alone_s)
