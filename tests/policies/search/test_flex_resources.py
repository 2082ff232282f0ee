"""What time and money allow: slots that can be paid to the end, and steps that end in time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Listing
from shoestring.policies.search.flex.resources import Resources, resources_now
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story

MACHINES = tuple(
    Listing(offer=offer, vcpus=16, memory_gb=64, slots=4, on_demand_usd_per_hour=1.0)
    for offer in (SPOT, ON_DEMAND_OFFER)
)


def study(**fields) -> Story:
    run = Story(spec=replace(SPEC, listings=MACHINES, deadline_s=3600.0, max_machines=64, **fields))
    run.begin()
    return run


def rent(run: Story, lease: str, *, up_s: float, offer=ON_DEMAND_OFFER) -> None:
    run.order(d.RequestLease(lease=lease, offer=offer, end_by=run.state.now + 900.0, why="the story"))
    run.happened(e.LeaseGranted(at=run.state.now + up_s, lease=lease))


def test_as_many_machines_as_the_money_pays_to_the_end() -> None:
    assert resources_now(study(budget_usd=3.0).view, spot=False).slots == 4 * 3
    assert (
        resources_now(study(budget_usd=2.9).view, spot=False).slots == 4 * 2
    )  # three for an hour less coming up: 2.925


def test_spot_machines_are_counted_at_their_price_but_the_last_minutes_at_the_ceiling() -> None:
    assert resources_now(study(budget_usd=3.0).view, spot=True).slots == 4 * 8  # nine at 0.3 an hour alone


def test_no_more_machines_than_may_be_rented_and_one_at_the_least() -> None:
    assert resources_now(study(budget_usd=1000.0).view, spot=False).slots == 4 * 64
    assert resources_now(study(budget_usd=0.1).view, spot=False).slots == 4


def test_workers_of_several_slots_leave_what_they_cannot_use() -> None:
    assert resources_now(study(budget_usd=3.0, slots=3).view, spot=False).slots == 3 * 3


@pytest.mark.parametrize(("at", "slots"), [(600.0, 8), (2700.0, 8), (2800.0, 12), (3550.0, 8)])
def test_what_is_left_over_pays_another_machine_near_the_end_while_it_is_worth_coming_up(at, slots) -> None:
    run = study(budget_usd=2.19)
    for lease in ("l0", "l1"):
        rent(run, lease, up_s=45.0)
    run.happened(e.TimerFired(at=at, name="story"))
    assert resources_now(run.view, spot=False).slots == slots


def test_dearer_machines_than_planned_are_too_many() -> None:
    run = study(budget_usd=1.6)
    for lease in ("l0", "l1", "l2"):
        rent(run, lease, up_s=40.0)
    assert resources_now(run.view, spot=False).slots == 8


def test_time_ends_with_the_money_if_that_is_gone_first() -> None:
    run = study(budget_usd=0.5)
    rent(run, "l0", up_s=40.0)
    run.happened(e.TimerFired(at=940.0, name="story"))
    now = resources_now(run.view, spot=False)
    assert now.left_s == pytest.approx(900.0, rel=0.01)
    assert now.progress == pytest.approx(0.5, rel=0.01)


def test_progress_counts_from_the_first_machine_to_the_deadline() -> None:
    run = study(budget_usd=100.0)
    rent(run, "l0", up_s=100.0)
    assert resources_now(run.view, spot=False).progress == pytest.approx(0.0)
    run.happened(e.TimerFired(at=1850.0, name="story"))
    assert resources_now(run.view, spot=False).progress == pytest.approx(0.5)


def test_a_later_deadline_is_used() -> None:
    run = study(budget_usd=3.0)
    run.happened(e.UserAsked(at=1.0, wish="amend", deadline_s=7200.0))
    assert resources_now(run.view, spot=False).slots == 4
    assert resources_now(run.view, spot=False).left_s == pytest.approx(7199.0)


def test_machines_free_of_charge_are_all_used() -> None:
    free = tuple(replace(listing, on_demand_usd_per_hour=0.0) for listing in MACHINES)
    run = Story(spec=replace(SPEC, listings=free, budget_usd=0.0, max_machines=3))
    run.begin()
    now = resources_now(run.view, spot=True)
    assert now.slots == 12
    assert now.left_s == SPEC.deadline_s


def test_steps_must_begin_before_the_last_call_and_end_before_the_end() -> None:
    now = Resources(slots=4, left_s=332.0, progress=0.5, switch_s=30.0, save_s=2.0, last_call_s=30.0)
    assert now.steps(60.0) == 5
    assert now.steps(100.0) == 3
    assert now.steps(110.0) == 3
    assert now.steps(290.0) == 1
    assert now.steps(110.0, switching=True) == 2
    assert now.steps(400.0) == 0
