"""The guard's law: billed + the worst case of every open lease <= budget, and no lease outlives the deadline."""

from __future__ import annotations

import math
import random
import signal
from bisect import bisect_right
from collections.abc import Iterator
from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring.errors import IllegalDecision
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.codec import decode_turn, encode_turn
from shoestring.kernel.records import Lease
from shoestring.kernel.types import Offer, PriceHistory
from shoestring.market.billing import billing_rule
from shoestring.market.catalog.catalog import free_listing
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, ConstantPrices, Story, story
from tests.numbers import over_numbers

MOST_CPU_S = 5.0
"""Many times what any test here takes. It is CPU time: other programs do not use it up."""


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """A guard that looks for the end of a lease without end fails, instead of looking for ever."""

    def failed(*_: object) -> None:
        raise AssertionError(f"no answer within {MOST_CPU_S:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, failed)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_S)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    signal.signal(signal.SIGVTALRM, before)


def ask(run: Story, *, end_by: float = 900.0, offer: Offer = SPOT, most: float | None = None) -> d.Decision:
    lease = run.view.next_lease()
    (answer,) = run.order(d.RequestLease(lease=lease, offer=offer, end_by=end_by, max_usd_per_hour=most, why="a test"))
    return answer


def extend(run: Story, end_by: float) -> d.Decision:
    (answer,) = run.order(d.ExtendLease(lease="l0", end_by=end_by, why="a test"))
    return answer


def test_a_lease_reserves_its_worst_case_which_is_the_list_price() -> None:
    assert ask(story()).reserve_usd == pytest.approx(900 / 3600 * 1.0)


def test_a_maximum_price_lowers_the_worst_case_of_spot_but_not_of_on_demand() -> None:
    run = story()
    assert ask(run, most=0.4).reserve_usd == pytest.approx(900 / 3600 * 0.4)
    assert ask(run, most=0.4, offer=ON_DEMAND_OFFER).reserve_usd == pytest.approx(900 / 3600 * 1.0)


def test_a_lease_is_cut_down_to_the_free_budget() -> None:
    answer = ask(story(spec=replace(SPEC, budget_usd=0.1)))
    assert 358.0 < answer.end_by <= 360.0
    assert answer.reserve_usd <= 0.1


def test_a_lease_is_cut_down_to_the_deadline() -> None:
    assert ask(story(spec=replace(SPEC, deadline_s=300.0))).end_by == 300.0


def test_a_lease_too_short_to_be_of_use_is_refused_with_the_sum_that_is_missing() -> None:
    """A minute and a half to start, two to wind down, and a minute of work."""
    answer = ask(story(spec=replace(SPEC, budget_usd=0.07)))
    assert answer == d.Refused(wish=ANY, why="$0.07 of the budget is free, 4m30 of small spot in a may cost $0.075")
    assert "before the deadline" in ask(story(spec=replace(SPEC, deadline_s=30.0))).why


def test_a_lease_that_was_planned_shorter_than_usual_is_granted() -> None:
    assert ask(story(), end_by=100.0).end_by == 100.0
    refused = ask(story(spec=replace(SPEC, budget_usd=0.01)), end_by=100.0)
    assert refused == d.Refused(wish=ANY, why="$0.01 of the budget is free, 1m of small spot in a may cost $0.017")


def test_machines_of_your_own_are_free_to_be_held_for_seconds() -> None:
    mine = free_listing()
    run = story(spec=replace(SPEC, listings=(mine,), deadline_s=20.0, wind_down_s=1.0, budget_usd=0.0))
    run.state.feed = ConstantPrices({mine.offer: 0.0})
    assert isinstance(ask(run, offer=mine.offer, end_by=20.0), d.RequestLease)


def test_what_other_leases_reserve_is_not_free() -> None:
    run = story(spec=replace(SPEC, budget_usd=0.35))
    ask(run)
    answer = ask(run)
    assert answer.reserve_usd <= 0.1 + 1e-9
    assert isinstance(ask(run), d.Refused)


def test_money_reserved_and_not_spent_is_free_again() -> None:
    run = story(spec=replace(SPEC, budget_usd=0.25), lease="l0")
    assert isinstance(ask(run), d.Refused)
    run.happened(e.LeaseEnded(at=10.0, lease="l0", cause="released", charged_usd=0.01))
    assert isinstance(ask(run), d.RequestLease)


def test_an_extension_counts_what_was_paid_so_far_at_its_real_price() -> None:
    run = story(lease="l0")
    run.happened(e.TimerFired(at=450.0, name="x"))
    answer = extend(run, 1350.0)
    assert answer.reserve_usd == pytest.approx(450 / 3600 * 0.3 + 900 / 3600 * 1.0)


def test_an_extension_needs_a_granted_lease_that_still_runs() -> None:
    run = story()
    ask(run)
    assert extend(run, 1800.0).why == "l0 has not been granted yet"
    run = story(lease="l0", spec=replace(SPEC, budget_usd=0.25))
    run.happened(e.TimerFired(at=950.0, name="x"))
    assert extend(run, 1800.0).why == "the prepaid time of l0 is over"
    assert run.view.reserved_usd <= 0.25


def test_nothing_new_is_started_when_the_run_is_ending() -> None:
    run = story(lease="l0", job="j0")
    run.order(d.WindDown(reason="deadline_reached", why="the deadline is near"))
    start = d.StartSegment(segment="s0", job="j0", leases=("l0",), config={}, until_step=9, why="a test")
    (answer,) = run.order(start)
    assert answer == d.Refused(wish=start, why="the run is ending: the deadline is near")
    assert isinstance(ask(run), d.Refused)
    assert isinstance(extend(run, 1800.0), d.Refused)


def test_other_decisions_pass_untouched() -> None:
    guard, run = BudgetAndDeadline(), story()
    for decision in (
        d.WakeAt(name="x", at=1.0, why="x"),
        d.WindDown(reason="completed", why="x"),
        d.ReleaseLease(lease="l9", why="x"),
    ):
        assert guard(run.view, decision) is decision


@pytest.mark.parametrize("end_by", [math.nan, -math.inf, 0.0])
def test_a_senseless_end_is_refused(end_by: float) -> None:
    assert isinstance(ask(story(), end_by=end_by), d.Refused)


def test_for_ever_means_until_the_deadline() -> None:
    assert ask(story(), end_by=math.inf).end_by == SPEC.deadline_s


@pytest.mark.parametrize("most", [math.nan, -0.5, 0.0])
def test_a_senseless_maximum_is_a_bug_and_reserves_nothing(most: float) -> None:
    run = story()
    with pytest.raises(IllegalDecision, match="an hour at most"):
        ask(run, most=most)
    assert run.view.reserved_usd == 0.0
    assert not run.state.leases


class Prices:
    """A price that changes every ten minutes, never above the ceiling."""

    def __init__(self, ceiling: float, rng: random.Random) -> None:
        self.times = tuple(600.0 * index for index in range(100))
        self.usd = tuple(ceiling * rng.choice((1.0, rng.random())) for _ in self.times)

    def usd_per_hour(self, offer: Offer, at: float) -> float:
        return self.history(offer, at).usd_per_hour[-1]

    def history(self, offer: Offer, until: float) -> PriceHistory:
        known = bisect_right(self.times, until)
        return PriceHistory(offer=offer, times=self.times[:known], usd_per_hour=self.usd[:known], until=until)


class Market:
    """Leases requested, granted late, extended and ended by any cause, with money for a few machine hours only."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now = rng, 0.0
        billing = rng.choice(("per_second", "per_hour", "aws_spot", "gcp_preemptible", "free"))
        self.listing = replace(
            rng.choice(SPEC.listings), on_demand_usd_per_hour=10 ** rng.uniform(-3, 2), billing=billing
        )
        self.most = self.listing.on_demand_usd_per_hour * rng.uniform(0.1, 1.5) if self.listing.offer.spot else None
        self.ceiling = self.listing.ceiling_usd_per_hour(self.most)
        self.prices = Prices(self.ceiling, rng)
        self.budget = self.ceiling * rng.uniform(0.05, 4.0)
        deadline_s = 3600 * rng.uniform(0.1, 12)
        self.run = story(spec=replace(SPEC, listings=(self.listing,), budget_usd=self.budget, deadline_s=deadline_s))
        self.run.feed = self.run.state.feed = self.prices

    def go_on(self) -> None:
        act = self.rng.choice(
            (self.ask, self.ask, self.grant, self.grant, self.extend, self.extend, self.end, self.wait)
        )
        act()

    def lease(self) -> Lease | None:
        leases = list(self.run.state.leases.values())
        return self.rng.choice(leases) if leases else None

    def ask(self) -> None:
        ask(self.run, end_by=self.now + self.rng.uniform(30, 7200), offer=self.listing.offer, most=self.most)

    def wait(self) -> None:
        self.now += self.rng.uniform(1, 1800)
        self.run.happened(e.TimerFired(at=self.now, name="x"))

    def grant(self) -> None:
        lease = self.lease()
        if lease is not None and lease.granted_at is None and self.now < lease.end_by:
            self.run.happened(e.LeaseGranted(at=self.now, lease=lease.id))

    def extend(self) -> None:
        lease = self.lease()
        if lease is not None:
            end_by = self.now + self.rng.uniform(1, 7200)
            self.run.order(d.ExtendLease(lease=lease.id, end_by=end_by, why="a test"))

    def end(self) -> None:
        """Now, or when its prepaid time ran out; billed by the real rule, which may not exceed the reserve."""
        lease = self.lease()
        if lease is None:
            return
        ended, cause, charged = min(self.now, lease.end_by), self.rng.choice(("revoked", "released")), 0.0
        if lease.granted_at is not None:
            prices = self.prices.history(lease.offer, ended)
            charged = (
                billing_rule(self.listing.billing)
                .charge(lease.granted_at, ended, prices, cause, ceiling_usd_per_hour=self.ceiling)
                .charged_usd
            )
            assert charged <= lease.reserve_usd
        self.run.happened(e.LeaseEnded(at=ended, lease=lease.id, cause=cause, charged_usd=charged))

    def assert_lawful(self) -> None:
        view = self.run.view
        assert view.spent_usd + view.reserved_usd <= self.budget * (1 + 1e-12)
        assert all(lease.end_by <= view.deadline_at for lease in view.leases.values())
        assert all(lease.reserve_usd >= 0.0 for lease in view.leases.values())


@over_numbers(150)
def test_whatever_is_proposed_the_law_holds(seed: int) -> None:
    market = Market(random.Random(seed))
    for _ in range(60):
        market.go_on()
        market.assert_lawful()


# -- machines that cost money before they could be used ----------------------------------------------------------------
def test_what_a_node_cost_while_it_started_is_reserved_when_it_is_extended() -> None:
    run = story()
    ask(run, end_by=900.0)
    run.happened(e.LeaseGranted(at=300.0, lease="l0", billed_from=100.0))
    longer = extend(run, end_by=1900.0)
    assert longer.reserve_usd == pytest.approx((300 - 100) / 3600 * 0.3 + (1900 - 300) / 3600 * 1.0)


def test_the_time_a_node_took_to_start_is_on_the_receipt_as_paid_and_starting() -> None:
    run = story()
    ask(run)
    run.happened(e.LeaseGranted(at=300.0, lease="l0", billed_from=100.0))
    run.happened(e.LeaseEnded(at=700.0, lease="l0", cause="released", charged_usd=0.05))
    account = run.state.accounts[SPOT]
    assert (account.seconds, account.time.starting_s) == (600.0, 200.0)


def test_a_grant_without_it_is_written_as_before() -> None:
    assert b"billed_from" not in encode_turn(e.LeaseGranted(at=1.0, lease="l0"), [])
    early = e.LeaseGranted(at=1.0, lease="l0", billed_from=0.5)
    assert decode_turn(encode_turn(early, []))[0] == early
