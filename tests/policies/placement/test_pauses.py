"""After a denial an offer rests, for longer after each one in a row: what is not to be had gets few requests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import shoestring as ss
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Denial
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.policies.placement.renting.facts import MOST_RETRY_AFTER_S, rests_until
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story, story


def deny(run: Story, at: float, *, machines: int = 1, reason: Denial = "no_capacity") -> None:
    run.happened(e.TimerFired(at=at - 5.0, name="tick"))
    leases = []
    for _ in range(machines):
        leases.append(run.view.next_lease())
        run.order(d.RequestLease(lease=leases[-1], offer=SPOT, end_by=at + 900.0, reserve_usd=0.0, why="the story"))
    for lease in leases:
        run.happened(e.LeaseDenied(at=at, lease=lease, reason=reason))


def pauses(run: Story, denials: int) -> list[float]:
    """How long the offer rests after each of several denials in a row."""
    found, at = [], 10.0
    for _ in range(denials):
        deny(run, at)
        found.append(rests_until(run.view, SPOT) - at)
        at = rests_until(run.view, SPOT) + 5.0
    return found


def test_each_denial_in_a_row_doubles_the_pause_to_ten_minutes_and_hours_of_denials_to_an_hour() -> None:
    found = pauses(story(spec=replace(SPEC, deadline_s=30 * 86400.0)), 125)
    assert found[:6] == [60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    assert found[29] == 30 * 30.0
    assert found[119:] == [MOST_RETRY_AFTER_S] * 6


def test_near_the_deadline_pauses_are_a_part_of_the_time_left() -> None:
    run = story()
    for late in (9000.0, 8000.0, 7000.0, 6000.0, 4000.0):
        deny(run, SPEC.deadline_s - late)
    assert rests_until(run.view, SPOT) == SPEC.deadline_s - 4000.0 + 600.0
    deny(run, SPEC.deadline_s - 2000.0)
    assert rests_until(run.view, SPOT) == SPEC.deadline_s - 2000.0 + 500.0
    deny(run, SPEC.deadline_s - 300.0)
    assert rests_until(run.view, SPOT) == SPEC.deadline_s - 300.0 + 75.0


def test_a_hundred_machines_denied_at_once_are_one_setback() -> None:
    run = story()
    deny(run, 10.0, machines=100)
    assert rests_until(run.view, SPOT) == 70.0


def test_a_grant_ends_the_pauses() -> None:
    run = story()
    pauses(run, 5)
    run.rent(run.view.next_lease())
    assert rests_until(run.view, SPOT) <= run.view.denied_at[SPOT] + 60.0


def test_a_request_that_waited_in_a_queue_is_made_again_soon() -> None:
    """On a busy cluster, where the place in the queue is lost with every pause."""
    run = story()
    for number in range(1, 6):
        lease, at = run.view.next_lease(), 1000.0 * number
        run.happened(e.TimerFired(at=at, name="tick"))
        run.order(d.RequestLease(lease=lease, offer=SPOT, end_by=at + 900.0, why="the story"))
        run.happened(e.LeaseDenied(at=at + 901.0, lease=lease, reason="no_capacity"))
        assert rests_until(run.view, SPOT) == at + 961.0


def test_an_offer_whose_machines_are_preempted_before_a_trial_runs_rests_as_if_denied() -> None:
    run = story()
    for number, pause_s in ((1, 60.0), (2, 120.0), (3, 240.0)):
        at, lease = 1000.0 * number, run.view.next_lease()
        run.happened(e.TimerFired(at=at, name="tick"))
        run.order(d.RequestLease(lease=lease, offer=SPOT, end_by=at + 900.0, why="the story"))
        run.happened(e.LeaseGranted(at=at + 40.0, lease=lease))
        run.happened(e.LeaseEnded(at=at + 50.0, lease=lease, cause="revoked", charged_usd=0.0))
        assert rests_until(run.view, SPOT) == at + 50.0 + pause_s
    lease = run.view.next_lease()
    run.add("j0", until_step=9)
    run.rent(lease)
    run.start("s0", "j0", lease, running_since=run.view.now)
    assert rests_until(run.view, SPOT) <= run.view.now


def test_an_offer_whose_requests_failed_is_tried_with_one_machine_before_more_are_requested() -> None:
    run = story(Cheapest())
    for number in range(3):
        run.add(f"j{number}", until_step=9)
    for offer in (SPOT, ON_DEMAND_OFFER):
        lease = run.view.next_lease()
        run.order(d.RequestLease(lease=lease, offer=offer, end_by=900.0, why="the story"))
        run.happened(e.LeaseDenied(at=10.0, lease=lease, reason="no_capacity"))
    decided = run.tell(e.TimerFired(at=71.0, name=RETRY))
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == [SPOT, ON_DEMAND_OFFER]
    decided = run.tell(e.LeaseGranted(at=111.0, lease="l2"))
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == [SPOT]


STUDY = {
    "space": {"x": ss.uniform(0.0, 1.0)},
    "minimize": "loss",
    "trials": 4,
    "max_steps": 3,
    "recipe": "random",
    "budget": 5,
    "market": {"kind": "modern", "denial_share": 1.0},
}
"""On a market that denies every spot request."""


@pytest.mark.parametrize("placement", ["cheapest", "slack", "cheapest_step", "refund_seeking", "greedy"])
def test_where_no_spot_machine_is_to_be_had_on_demand_ones_are_rented_after_few_requests(placement: str) -> None:
    study = ss.simulate(
        **STUDY,
        deadline="8h",
        options={"placement": placement},
    )
    assert study.status == "completed"
    assert study.receipt.denied < 200


def test_a_market_that_denies_everything_for_a_month_gets_few_requests() -> None:
    """It used to be one in five seconds for each machine."""
    study = ss.simulate(
        **STUDY,
        deadline="30d",
        machines=ss.machines("aws", spot=True, names=["m5.large"]),
    )
    assert study.status == "deadline_reached"
    offers = len(study.spec.listings)
    assert study.receipt.denied < 800 * offers  # one an hour each
    assert len(list(study.entries())) < 2000 * offers


def test_a_price_that_is_not_worth_paying_is_looked_at_less_and_less_often() -> None:
    run = story(Cheapest())
    run.add("j0", until_step=9)
    only_spot = {SPOT: 2.0, ON_DEMAND_OFFER: 2.0}
    del run.state.listings[ON_DEMAND_OFFER]
    run.feed = run.state.feed = type(run.feed)(only_spot)  # type: ignore[call-arg]
    at, looks = 10.0, []
    for _ in range(6):
        (look,) = run.tell(e.TimerFired(at=at, name=RETRY))
        assert isinstance(look, d.WakeAt)
        assert look.why == "no offer that fits has a price worth paying: try again"
        looks.append(look.at - at)
        at = look.at
    assert looks == sorted(looks)
    assert looks[-1] > 3 * looks[0]
