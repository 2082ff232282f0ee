"""SciSpot's placement: machines chosen, reused, kept and released by their lifetimes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Policy
from shoestring.kernel.records import Pace
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.models.lifetimes.job_cost import Prospect
from shoestring.models.lifetimes.source import LifetimeSource
from shoestring.policies.placement.scispot.candidates import Candidate, Place
from shoestring.policies.placement.scispot.policy import SciSpot
from shoestring.policies.placement.scispot.ranking import in_order, priced_usd
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC, ConstantPrices, Story

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def machine(name: str, vcpus: float, usd: float, *, spot: bool = True) -> Listing:
    offer = Offer(provider="gcp", zone="a", machine=name, spot=spot)
    limit_s = DAY_S if spot else None
    return Listing(offer=offer, vcpus=vcpus, memory_gb=8, on_demand_usd_per_hour=usd, max_life_s=limit_s)


SMALL, LARGE = machine("small", 2, 1.0), machine("large", 8, 4.0)


def bag(*listings: Listing, jobs: int = 4, hours: float = 6.0, **fields) -> Story:
    """A bag whose first job is done, on the first of the machines, and took this many hours."""
    fields = {
        "max_steps": 1,
        "trials": jobs,
        "deadline_s": 20 * DAY_S,
        "budget_usd": 1e4,
        "slice_s": 2 * DAY_S,
        **fields,
    }
    run = Story(SciSpot(LifetimeSource()), spec=replace(SPEC, listings=listings, **fields))
    run.feed = run.state.feed = ConstantPrices({x.offer: 0.3 * x.on_demand_usd_per_hour for x in listings})
    run.begin()
    run.add("j0", until_step=1)
    requested = run.tell(e.TimerFired(at=1.0, name="tick"))
    lease = next(x for x in requested if isinstance(x, d.RequestLease))
    run.tell(e.LeaseGranted(at=60.0, lease=lease.lease))
    run.tell(e.SegmentStarted(at=61.0, segment="s0"))
    for number in range(1, jobs):
        run.add(f"j{number}", until_step=1)
    run.state.jobs["j0"].paces[lease.offer.machine, 1] = Pace(1, hours * HOUR_S)
    return run


def ended(run: Story, at: float) -> list[d.Decision]:
    return run.tell(e.SegmentEnded(at=at, segment="s0", step=1, cause="reached"))


def test_a_machine_that_has_lasted_gets_the_next_job() -> None:
    run = bag(SMALL)
    decisions = ended(run, at=61.0 + 6 * HOUR_S)
    assert [x.job for x in decisions if isinstance(x, d.StartSegment)] == ["j1"]


def test_a_machine_that_will_not_outlast_the_next_job_is_released_for_a_new_one() -> None:
    run = bag(SMALL)
    decisions = ended(run, at=20 * HOUR_S)
    (left,) = [x for x in decisions if isinstance(x, d.ReleaseLease)]
    assert left.lease == "l0"
    assert "sooner on a new machine" in left.why
    assert not [x for x in decisions if isinstance(x, d.StartSegment)]
    assert [x for x in decisions if isinstance(x, d.RequestLease)]


def test_a_machine_type_that_proves_expensive_is_left_for_a_cheaper_one() -> None:
    run = bag(SMALL, LARGE, max_machines=1)
    run.state.jobs["j0"].paces = {("small", 1): Pace(1, 6 * HOUR_S), ("large", 1): Pace(1, 0.5 * HOUR_S)}
    decisions = ended(run, at=61.0 + 6 * HOUR_S)
    (left,) = [x for x in decisions if isinstance(x, d.ReleaseLease)]
    assert "on another type" in left.why


def test_a_spare_is_kept_to_its_break_even_and_then_released() -> None:
    run = bag(SMALL, jobs=1)
    run.add("j1", until_step=1)
    run.tell(e.TimerFired(at=62.0, name="tick"))  # a machine for the second job
    run.tell(e.LeaseGranted(at=120.0, lease="l1"))
    run.tell(e.SegmentStarted(at=121.0, segment="s1"))
    decisions = ended(run, at=61.0 + 6 * HOUR_S)
    (kept,) = [x for x in decisions if isinstance(x, d.WakeAt)]
    assert kept.about == "l0"
    assert 60.0 < kept.at - (61.0 + 6 * HOUR_S) < HOUR_S
    (left,) = [x for x in run.tell(e.TimerFired(at=kept.at, name=kept.name)) if isinstance(x, d.ReleaseLease)]
    assert left.lease == "l0"


def test_a_kind_that_might_be_cheaper_is_tried_once_at_a_time() -> None:
    run = bag(SMALL, LARGE, jobs=40, max_machines=8)
    ended(run, at=61.0 + 6 * HOUR_S)
    requested = [lease.offer.machine for lease in run.state.leases.values()]
    assert requested.count("large") == 1


def test_with_few_jobs_left_nothing_is_tried() -> None:
    run = bag(SMALL, LARGE, jobs=2, max_machines=8)
    decisions = ended(run, at=20 * HOUR_S)
    assert {x.offer.machine for x in decisions if isinstance(x, d.RequestLease)} == {"small"}


def test_where_the_cheapest_would_miss_the_deadline_a_faster_one_is_chosen() -> None:
    run = bag(SMALL, LARGE, jobs=20, max_machines=2, deadline_s=2 * DAY_S)
    run.state.jobs["j0"].paces = {("small", 1): Pace(1, 6 * HOUR_S), ("large", 1): Pace(1, 2 * HOUR_S)}
    decisions = ended(run, at=20 * HOUR_S)
    assert {x.offer.machine for x in decisions if isinstance(x, d.RequestLease)} == {"large"}


def test_jobs_not_added_yet_count_for_the_deadline() -> None:
    """A search adds jobs as slots become free: most of them are not waiting yet."""
    run = bag(SMALL, machine("large", 8, 12.0), jobs=3, trials=40, max_machines=2, deadline_s=4 * DAY_S)
    run.state.jobs["j0"].paces = {("small", 1): Pace(1, 6 * HOUR_S), ("large", 1): Pace(1, 2 * HOUR_S)}
    decisions = ended(run, at=61.0 + 6 * HOUR_S)
    (left,) = [x for x in decisions if isinstance(x, d.ReleaseLease)]
    assert "would miss its deadline" in left.why
    assert {x.offer.machine for x in decisions if isinstance(x, d.RequestLease)} == {"large"}


def test_where_no_kind_is_fast_enough_none_is_left_for_that() -> None:
    run = bag(SMALL, LARGE, jobs=3, trials=400, max_machines=1, deadline_s=DAY_S)
    run.state.jobs["j0"].paces = {("small", 1): Pace(1, HOUR_S), ("large", 1): Pace(1, HOUR_S / 4)}
    decisions = ended(run, at=61.0 + HOUR_S)
    assert [x.job for x in decisions if isinstance(x, d.StartSegment)] == ["j1"]


# -- trying ------------------------------------------------------------------------------------------------------------
SIZES = tuple(machine(f"of-{cpus}", cpus, cpus / 2) for cpus in (2, 4, 8, 16))


def first_wave(jobs: int) -> list[str]:
    """Machine types that are rented for a bag of which nothing is known."""
    fields = {"max_steps": 1, "trials": jobs, "deadline_s": 20 * DAY_S, "budget_usd": 1e4, "max_machines": 8}
    run = Story(SciSpot(LifetimeSource()), spec=replace(SPEC, kind="bag", listings=SIZES, **fields))
    run.feed = run.state.feed = ConstantPrices({x.offer: 0.3 * x.on_demand_usd_per_hour for x in SIZES})
    run.begin()
    for number in range(jobs):
        run.add(f"j{number}", until_step=1)
    decisions = run.tell(e.TimerFired(at=1.0, name="tick"))
    return sorted(x.offer.machine for x in decisions if isinstance(x, d.RequestLease))


def test_a_first_wave_tries_types_by_one_machine_each_and_the_rest_goes_to_the_cheapest() -> None:
    wave = first_wave(400)
    assert len(wave) == 8
    assert [wave.count(x.offer.machine) for x in SIZES] == [5, 1, 1, 1]


def test_a_first_wave_of_few_jobs_tries_nothing() -> None:
    assert set(first_wave(8)) == {"of-2"}


def test_a_machine_that_was_tried_gets_no_second_job_where_another_type_is_expected_to_be_cheaper() -> None:
    """Its job is done first because it is fast; none has been timed on the small type, which is expected cheaper."""
    run = bag(LARGE, SMALL, jobs=4)
    run.state.jobs["j0"].paces = {("large", 1): Pace(1, 6 * HOUR_S)}
    run.state.leases["l0"].offer = LARGE.offer
    decisions = ended(run, at=61.0 + 6 * HOUR_S)
    assert [x.lease for x in decisions if isinstance(x, d.ReleaseLease)] == ["l0"]
    assert "small" in {x.offer.machine for x in decisions if isinstance(x, d.RequestLease)}


def test_of_two_types_that_cost_the_same_the_faster_is_rented() -> None:
    """A whole-machine program that scales perfectly: dollars are equal, hours are not."""
    paces = {("small", 1): Pace(1000, 1000 * HOUR_S), ("large", 1): Pace(1000, 250 * HOUR_S)}
    found = [
        Candidate(place, Prospect(1.0, tried=True), seconds, 10 * seconds, in_time=True)
        for place, seconds in ((Place(SMALL, 1, 1), 4 * HOUR_S), (Place(LARGE, 1, 1), HOUR_S))
    ]
    run = bag(SMALL, LARGE, jobs=40)
    run.state.jobs["j0"].paces = paces
    best, _ = in_order(RunView(run.state), found, being_tried=set())[0]
    assert best.place.listing == LARGE
    assert priced_usd(found)[found[0].place] == pytest.approx(1.01**2)  # two doublings


class _SciSpot(PolicySuite):
    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        return recipes.build(spec)


GIVEN = tuple({"x": number / 10} for number in range(9))


class TestSciSpotKeepsTheContract(_SciSpot):
    spec = replace(SPEC, recipe="scispot", given=GIVEN)


class TestWithYoungAndDalyToo(_SciSpot):
    spec = replace(SPEC, recipe="scispot", given=GIVEN, options={"checkpointing": "young_daly"})


class TestWithoutSavesToo(_SciSpot):
    spec = replace(SPEC, recipe="scispot", options={"checkpointing": "none"})


@pytest.mark.parametrize("checkpointing", ["young_daly_1h", "periodic", "on_notice"])
def test_saves_can_be_chosen_otherwise(checkpointing: str) -> None:
    policies = recipes.build(replace(SPEC, recipe="scispot", options={"checkpointing": checkpointing}))
    assert any(type(policy).__module__.startswith("shoestring.policies.checkpointing") for policy in policies[2:3])
