"""Refund seeking: a maximum just above the market, an hour per machine at most, and steps free of charge."""

from __future__ import annotations

from functools import cache
from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.types import Listing, Offer, PriceHistory
from shoestring.market.catalog import catalog
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.models.offer_cost import offer_prices
from shoestring.models.step_cost import Overheads
from shoestring.policies.placement.revocation_risk import FromPrices
from shoestring.policies.placement.spottune.refund_seeking import ABOVE_MARKET, RefundSeeking, a_little_above_the_market
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC, Story
from shoestring.world.sim.workload import SublinearSpeed, Workload
from shoestring.world.sim.world import SimWorld

HOUR_S, DAY_S = 3600.0, 86400.0


def machine(name: str, billing: str, *, spot: bool = True) -> Listing:
    offer = Offer(provider="aws", zone="a", machine=name, spot=spot)
    return Listing(offer=offer, vcpus=4, memory_gb=8, on_demand_usd_per_hour=1.0, billing=billing)


CLIMBING = machine("climbing", "aws_spot")
QUIET, BUSY = machine("quiet", "aws_spot"), machine("busy", "aws_spot")
GOOGLE, KEPT = machine("google", "gcp_preemptible"), machine("kept", "per_second", spot=False)


class Jumping:
    """All cost the same now. `busy` was more expensive for a minute in every twenty of the week before; `climbing` was
    never more expensive than now, and rose by a thousandth every twenty minutes."""

    def usd_per_hour(self, offer: Offer, _at: float) -> float:
        return 0.3 if offer.spot else 1.0

    def history(self, offer: Offer, until: float) -> PriceHistory:
        times, prices = [-7 * DAY_S], [0.3]
        if offer == BUSY.offer:
            for minute in range(20, 7 * 24 * 60, 20):
                times += [-7 * DAY_S + 60.0 * minute, -7 * DAY_S + 60.0 * (minute + 1)]
                prices += [0.5, 0.3]
        if offer == CLIMBING.offer:
            rises = range(7 * 24 * 3)
            times = [-7 * DAY_S + 1200.0 * number for number in rises]
            prices = [0.3 * 1.001 ** (number - rises[-1]) for number in rises]
        return PriceHistory(offer=offer, times=tuple(times), usd_per_hour=tuple(prices), until=until)


def story(*listings: Listing, **fields) -> Story:
    seeking_run = Story(RefundSeeking(), spec=replace(SPEC, listings=listings, max_steps=1000, **fields))
    seeking_run.feed = seeking_run.state.feed = Jumping()
    seeking_run.begin()
    seeking_run.add("j0", until_step=1000)
    return seeking_run


def requested(seeking_run: Story, at: float = 10.0) -> list[d.RequestLease]:
    return [x for x in seeking_run.tell(e.TimerFired(at=at, name="tick")) if isinstance(x, d.RequestLease)]


def test_of_two_machines_at_one_price_the_one_that_will_be_preempted_is_rented_at_a_maximum_just_above() -> None:
    (request,) = requested(story(QUIET, BUSY))
    assert request.offer == BUSY.offer
    assert request.max_usd_per_hour == pytest.approx(0.3 * (1 + ABOVE_MARKET))
    assert "free of charge if so: maximum price $0.30015/h" in request.why


def test_the_reason_does_not_round_the_maximum_to_the_price() -> None:
    (request,) = requested(story(BUSY))
    assert "maximum price $0.30015/h, 0.05% above the market's" in request.why


def test_the_guard_sets_aside_what_the_maximum_allows_and_no_more() -> None:
    (request,) = requested(story(BUSY))
    assert request.reserve_usd == pytest.approx(0.3 * (1 + ABOVE_MARKET) * SPEC.slice_s / HOUR_S)
    (poor,) = requested(story(BUSY, budget_usd=0.03))  # less than two minutes at the on-demand price
    assert 270.0 < poor.end_by - 10.0 < SPEC.slice_s


def test_where_the_first_hour_is_never_refunded_there_is_no_maximum_and_the_reason_says_so() -> None:
    for listing in (GOOGLE, KEPT):
        (request,) = requested(story(listing))
        assert request.max_usd_per_hour is None
        assert "its first hour is never refunded" in request.why


def test_only_machines_whose_first_hour_may_be_refunded_are_left_before_it_ends() -> None:
    for listing, timers in ((BUSY, 1), (GOOGLE, 0), (KEPT, 0)):
        seeking_run = story(listing)
        requested(seeking_run)
        decided = seeking_run.tell(e.LeaseGranted(at=50.0, lease="l0"))
        wakes = [x for x in decided if isinstance(x, d.WakeAt)]
        assert wakes == [d.WakeAt(name="rotate:l0", at=50.0 + HOUR_S - 180.0, about="l0", why=ANY)][:timers]


