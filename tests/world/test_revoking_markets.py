"""Whole simulated runs on markets that revoke machines: by price, age, availability and zone."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import pytest

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Offer
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.availability import Availability
from shoestring.market.simulated.lifetimes import ExponentialLifetime
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import DrawnLifetimes, PriceCrossing, ZoneShocks
from shoestring.policies.housekeeping.closing import Closing
from tests.world.runs import decided, events_of, simulate, simulated_world
from tests.world.scenes import ON_DEMAND_OFFER, SPOT, dies_at_age, gone, listing, market, without_bill


def ends(entries) -> list[e.LeaseEnded]:
    return [without_bill(event) for event in events_of(entries, e.LeaseEnded)]


def test_a_price_above_the_on_demand_price_revokes_the_machine_and_the_trial_resumes_on_demand():
    listings = [listing(SPOT), listing(ON_DEMAND_OFFER)]
    book = PriceBook({SPOT: PriceTrace(SPOT, (0.0, 900.0), (0.36, 1.5))}, listings)
    world = simulated_world(SimulatedProvider(listings, book, PriceCrossing(book, listings), provision_spread=0.0))
    state, entries = simulate(world)

    assert events_of(entries, e.RevocationNoticed) == [e.RevocationNoticed(at=900.0, lease="l0", gone_at=1020.0)]
    assert [request.offer for request in decided(entries, d.RequestLease)] == [SPOT, ON_DEMAND_OFFER]
    # Running from 60 on, step 14 is done at 900 and, the notice being on time, saved.
    (first, second) = decided(entries, d.StartSegment)
    assert (first.resume_from, second.resume_from.step) == (None, 14)
    assert ends(entries)[0] == gone(1020.0, "revoked")
    assert (state.jobs["j0"].status, state.revocations, state.lost_steps) == ("finished", 1, 0)


def resumed_from(entries) -> list[int]:
    return [order.resume_from.step if order.resume_from else 0 for order in decided(entries, d.StartSegment)]


def test_machines_with_short_lifetimes_are_replaced_one_after_the_other():
    state, entries = simulate(simulated_world(market(dies_at_age(700.0))), max_steps=35)
    # Granted at 40, on notice at 620, gone at 740. Step 10 is done at 660 and saved at 666: then the next one is
    # requested, granted at 706, running at 729.5, on notice at 1286, and its step 20 saved at 1335.5; and so on.
    assert ends(entries)[:3] == [
        gone(740.0, "revoked", lease="l0"),
        gone(1406.0, "revoked", lease="l1"),
        gone(2075.5, "revoked", lease="l2"),
    ]
    assert resumed_from(entries) == [0, 10, 20, 30]
    assert (state.jobs["j0"].status, state.revocations, state.lost_steps) == ("finished", 3, 0)


def test_without_notice_and_saves_every_short_lifetime_loses_all_its_work():
    provider = market(dies_at_age(700.0), listings=[listing(SPOT, notice_s=0.0)])
    state, entries = simulate(simulated_world(provider), deadline_s=3600.0)
    # Ten steps between 60 and 740, every time: a trial of twenty never ends.
    revoked = [event for event in events_of(entries, e.LeaseEnded) if event.cause == "revoked"]
    assert len(revoked) == 4
    assert state.lost_steps >= 40 + 1
    assert set(resumed_from(entries)) == {0}
    assert state.jobs["j0"].status != "finished"


def test_with_periodic_saves_the_trial_finishes_on_the_same_market():
    provider = market(dies_at_age(700.0), listings=[listing(SPOT, notice_s=0.0)])
    saving = {"checkpointing": "periodic", "every_s": 300}
    state, entries = simulate(simulated_world(provider), options=saving)
    assert resumed_from(entries)[:2] == [0, 10]
    assert (state.jobs["j0"].status, state.jobs["j0"].step) == ("finished", 20)


def test_a_checkpoint_too_large_for_the_notice_loses_the_work():
    # 30 GB take 301 s to save, and the notice is 120 s. Slack would save earlier, for the deadline is near.
    world = simulated_world(market(dies_at_age(700.0)), checkpoint_gb=30.0)
    state, entries = simulate(world, deadline_s=1500.0, options={"checkpointing": "on_notice", "placement": "cheapest"})
    lost = [event for event in events_of(entries, e.SegmentEnded) if event.cause == "lost"]
    assert lost[0] == e.SegmentEnded(at=740.0, segment="s0", step=10, cause="lost")
    assert state.jobs["j0"].lost_steps >= 10
    assert resumed_from(entries)[:2] == [0, 0]


def test_a_machine_ends_with_availability_and_none_is_granted_until_it_returns():
    trace = Availability({SPOT: [(0.0, 515.0, 1), (2000.0, 1e9, 1)]})
    only_spot = market(trace, listings=[listing(SPOT, notice_s=30.0)], stock=trace)
    state, entries = simulate(simulated_world(only_spot))
    assert events_of(entries, e.RevocationNoticed) == [e.RevocationNoticed(at=485.0, lease="l0", gone_at=515.0)]
    assert ends(entries)[0] == gone(515.0, "revoked")
    first, *others = events_of(entries, e.LeaseDenied)
    assert first == e.LeaseDenied(at=520.0, lease="l1", reason="no_capacity")
    assert {event.reason for event in others} == {"no_capacity"}
    # Tried again a minute after the first denial, two after the second, and so on; granted 40 s after the first try
    # that finds a machine.
    tried = [520.0, *(event.at for event in others)]
    assert [later - earlier for earlier, later in pairwise(tried)] == [65.0, 125.0, 245.0, 485.0]
    assert events_of(entries, e.LeaseGranted)[1].at == tried[-1] + 600.0 + 40.0
    assert state.jobs["j0"].status == "finished"


# -- zones -------------------------------------------------------------------------------------------------------------
def in_zone(zone: str) -> Offer:
    return Offer(provider="aws", zone=zone, machine="small", spot=True)


@dataclass(frozen=True)
class TwoInEachZone:
    """Rents two machines in each of two zones and puts a trial on every one."""

    wants: ClassVar = frozenset({e.RunStarted, e.LeaseGranted})

    def decide(self, state, event) -> Iterator[d.Decision]:
        if isinstance(event, e.RunStarted):
            for zone in ("a", "a", "b", "b"):
                job, end_by = state.next_job(), state.deadline_at
                yield d.AddJob(job=job, config={"x": 0.5}, why="one for every machine")
                yield d.RunJob(job=job, until_step=state.spec.max_steps, why="to the end")
                yield d.RequestLease(lease=state.next_lease(), offer=in_zone(zone), end_by=end_by, why="two in each")
        else:
            job = next(iter(state.waiting))
            yield d.StartSegment(
                segment=state.next_segment(),
                job=job,
                leases=(event.lease,),
                config={},
                until_step=state.spec.max_steps,
                why="its own machine",
            )


def ends_by_zone(revoker) -> dict[str, list[float]]:
    listings = [listing(in_zone(zone)) for zone in ("a", "b")]
    world = simulated_world(market(revoker, listings=listings))
    _, entries = simulate(world, [TwoInEachZone(), Closing()], max_steps=10_000, budget_usd=100.0)
    zones = {request.lease: request.offer.zone for request in decided(entries, d.RequestLease)}
    found = defaultdict(list)
    for event in events_of(entries, e.LeaseEnded):
        if event.cause == "revoked":
            found[zones[event.lease]].append(event.at)
    return found


def test_a_shock_revokes_all_machines_of_one_zone_at_once():
    found = ends_by_zone(ZoneShocks(1.0, share=1.0, seed=3))
    assert [len(found[zone]) for zone in "ab"] == [2, 2]
    assert len(set(found["a"])) == len(set(found["b"])) == 1
    assert set(found["a"]) != set(found["b"])


def test_a_milder_shock_spares_some_machines_of_the_zone():
    found = [ends_by_zone(ZoneShocks(1.0, share=0.5, seed=seed)) for seed in range(6)]
    together = sum(len(set(zones["a"])) == 1 for zones in found)
    assert 0 < together < 6


def test_independent_lifetimes_end_at_different_times():
    found = ends_by_zone(DrawnLifetimes(ExponentialLifetime(3600.0), seed=3))
    times = found["a"] + found["b"]
    assert len(times) == len(set(times)) == 4


def test_the_cost_of_a_revoked_run_is_the_sum_of_its_bills():
    state, entries = simulate(simulated_world(market(dies_at_age(700.0))), max_steps=40)
    assert state.spent_usd == pytest.approx(sum(event.charged_usd for event in events_of(entries, e.LeaseEnded)))
    assert state.spent_usd >= 2 * 700 * 0.36 / 3600
