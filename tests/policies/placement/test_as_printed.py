"""Algorithm 1 to the letter: a random bid, the printed cost of a step, a machine for each trial, for an hour."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Pace
from shoestring.kernel.types import Listing, Offer, PriceHistory
from shoestring.policies.placement.revocation_risk import AssumedRate
from shoestring.policies.placement.spottune.as_printed import AsPrinted
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC, Story


def machine(name: str, vcpus: float, usd: float = 1.0, *, spot: bool = True, **fields) -> Listing:
    offer = Offer(provider="aws", zone="a", machine=name, spot=spot)
    return Listing(offer=offer, vcpus=vcpus, memory_gb=8, on_demand_usd_per_hour=usd, **fields)


SMALL, LARGE, KEPT = machine("small", 2), machine("large", 8), machine("kept", 1, 0.01, spot=False)


class Prices:
    """Each offer has one price until a moment, and another from then on."""

    def __init__(self, before: dict[Offer, float], at: float = 0.0, then: dict[Offer, float] | None = None) -> None:
        self._before, self._at, self._then = before, at, {**before, **(then or {})}

    def usd_per_hour(self, offer: Offer, at: float) -> float:
        return (self._then if at >= self._at else self._before)[offer]

    def history(self, offer: Offer, until: float) -> PriceHistory:
        both = ((-7200.0, self._before[offer]), (self._at, self._then[offer]))
        times, prices = zip(*(pair for pair in both if pair[0] <= until), strict=True)
        return PriceHistory(offer=offer, times=times, usd_per_hour=prices, until=until)


def story(*listings: Listing, prices: Prices | None = None, trials: int = 1, **fields) -> Story:
    run = Story(AsPrinted(AssumedRate()), spec=replace(SPEC, listings=listings, **fields))
    run.feed = run.state.feed = prices or Prices({x.offer: 0.3 for x in listings})
    run.begin()
    for number in range(trials):
        run.add(f"j{number}", until_step=9)
    return run


def requested(run: Story, at: float = 10.0) -> list[d.RequestLease]:
    return [x for x in run.tell(e.TimerFired(at=at, name="tick")) if isinstance(x, d.RequestLease)]


def test_at_one_price_the_machine_with_the_fewest_cpus_looks_fastest_and_on_demand_is_not_in_the_pool() -> None:
    (requests,) = requested(story(LARGE, SMALL, KEPT))
    assert requests.offer == SMALL.offer


def test_once_a_pace_is_known_it_replaces_the_guess() -> None:
    run = story(LARGE, SMALL)
    run.state.jobs["j0"].paces |= {("large", 1): Pace(20, 20 * 60.0), ("small", 1): Pace(20, 20 * 240.0)}
    (requests,) = requested(run)
    assert requests.offer == LARGE.offer


def test_the_bid_is_the_price_and_up_to_twenty_cents_sampled_anew_for_each_trial() -> None:
    requests = requested(story(SMALL, trials=4))
    bids = [request.max_usd_per_hour for request in requests]
    assert len(set(bids)) == 4
    assert all(0.30001 <= bid <= 0.5 for bid in bids)
    assert [request.reserve_usd for request in requests] == [
        pytest.approx(bid * SPEC.slice_s / 3600) for bid in bids
    ]  # the guard sets aside what the bid may cost, not the on-demand price


def test_the_price_that_counts_is_the_mean_of_the_last_hour() -> None:
    low = Prices({SMALL.offer: 0.9, LARGE.offer: 0.4}, at=3600.0, then={SMALL.offer: 0.1, LARGE.offer: 0.4})
    other = replace(LARGE, vcpus=SMALL.vcpus)
    half_an_hour, an_hour = (requested(story(SMALL, other, prices=low), at=3600.0 + s)[0] for s in (1200.0, 3000.0))
    assert (half_an_hour.offer, an_hour.offer) == (other.offer, SMALL.offer)


def test_each_trial_gets_the_machine_that_was_requested_it_and_no_other() -> None:
    run = story(SMALL, trials=2)
    decided = run.tell(e.TimerFired(at=10.0, name="tick"))
    tags = [(x.job, x.tags) for x in decided if isinstance(x, d.TagJob)]
    assert tags == [("j0", {"vm": "l0"}), ("j1", {"vm": "l1"})]
    (start,) = run.tell(e.LeaseGranted(at=50.0, lease="l1"))[1:]
    assert (start.job, start.leases) == ("j1", ("l1",))


def test_a_machine_is_shut_down_when_its_trial_is_done_though_another_waits() -> None:
    run = story(SMALL, trials=2, max_machines=1)
    requested(run)
    run.tell(e.LeaseGranted(at=50.0, lease="l0"))
    decided = run.end("j0")
    assert [x for x in decided if not isinstance(x, d.WakeAt)] == [d.ReleaseLease(lease="l0", why=ANY)]


def test_after_more_than_an_hour_and_not_before_the_trial_leaves() -> None:
    run = story(SMALL)
    requested(run)
    timer, _ = run.tell(e.LeaseGranted(at=50.0, lease="l0"))
    assert timer == d.WakeAt(name="rotate:l0", at=50.0 + 3610.0, about="l0", why=ANY)
    run.happened(e.SegmentStarted(at=60.0, segment="s0"))
    run.happened(e.JobReported(at=3000.0, segment="s0", job="j0", step=5, metrics={"loss": 1.0}))
    assert d.HaltSegment(segment="s0", grace_s=ANY, why=ANY) in run.tell(e.TimerFired(at=timer.at, name=timer.name))


def test_a_trial_whose_machine_is_preempted_gets_another() -> None:
    run = story(SMALL)
    requested(run)
    run.tell(e.LeaseGranted(at=50.0, lease="l0"))
    run.tell(e.RevocationNoticed(at=60.0, lease="l0", gone_at=180.0))
    decided = run.end("j0", "halted", step=0)
    assert [x.lease for x in decided if isinstance(x, d.RequestLease)] == ["l1"]


def test_a_denied_offer_is_not_requested_again_at_once() -> None:
    run = story(SMALL)
    requested(run)
    denied = run.tell(e.LeaseDenied(at=15.0, lease="l0", reason="price"))
    assert denied == [d.WakeAt(name="retry-placement", at=75.0, why=ANY)]
    assert requested(run, at=75.0)


def test_a_study_with_nothing_in_the_pool_ends_with_that_reason() -> None:
    run = story(KEPT)
    (ended,) = run.tell(e.TimerFired(at=10.0, name="tick"))
    assert ended == d.WindDown(reason="failed", why="no spot machine on offer has the 1 slots that j0 needs")


class TestAsPrinted(PolicySuite):
    spec = replace(SPEC, max_steps=60, deadline_s=30 * 3600.0)

    def policies(self, spec):
        return recipes.build(replace(spec, recipe="asha", options={"placement": "spottune_as_printed"}))


class TestSpotTuneAsPrinted(PolicySuite):
    spec = replace(SPEC, recipe="spottune_as_printed", trials=12, options={"theta": 0.5, "mcnt": 2})

    def policies(self, spec):
        return recipes.build(spec)


def test_a_bid_that_the_budget_could_not_reserve_for_two_slices_is_lowered() -> None:
    """Else the machine is paid for minutes, its trial is stopped, and the next bid is as high."""
    cheap = {SMALL.offer: 0.0001}
    (rich,) = requested(story(SMALL, prices=Prices(cheap)))
    (poor,) = requested(story(SMALL, prices=Prices(cheap), budget_usd=0.001, slice_s=900.0))
    assert rich.max_usd_per_hour is not None
    assert rich.max_usd_per_hour > 0.002
    assert poor.max_usd_per_hour == pytest.approx(0.002)


def test_after_a_denial_one_trial_asks_for_all() -> None:
    run = story(SMALL, trials=3, max_machines=3)
    for lease in [request.lease for request in requested(run)]:
        run.happened(e.LeaseDenied(at=15.0, lease=lease, reason="no_capacity"))
    assert len(requested(run, at=80.0)) == 1