def test_a_maximum_overtaken_by_the_price_is_not_requested_again_at_once() -> None:
    seeking_run = story(BUSY)
    requested(seeking_run)
    assert seeking_run.tell(e.LeaseDenied(at=15.0, lease="l0", reason="price")) == [
        d.WakeAt(name="retry-placement", at=75.0, why=ANY)
    ]
    assert [x.lease for x in requested(seeking_run, at=75.0)] == ["l1"]


def test_prices_of_the_last_days_give_the_chance_of_preemption_at_a_maximum() -> None:
    seeking_run = story(QUIET, BUSY, KEPT)
    rows = offer_prices(seeking_run.view, "j0", Overheads(), FromPrices(), bid=a_little_above_the_market)
    chances = {row.listing: row.chance for row in rows}
    assert chances[BUSY] > 0.8
    assert chances[QUIET] < 0.15
    assert chances[KEPT] == 0.0


def test_a_price_that_keeps_rising_is_expected_to_exceed_a_maximum_that_it_never_exceeded() -> None:
    climbing_run = story(CLIMBING)
    (row,) = offer_prices(climbing_run.view, "j0", Overheads(), FromPrices(), bid=a_little_above_the_market)
    assert row.chance > 0.85
    (request,) = requested(story(QUIET, CLIMBING))
    assert request.offer == CLIMBING.offer


# -- on a whole market of the auction years ----------------------------------------------------------------------------
@cache
def played(placement: str) -> list[Entry]:
    listings = [
        catalog.listing(catalog.machine("aws", name), zone, spot=spot)
        for name in ("m4.large", "r4.large")
        for zone in ("us-east-1a", "us-east-1b")
        for spot in (True, False)
    ]
    market = SimulatedProvider.auction(listings, seed=3)
    start = market.start + 3 * DAY_S
    spec = replace(
        SPEC,
        recipe="random",
        trials=4,
        max_steps=60,
        deadline_s=48 * HOUR_S,
        listings=tuple(listings),
        options={"placement": placement, "checkpointing": "on_notice"},
    )
    workload = Workload(curve=lambda _: lambda step: {"loss": 1 / step}, seconds_per_step=SublinearSpeed(400.0))
    journal = MemoryJournal()
    first = [e.RunStarted(at=start, spec=spec, seed=0)]
    run(SimWorld(market, workload, start=start), journal, recipes.build(spec), BudgetAndDeadline(), first=first)
    return list(journal.read())


def free_share(entries: list[Entry]) -> float:
    """The share of all steps that were trained on machines which were refunded."""
    free = {x.event.lease for x in entries if isinstance(x.event, e.LeaseEnded) and x.event.charged_usd == 0}
    starts = {x.segment: x for entry in entries for x in entry.decisions if isinstance(x, d.StartSegment)}
    steps = {True: 0, False: 0}
    for entry in entries:
        if isinstance(entry.event, e.SegmentEnded):
            start = starts[entry.event.segment]
            begun = 0 if start.resume_from is None else start.resume_from.step
            steps[start.leases[0] in free] += entry.event.step - begun
    return steps[True] / sum(steps.values())


def test_a_preemption_in_the_first_hour_is_free_of_charge() -> None:
    entries = played("refund_seeking")
    granted = {x.event.lease: x.event.at for x in entries if isinstance(x.event, e.LeaseGranted)}
    preempted = [x.event for x in entries if isinstance(x.event, e.LeaseEnded) and x.event.cause == "revoked"]
    early = [lost for lost in preempted if lost.at - granted[lost.lease] < HOUR_S]
    assert len(early) > 20
    assert all(lost.charged_usd == 0 and lost.refunded_usd > 0 for lost in early)


def test_more_steps_are_free_than_on_the_cheapest_steps_and_all_are_trained() -> None:
    seeking, plain = played("refund_seeking"), played("cheapest_step")
    for entries in (seeking, plain):
        (concluded,) = (x for entry in entries for x in entry.decisions if isinstance(x, d.Conclude))
        assert concluded.why == "all work is done"
    assert free_share(seeking) > 0.3
    assert free_share(seeking) > free_share(plain) + 0.2


class TestRefundSeeking(PolicySuite):
    spec = replace(
        SPEC,
        max_steps=60,
        deadline_s=30 * HOUR_S,
        listings=tuple(replace(x, billing="aws_spot" if x.offer.spot else "per_second") for x in SPEC.listings),
    )

    def policies(self, spec):
        return recipes.build(replace(spec, recipe="asha", options={"placement": "refund_seeking"}))
