"""Cheapest step: speed, price and risk in one number, learned during the run."""

from __future__ import annotations

from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Pace
from shoestring.kernel.types import Listing, Offer
from shoestring.models.offer_cost import interruption_chance, offer_prices
from shoestring.models.step_cost import Overheads
from shoestring.policies.placement.cheapest_step import CheapestStep
from shoestring.policies.placement.revocation_risk import AssumedRate
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC, ConstantPrices, Story


def machine(name: str, vcpus: float, usd: float, *, spot: bool = True, **fields) -> Listing:
    offer = Offer(provider="aws", zone="a", machine=name, spot=spot)
    return Listing(offer=offer, vcpus=vcpus, memory_gb=8, on_demand_usd_per_hour=usd, **fields)


SMALL, LARGE = machine("small", 2, 1.0), machine("large", 8, 2.4)
PRICES = {SMALL.offer: 0.3, LARGE.offer: 0.72}
OVERHEADS = Overheads(provision_s=60.0, start_s=20.0)


def story(*listings: Listing, prices: dict[Offer, float] | None = None, **fields) -> Story:
    run = Story(CheapestStep(), spec=replace(SPEC, listings=listings, **fields))
    now = {x.offer: x.on_demand_usd_per_hour for x in listings} | PRICES | (prices or {})
    run.feed = run.state.feed = ConstantPrices(now)
    run.begin()
    run.add("j0", until_step=9)
    return run


def requested(run: Story, at: float = 10.0) -> list[d.RequestLease]:
    return [x for x in run.tell(e.TimerFired(at=at, name="tick")) if isinstance(x, d.RequestLease)]


def test_before_anything_is_measured_four_times_the_cpus_for_less_than_three_times_the_price_is_the_cheaper_step() -> (
    None
):
    run = story(SMALL, LARGE)
    assert [x.offer for x in requested(run)] == [LARGE.offer]


def test_what_a_trial_reported_counts_more_than_cpus() -> None:
    run = story(SMALL, LARGE)
    before = offer_prices(run.view, "j0", OVERHEADS, AssumedRate())
    assert [row.listing for row in before] == [LARGE, SMALL]
    run.state.jobs["j0"].paces |= {("large", 1): Pace(20, 20 * 60.0), ("small", 1): Pace(20, 20 * 61.0)}
    after = offer_prices(run.view, "j0", OVERHEADS, AssumedRate())
    assert [row.listing for row in after] == [SMALL, LARGE]


def test_an_on_demand_machine_is_chosen_where_spot_is_hardly_cheaper_and_often_preempted() -> None:
    on_demand = machine("small", 2, 1.0, spot=False)
    run = story(SMALL, on_demand, prices={SMALL.offer: 0.95})
    for interruptions_per_hour, best in ((0.02, SMALL), (20.0, on_demand)):
        assert offer_prices(run.view, "j0", OVERHEADS, AssumedRate(interruptions_per_hour))[0].listing == best


def test_spot_above_the_on_demand_price_is_never_rented() -> None:
    run = story(SMALL, LARGE, prices={LARGE.offer: 3.1})
    assert [x.offer for x in requested(run)] == [SMALL.offer]


def test_preemptions_in_this_run_raise_the_expected_rate() -> None:
    run = story(SMALL, LARGE)
    assert interruption_chance(run.view, LARGE, 0.02) < 0.021
    requested(run)
    run.happened(e.LeaseGranted(at=15.0, lease="l0"))
    run.happened(e.RevocationNoticed(at=20.0, lease="l0", gone_at=140.0))
    assert interruption_chance(run.view, LARGE, 0.02) > 0.06
    assert interruption_chance(run.view, SMALL, 0.02) < 0.021


def test_hours_without_a_loss_count_too() -> None:
    run = story(SMALL, LARGE)
    requested(run)
    run.happened(e.LeaseGranted(at=15.0, lease="l0"), e.TimerFired(at=5 * 3600.0, name="tick"))
    assert interruption_chance(run.view, LARGE, 0.02) < interruption_chance(run.view, SMALL, 0.02)


def test_the_reason_names_all_three() -> None:
    run = story(SMALL, LARGE)
    (request,) = requested(run)
    assert "per step" in request.why
    assert "$0.7200/h" in request.why
    assert "2.0% chance of preemption per hour" in request.why


def test_near_the_deadline_on_demand_comes_first() -> None:
    on_demand = machine("small", 2, 1.0, spot=False)
    run = story(SMALL, LARGE, on_demand)
    assert [x.offer for x in requested(run, at=0.9 * SPEC.deadline_s)] == [on_demand.offer]


class TestCheapestStep(PolicySuite):
    def policies(self, spec):
        return recipes.build(replace(spec, recipe="asha", options={"placement": "cheapest_step"}))
