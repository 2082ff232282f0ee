"""Placement: fill free slots, rent what is missing, release what is idle."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Listing, Offer
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.placement.renting.assign import IDLE, RETRY
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, ConstantPrices, Story, story

TICK = e.TimerFired(at=10.0, name="tick")
LARGE = Offer(provider="aws", zone="b", machine="large", spot=True)
WIDE = replace(SPEC, listings=tuple(replace(listing, slots=4) for listing in SPEC.listings))


def rent(lease: str, offer: Offer, *, at: float = 10.0) -> d.RequestLease:
    return d.RequestLease(lease=lease, offer=offer, end_by=at + SPEC.slice_s, reserve_usd=ANY, why=ANY)


def waiting(policy, jobs: int, *, spec=SPEC, slots: int = 1) -> Story:
    run = story(policy, spec=spec)
    for number in range(jobs):
        run.add(f"j{number}", until_step=9, slots=slots)
    return run


def with_prices(run: Story, prices: dict[Offer, float]) -> Story:
    run.feed = run.state.feed = ConstantPrices(prices)
    return run


def test_a_waiting_job_is_put_on_a_machine_with_room() -> None:
    run = story(Cheapest(), lease="l0", job="j0")
    assert run.tell(TICK) == [
        d.StartSegment(
            segment="s0",
            job="j0",
            leases=("l0",),
            config={"x": 0.5},
            until_step=9,
            why="on small spot in a",
        )
    ]


def test_a_job_resumes_from_its_checkpoint_and_within_its_time_limit() -> None:
    run = story(Cheapest(), spec=replace(SPEC, time_limit_s=600.0), lease="l0", job="j0", running_since=0.0)
    run.happened(run.save("j0", 4))
    (started,) = run.end("j0", "halted", step=4)
    assert started.resume_from.step == 4
    assert started.time_limit_s == 600.0
    assert started.why == "on small spot in a, from step 4"


def test_fuller_machines_are_filled_first_so_that_others_can_be_released() -> None:
    run = story(Cheapest(), spec=WIDE, lease="l0")
    run.rent("l1")
    run.add("j0", until_step=9)
    run.start("s0", "j0", "l1")
    run.add("j1", until_step=9)
    assert [x.leases for x in run.tell(TICK) if isinstance(x, d.StartSegment)] == [("l1",)]


def test_a_machine_about_to_run_out_gets_no_new_work() -> None:
    run = story(Cheapest(), lease="l0", job="j0")
    late = SPEC.slice_s - SPEC.wind_down_s
    decided = run.tell(e.TimerFired(at=late, name="tick"))
    assert not [x for x in decided if isinstance(x, d.StartSegment)]
    assert d.ReleaseLease(lease="l0", why=ANY) in decided


@pytest.mark.parametrize(("jobs", "machines"), [(1, 1), (3, 3), (9, 4)])
def test_as_many_machines_are_rented_as_are_missing_and_allowed(jobs: int, machines: int) -> None:
    run = waiting(Cheapest(), jobs)
    assert run.tell(TICK) == [rent(f"l{number}", SPOT) for number in range(machines)]
    assert run.tell(TICK) == []  # they are pending


def test_slots_are_counted_not_machines() -> None:
    assert len(waiting(Cheapest(), 5, spec=WIDE).tell(TICK)) == 2


def test_a_machine_on_notice_is_replaced_at_once() -> None:
    run = story(Cheapest(), spec=replace(SPEC, max_machines=1), lease="l0", job="j0", running_since=0.0)
    run.happened(e.RevocationNoticed(at=10.0, lease="l0", gone_at=130.0))
    assert run.end("j0", "halted", step=0) == [rent("l1", SPOT)]


def test_the_cheapest_slot_wins_and_says_why() -> None:
    large = Listing(offer=LARGE, vcpus=16, memory_gb=64, slots=8, on_demand_usd_per_hour=4.0)
    run = waiting(Cheapest(), 1, spec=replace(SPEC, listings=(*SPEC.listings, large)))
    with_prices(run, {SPOT: 0.3, ON_DEMAND_OFFER: 1.0, LARGE: 1.6})
    (decided,) = run.tell(TICK)
    assert (decided.offer, decided.why) == (LARGE, "cheapest now: $1.6000/h, 40% of the on-demand price")


def test_spot_above_the_list_price_is_left_alone() -> None:
    run = with_prices(waiting(Cheapest(), 1), {SPOT: 1.2, ON_DEMAND_OFFER: 1.0})
    assert run.tell(TICK) == [rent("l0", ON_DEMAND_OFFER)]


def test_when_nothing_is_worth_its_price_it_looks_again_later() -> None:
    run = with_prices(waiting(Cheapest(), 1, spec=replace(SPEC, listings=SPEC.listings[:1])), {SPOT: 1.2})
    assert run.tell(TICK) == [
        d.WakeAt(name=RETRY, at=70.0, why="no offer that fits has a price worth paying: try again")
    ]
    with_prices(run, {SPOT: 0.2})
    assert run.tell(e.TimerFired(at=70.0, name=RETRY)) == [rent("l0", SPOT, at=70.0)]


def test_near_the_deadline_machines_are_on_demand() -> None:
    run = waiting(Cheapest(fall_back_share=0.15), 1)
    late = SPEC.deadline_s * 0.86
    (decided,) = run.tell(e.TimerFired(at=late, name="tick"))
    assert (decided.offer, decided.why) == (
        ON_DEMAND_OFFER,
        "the deadline is near; on-demand: $1.0000/h, never preempted",
    )


def test_an_offer_that_was_denied_is_not_requested_again_at_once() -> None:
    run = waiting(Cheapest(), 1)
    run.tell(TICK)
    assert run.tell(e.LeaseDenied(at=20.0, lease="l0", reason="no_capacity")) == [rent("l1", ON_DEMAND_OFFER, at=20.0)]
    decided = run.tell(e.LeaseDenied(at=30.0, lease="l1", reason="quota"))
    assert decided == [d.WakeAt(name=RETRY, at=80.0, why="2 offers: no capacity: try again")]
    assert run.tell(e.TimerFired(at=80.0, name=RETRY)) == [rent("l2", SPOT, at=80.0)]


def test_what_the_guard_refuses_gives_way_to_something_with_a_lower_worst_case() -> None:
    cheap = Offer(provider="aws", zone="b", machine="tiny", spot=False)
    tiny = Listing(offer=cheap, vcpus=1, memory_gb=1, on_demand_usd_per_hour=0.4)
    run = waiting(Cheapest(), 1, spec=replace(SPEC, listings=(*SPEC.listings, tiny), budget_usd=0.05))
    with_prices(run, {SPOT: 0.3, ON_DEMAND_OFFER: 1.0, cheap: 0.4})
    refused, rented = run.tell(TICK)
    assert isinstance(refused, d.Refused)
    assert refused.wish.offer == SPOT
    assert rented.offer == cheap
    assert rented.end_by < 10.0 + SPEC.slice_s  # cut down to what five cents pay
    assert rented.reserve_usd <= 0.05


def test_what_cannot_be_paid_while_machines_are_held_is_not_requested() -> None:
    run = story(Cheapest(), spec=replace(SPEC, budget_usd=0.26), lease="l0", job="j0", running_since=0.0)
    run.add("j1", until_step=9)
    assert run.tell(TICK) == []


def test_a_wide_job_gets_a_machine_that_is_wide_enough() -> None:
    large = Listing(offer=LARGE, vcpus=16, memory_gb=64, slots=2, on_demand_usd_per_hour=8.0)
    run = waiting(Cheapest(), 1, slots=2, spec=replace(SPEC, listings=(*SPEC.listings, large)))
    with_prices(run, {SPOT: 0.3, ON_DEMAND_OFFER: 1.0, LARGE: 4.0})
    assert run.tell(TICK) == [rent("l0", LARGE)]


def test_a_job_pinned_to_an_offer_gets_that_one() -> None:
    run = story(Cheapest())
    run.add("j0")
    run.order(d.RunJob(job="j0", until_step=9, offer=ON_DEMAND_OFFER, why="the story"))
    assert run.tell(TICK) == [rent("l0", ON_DEMAND_OFFER)]


def test_an_idle_machine_is_kept_for_idle_s_and_then_released() -> None:
    run = story(Cheapest(idle_s=120.0), lease="l0", job="j0", running_since=0.0)
    run.rent("l1")
    assert run.tell(TICK) == [
        d.WakeAt(name=f"{IDLE}l1", at=120.0, about="l1", why="release it if it is still idle then")
    ]
    assert run.tell(e.TimerFired(at=120.0, name=f"{IDLE}l1")) == [
        d.ReleaseLease(lease="l1", why="idle: no work is left for it")
    ]


def test_an_idle_machine_that_fits_no_waiting_job_is_released_too() -> None:
    large = Listing(offer=LARGE, vcpus=16, memory_gb=64, slots=2, on_demand_usd_per_hour=8.0)
    spec = replace(SPEC, listings=(*SPEC.listings, large), max_machines=1)
    run = with_prices(story(Cheapest(), spec=spec, lease="l0"), {SPOT: 0.3, ON_DEMAND_OFFER: 1.0, LARGE: 4.0})
    run.add("j0", until_step=9, slots=2)
    assert run.tell(e.TimerFired(at=200.0, name="tick")) == [d.ReleaseLease(lease="l0", why=ANY)]


def test_when_no_work_is_left_idle_machines_are_released_at_once() -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=0.0)
    assert run.end("j0") == [d.ReleaseLease(lease="l0", why="idle: no work is left for it")]


@pytest.mark.parametrize("policy", [Cheapest(), OnDemand()])
def test_nothing_is_rented_or_started_while_the_run_ends(policy) -> None:
    run = story(policy, lease="l0", job="j0")
    run.order(d.WindDown(reason="completed", why="the story"))
    assert run.tell(TICK) == []


def test_on_demand_never_touches_spot() -> None:
    run = with_prices(waiting(OnDemand(), 2), {SPOT: 0.001, ON_DEMAND_OFFER: 1.0})
    assert run.tell(TICK) == [rent("l0", ON_DEMAND_OFFER), rent("l1", ON_DEMAND_OFFER)]


def test_on_demand_with_only_spot_on_offer_ends_the_run_and_says_so() -> None:
    run = waiting(OnDemand(), 1, spec=replace(SPEC, listings=SPEC.listings[:1]))
    assert run.tell(TICK) == [
        d.WindDown(reason="failed", why="only spot machines are on offer, and this placement uses on-demand ones only")
    ]


@pytest.mark.parametrize("policy", [Cheapest(), OnDemand()])
def test_machines_free_of_charge_are_rented_like_any_other(policy) -> None:
    here = Offer(provider="local", zone="here", machine="this machine", spot=False)
    free = Listing(offer=here, vcpus=8, memory_gb=16, slots=8, on_demand_usd_per_hour=0.0, billing="free")
    run = waiting(policy, 3, spec=replace(SPEC, listings=(free,), budget_usd=0.0))
    assert run.tell(TICK) == [replace(rent("l0", here), reserve_usd=0.0)]
