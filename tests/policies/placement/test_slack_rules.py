"""Greedy and Uniform Progress: as rules, and as placements of a run."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.placement.slack.baselines import greedy, uniform_progress
from shoestring.policies.placement.slack.guarantee import (
    ON_DEMAND,
    WAIT,
    MachineChoice,
    Situation,
    SlackChoice,
    Switching,
)
from shoestring.policies.placement.slack.policy import WATCH, Greedy, UniformProgress
from shoestring.policies.placement.slack.zones import Quote
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, story
from tests.policies.placement.test_slack import with_on_demand_fallback
from tests.properties.test_invariants import check_invariants
from tests.studies import random_case

HOUR = 3600.0
SWITCHING = Switching(setup_s=300.0, restore_s=90.0, save_s=5.0, look_s=120.0)
ZONES = [Quote(0, 0.5, stay_h=9.0, spell_age_s=HOUR), Quote(1, 0.4, stay_h=0.2, spell_age_s=60.0)]
HERE, CHEAPEST = SlackChoice(MachineChoice.SPOT, 0), SlackChoice(MachineChoice.SPOT, 1)


class TestGreedy(PolicySuite):
    def policies(self, spec):
        return recipes.build(replace(spec, recipe="asha", options={"placement": "greedy"}))


class TestUniformProgress(PolicySuite):
    def policies(self, spec):
        return recipes.build(replace(spec, recipe="asha", options={"placement": "uniform_progress"}))


def at(done_h: float, passed_h: float, here: MachineChoice = MachineChoice.WAIT) -> Situation:
    """Ten hours of work, twenty to do it in."""
    return Situation((20 - passed_h) * HOUR, (10 - done_h) * HOUR, here=here)


@pytest.mark.parametrize(
    ("now", "quotes", "choice"),
    [
        (at(0, 0), ZONES, CHEAPEST),
        (at(0, 0), [], WAIT),
        (at(0, 9.9), [], ON_DEMAND),  # the guarantee
        (at(1, 9, MachineChoice.SPOT), ZONES, HERE),
        (at(9, 9, MachineChoice.ON_DEMAND), ZONES, ON_DEMAND),  # to the end
    ],
)
def test_greedy_waits_for_spot_and_stays_on_demand(now: Situation, quotes: list[Quote], choice: SlackChoice) -> None:
    assert greedy(now, SWITCHING, quotes) == choice


@pytest.mark.parametrize(
    ("now", "quotes", "choice"),
    [
        (at(0, 1), ZONES, CHEAPEST),
        (at(0, 1), [], ON_DEMAND),  # behind schedule
        (at(1, 1), [], WAIT),  # half an hour ahead of it
        (at(0, 1, MachineChoice.SPOT), ZONES, HERE),
        (at(0.6, 1, MachineChoice.ON_DEMAND), ZONES, ON_DEMAND),
        (at(1, 1, MachineChoice.ON_DEMAND), ZONES, CHEAPEST),
        (at(1, 1, MachineChoice.ON_DEMAND), [], WAIT),
    ],
)
def test_uniform_progress_keeps_up_with_the_schedule(now: Situation, quotes: list[Quote], choice: SlackChoice) -> None:
    assert uniform_progress(now, SWITCHING, quotes, 10 * HOUR, 20 * HOUR) == choice


@pytest.mark.parametrize(("placement", "rents"), [(Greedy(), []), (UniformProgress(), [ON_DEMAND_OFFER])])
def test_without_spot_greedy_waits_and_uniform_progress_does_not_when_behind(placement, rents) -> None:
    run = story(placement)
    run.add("j0", until_step=9)
    run.rent("l0", end_by=SPEC.deadline_s)
    run.start("s0", "j0", "l0", running_since=0.0)
    run.happened(replace(run.report("j0", 1, 0.5), at=900.0))
    run.happened(replace(run.save("j0", 1), at=900.0))
    run.happened(e.LeaseEnded(at=2 * HOUR, lease="l0", cause="revoked", charged_usd=0.1))
    run.order(d.RequestLease(lease="l1", offer=SPEC.listings[0].offer, end_by=3 * HOUR, why="the story"))
    decided = run.tell(e.LeaseDenied(at=2 * HOUR + 5, lease="l1", reason="no_capacity"))
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == rents


@pytest.mark.parametrize("placement", [Greedy(), UniformProgress()])
def test_both_keep_the_guarantee(placement) -> None:
    run = story(placement)
    run.add("j0", until_step=9)
    run.rent("l0", end_by=SPEC.deadline_s)
    run.start("s0", "j0", "l0", running_since=0.0)
    run.happened(replace(run.report("j0", 3, 0.5), at=2 * HOUR))
    run.happened(replace(run.save("j0", 3), at=2 * HOUR))
    decided = run.tell(e.TimerFired(at=2 * HOUR, name=WATCH))  # four hours of work for less than four
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == [ON_DEMAND_OFFER]


@pytest.mark.parametrize("placement", ["greedy", "uniform_progress"])
def test_budget_and_deadline_hold_on_random_markets(placement: str) -> None:
    for number in range(12):
        check_invariants(with_on_demand_fallback(random_case(random.Random(f"{placement}/{number}")), placement))
