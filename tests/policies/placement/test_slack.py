"""The placement `slack`: on spot while there is slack, on-demand at the line, and every guarantee of a run holds."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Offer
from shoestring.policies.placement.slack.policy import WATCH, Slack
from shoestring.recipes.classic import asha
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, ConstantPrices, Story, story
from tests.properties.test_invariants import check_invariants
from tests.studies import START, Case, play, random_case

ELSEWHERE = Offer(provider="aws", zone="b", machine="small", spot=True)
TWO_ZONES = replace(SPEC, listings=(*SPEC.listings, replace(SPEC.listings[0], offer=ELSEWHERE)))
HOUR = 3600.0


class TestSlack(PolicySuite):
    spec = replace(SPEC, options={"placement": "slack"})

    def policies(self, spec):
        return asha(spec)


def running(*, step: int, at: float, spec=SPEC, prices: dict[Offer, float] | None = None) -> Story:
    """A trial of nine steps that runs on spot since the start and has just saved this step."""
    run = story(Slack(), spec=spec)
    if prices is not None:
        run.feed = run.state.feed = ConstantPrices(prices)
    run.add("j0", until_step=9)
    run.rent("l0", end_by=spec.deadline_s)
    run.start("s0", "j0", "l0", running_since=0.0)
    run.happened(replace(run.report("j0", step, 0.5), at=at))
    run.happened(replace(run.save("j0", step), at=at))
    return run


def look(run: Story, at: float) -> list[d.Decision]:
    return run.tell(e.TimerFired(at=at, name=WATCH))


def orders(decided: list[d.Decision]) -> list[d.Decision]:
    return [decision for decision in decided if not isinstance(decision, d.WakeAt)]


def test_before_anything_is_timed_it_rents_spot() -> None:
    run = story(Slack())
    run.add("j0", until_step=9)
    assert [x.offer for x in orders(run.tell(e.TimerFired(at=1.0, name="tick")))] == [SPOT]


def test_with_slack_it_stays_and_looks_again_before_the_slack_can_run_out() -> None:
    run = running(step=4, at=1.0 * HOUR)  # 75 minutes of work for almost five hours
    (again,) = look(run, 1.0 * HOUR)
    assert isinstance(again, d.WakeAt)
    assert again.about == "l0"
    assert 1.0 * HOUR < again.at <= 1.5 * HOUR


def test_at_the_line_an_on_demand_machine_is_rented_before_the_spot_one_is_left() -> None:
    run = running(step=3, at=2.0 * HOUR)  # four hours of work for less than four
    (requested,) = orders(look(run, 2.0 * HOUR))
    assert (requested.lease, requested.offer) == ("l1", ON_DEMAND_OFFER)
    assert "slack" in requested.why
    assert orders(look(run, 2.0 * HOUR + 60)) == []  # it is pending
    halted = run.tell(e.LeaseGranted(at=2.0 * HOUR + 90, lease="l1"))
    assert d.HaltSegment(segment="s0", grace_s=ANY, why=ANY) in halted
    moved = run.end("j0", "halted", step=3)
    assert d.ReleaseLease(lease="l0", why=ANY) in moved
    assert [x.leases for x in moved if isinstance(x, d.StartSegment)] == [("l1",)]


def test_at_the_line_with_no_machine_to_spare_the_spot_one_makes_room() -> None:
    run = running(step=3, at=2.0 * HOUR, spec=replace(SPEC, max_machines=1))
    assert orders(look(run, 2.0 * HOUR)) == [d.HaltSegment(segment="s0", grace_s=ANY, why=ANY)]
    decided = run.end("j0", "halted", step=3)
    assert d.ReleaseLease(lease="l0", why=ANY) in decided
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == [ON_DEMAND_OFFER]


def test_a_trial_that_lost_its_machine_near_the_line_goes_on_demand() -> None:
    run = running(step=3, at=2.0 * HOUR)
    decided = run.tell(e.LeaseEnded(at=2.0 * HOUR, lease="l0", cause="revoked", charged_usd=0.1))
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == [ON_DEMAND_OFFER]


def test_with_slack_a_lost_machine_is_replaced_by_spot() -> None:
    run = running(step=4, at=1.0 * HOUR)
    decided = run.tell(e.LeaseEnded(at=1.0 * HOUR, lease="l0", cause="revoked", charged_usd=0.1))
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == [SPOT]


def test_while_no_zone_has_machines_it_waits_as_long_as_slack_is_worth_more() -> None:
    run = running(step=4, at=1.0 * HOUR)
    run.happened(e.LeaseEnded(at=1.0 * HOUR, lease="l0", cause="revoked", charged_usd=0.1))
    run.order(d.RequestLease(lease="l1", offer=SPOT, end_by=2 * HOUR, why="the story"))
    decided = run.tell(e.LeaseDenied(at=1.0 * HOUR + 5, lease="l1", reason="no_capacity"))
    assert [type(x) for x in decided] == [d.WakeAt]


@pytest.mark.parametrize(("there", "moves"), [(0.1, True), (0.29, False)])
def test_it_moves_to_another_zone_only_when_that_pays(there: float, moves: bool) -> None:
    run = running(step=2, at=1.0 * HOUR, spec=TWO_ZONES, prices={SPOT: 0.3, ON_DEMAND_OFFER: 1.0, ELSEWHERE: there})
    requested = orders(look(run, 1.0 * HOUR))
    assert [x.offer for x in requested] == ([ELSEWHERE] if moves else [])
    if moves:
        halted = orders(run.tell(e.LeaseGranted(at=1.0 * HOUR + 90, lease="l1")))
        assert halted == [d.HaltSegment(segment="s0", grace_s=ANY, why=ANY)]
        moved = run.end("j0", "halted", step=2)
        assert [x.leases for x in moved if isinstance(x, d.StartSegment)] == [("l1",)]


def with_on_demand_fallback(case: Case, placement: str = "slack") -> Case:
    """The same market, with every machine available on-demand too."""
    kept = [
        replace(listing, offer=replace(listing.offer, spot=False), billing="per_second", max_life_s=None)
        for listing in case.spec.listings
        if listing.offer.spot
    ]
    listings = {listing.offer: listing for listing in (*case.spec.listings, *kept)}
    recipe, others = case.spec.recipe, dict(case.spec.options)
    if "placement" not in others:  # one that chooses its machines itself
        recipe, others = "asha", {}
    others = {name: value for name, value in others.items() if name not in ("rotate", "revocations")}
    options = {**others, "placement": placement}
    spec = replace(case.spec, recipe=recipe, listings=tuple(listings.values()), options=options, budget_usd=50.0)
    return dataclasses.replace(case, spec=spec)


def test_budget_and_deadline_hold_on_random_markets() -> None:
    seen: Counter[str] = Counter()
    for number in range(40):
        study = with_on_demand_fallback(random_case(random.Random(f"slack/{number}")))
        decisions = [x for entry in check_invariants(study) for x in entry.decisions]
        seen["on demand"] += any(isinstance(x, d.RequestLease) and "slack" in x.why for x in decisions)
        seen["spot"] += any(isinstance(x, d.RequestLease) and x.offer.spot for x in decisions)
    assert seen["on demand"] >= 2
    assert seen["spot"] >= 10


@pytest.mark.parametrize("seed", range(6))
def test_a_trial_that_on_demand_machines_could_finish_is_finished_in_time(seed: int) -> None:
    """Three hours of work, three and a half to do it in, and spot machines that last twenty minutes."""
    case = dataclasses.replace(
        random_case(random.Random(seed)),
        spec=replace(
            SPEC,
            trials=1,
            max_steps=90,
            deadline_s=3.5 * HOUR,
            recipe="random",
            options={"placement": "slack", "every_s": 300},
            max_machines=2,
        ),
        seed=seed,
        traces=((SPOT, (START - HOUR,), (0.3,)),),
        revoked_per_hour=3.0,
        shocks_per_hour=0.0,
        denial_share=0.2,
        provision_s=60.0,
        base_step_s=74.0,  # on its two cores, two minutes
        checkpoint_gb=0.05,
        trouble_share=0.0,
    )
    state, journal = play(case)
    (job,) = state.jobs.values()
    assert job.status == "finished", state.ending
    rented = {x.offer for entry in journal.read() for x in entry.decisions if isinstance(x, d.RequestLease)}
    assert SPOT in rented
