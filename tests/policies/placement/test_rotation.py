"""Rotation: a trial leaves its machine before an hour is over, unless it is nearly done, near its deadline, or short of
money."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.spottune.rotation import Rotation, Stay
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story, story

HALT_S = Stay().halt_s
LONG = replace(SPEC, max_steps=1000, slice_s=3600.0)


def an_hour_on(run: Story, *, steps: int = 50) -> list[d.Decision]:
    """A trial has reported; its machine's hour is nearly over."""
    run.happened(
        e.JobReported(at=3000.0, segment="s0", job="j0", step=steps, metrics={"loss": 1.0}),
    )
    return run.tell(e.TimerFired(at=HALT_S, name="rotate:l0"))


def at_work(spec=LONG, offer=SPOT, **fields) -> Story:
    return story(
        Rotation(), Cheapest(), spec=replace(spec, **fields), lease="l0", job="j0", running_since=0, offer=offer
    )


def of(kind: type, decisions: list[d.Decision]) -> list[d.Decision]:
    return [decision for decision in decisions if isinstance(decision, kind)]


def test_a_granted_spot_machine_gets_a_timer_that_ends_with_it_and_an_on_demand_one_gets_none() -> None:
    run = story(Rotation(), spec=LONG)
    for number, offer in enumerate((SPOT, ON_DEMAND_OFFER)):
        run.order(d.RequestLease(lease=f"l{number}", offer=offer, end_by=3600.0, why="the story"))
    spot, on_demand = (run.tell(e.LeaseGranted(at=5.0, lease=lease)) for lease in ("l0", "l1"))
    assert spot == [d.WakeAt(name="rotate:l0", at=5.0 + HALT_S, about="l0", why=ANY)]
    assert on_demand == []


def test_shortly_before_the_hour_the_trial_saves_and_stops_and_finds_another_machine() -> None:
    run = at_work()
    assert of(d.HaltSegment, an_hour_on(run)) == [d.HaltSegment(segment="s0", grace_s=3600.0, why=ANY)]
    run.happened(run.save("j0", 50))
    left = run.end("j0", "halted", step=50)
    assert [x for x in left if not isinstance(x, d.WakeAt)] == [
        d.ReleaseLease(lease="l0", why="released: idle, and its 1h are nearly over"),
        d.RequestLease(lease="l1", offer=SPOT, end_by=ANY, reserve_usd=ANY, why=ANY),
    ]
    again = run.tell(e.LeaseGranted(at=HALT_S + 60.0, lease="l1"))
    (start,) = of(d.StartSegment, again)
    assert (start.leases, start.resume_from.step) == (("l1",), 50)


def test_a_trial_that_is_nearly_done_stays_and_is_looked_at_again_when_it_should_be() -> None:
    run = at_work(max_steps=52)
    decided = an_hour_on(run)
    assert not of(d.HaltSegment, decided)
    assert of(d.WakeAt, decided) == [d.WakeAt(name="rotate:l0", at=HALT_S + 120.0, about="l0", why=ANY)]


def test_a_trial_that_has_not_made_a_step_there_stays() -> None:
    run = at_work()
    decided = run.tell(e.TimerFired(at=HALT_S, name="rotate:l0"))
    assert decided == [d.WakeAt(name="rotate:l0", at=HALT_S + 600.0, about="l0", why=ANY)]


@pytest.mark.parametrize(
    "fields",
    [{"deadline_s": 1.2 * HALT_S}, {"budget_usd": 1.5}],
    ids=["the deadline is near", "no money for another machine"],
)
def test_a_trial_that_cannot_move_stays(fields: dict) -> None:
    run = at_work(**fields)
    decided = an_hour_on(run)
    assert not of(d.HaltSegment, decided)
    assert of(d.WakeAt, decided)


def test_an_idle_machine_whose_hour_is_nearly_over_is_released_before_a_trial_starts_there() -> None:
    run = at_work(max_steps=50)
    run.happened(e.TimerFired(at=3000.0, name="tick"))
    run.add("j1", until_step=50)
    decided = run.end("j0", step=50)
    assert not of(d.StartSegment, decided)
    assert of(d.ReleaseLease, decided)


def test_trials_that_share_a_machine_stay_together() -> None:
    two = tuple(replace(listing, slots=2) for listing in SPEC.listings)
    run = at_work(listings=two)
    run.add("j1", until_step=1000)
    run.start("s1", "j1", "l0")
    assert not of(d.HaltSegment, an_hour_on(run))


class TestCheapestWithRotation(PolicySuite):
    spec = replace(SPEC, recipe="asha", max_steps=200, deadline_s=40 * 3600.0, options={"rotate": "15m"})

    def policies(self, spec):
        return recipes.build(replace(spec, options={"placement": "cheapest_step", **spec.options}))


def test_a_trial_that_cannot_move_is_looked_at_less_and_less_often() -> None:
    run, at, looks = at_work(deadline_s=30 * 86400.0), HALT_S, []
    for _ in range(6):
        (look,) = of(d.WakeAt, run.tell(e.TimerFired(at=at, name="rotate:l0")))
        looks.append(look.at - at)
        at = look.at
    assert looks == [600.0, 600.0, 1200.0, 2400.0, 4800.0, 9600.0]
