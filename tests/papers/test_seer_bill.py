"""SEER's plan in dollars: thousands of plans whose bills never exceed the budget, each over by the deadline."""

from __future__ import annotations

import math
import random
import statistics
from itertools import pairwise

import pytest
from msgspec.structs import replace

from shoestring.errors import SpecError
from shoestring.market.billing import billing_rule
from shoestring.market.prices import PriceTrace
from shoestring.policies.search.seer.bill import (
    BilledPlan,
    SeerTerms,
    bill_usd,
    billed_plan,
    feasible,
    least_budget_usd,
    least_deadline_s,
)
from shoestring.policies.search.seer.plan import Bracket
from shoestring.testing.story import ON_DEMAND_OFFER
from shoestring.units import parse_duration_s, parse_usd
from tests.numbers import over_numbers

EXAMPLE = SeerTerms(deadline_s=600, budget_usd=80 / 60, slots=1, usd_per_hour=1, most_machines=99, t_min_s=60, eta=2)
"""The paper's worked example, at a dollar an hour for one slot, with nothing to come up or to wind down."""


def random_terms(rng: random.Random) -> SeerTerms:
    """Waits are as runs have them: coming up takes a tenth of the deadline at most, winding down a twentieth."""
    p_min, t_min_s = rng.choice([1, 1, 2, 4]), 10 ** rng.uniform(0.8, 2.5)
    deadline_s = max(60.0, t_min_s * 10 ** rng.uniform(0, 2.2) / 0.85)
    usd_per_hour = 10 ** rng.uniform(-1.5, 1.2)
    terms = SeerTerms(
        deadline_s=deadline_s,
        budget_usd=1.0,
        slots=rng.choice([1, 2, 4, 8]),
        usd_per_hour=usd_per_hour,
        ceiling_usd_per_hour=usd_per_hour * rng.choice([1, 1, 3]),
        billing=rng.choice(["per_second", "per_second", "per_second", "aws_spot", "per_hour"]),
        most_machines=rng.choice([10**6, 10**6, 10**6, 40, 6]),
        provision_s=min(rng.choice([0.0, 40.0, 90.0, 300.0]), deadline_s / 10),
        wind_down_s=min(rng.choice([5.0, 20.0, 45.0, 120.0]), deadline_s / 20),
        t_min_s=t_min_s,
        eta=rng.choice([1.5, 2, 2.7, 3, 4]),
        nu=rng.choice([1, 1.5, 2, 3]),
        p_min=p_min,
        p_max=rng.choice([math.inf, p_min, 2 * p_min, 3 * p_min, 8 * p_min]),
    )
    return replace(terms, budget_usd=least_budget_usd(terms) * 10 ** rng.uniform(0, 3))


def billed(terms: SeerTerms, plan: BilledPlan) -> float:
    """What the cloud's own rule charges, machine by machine, for leases that begin together and end by the plan."""
    rule, usd = billing_rule(terms.billing), 0.0
    prices = PriceTrace(ON_DEMAND_OFFER, (0.0,), (terms.usd_per_hour,))
    for stage, held, needed_next in zip(plan.stages, plan.machines, [*plan.machines[1:], 0], strict=True):
        for _ in range(held - needed_next):
            usd += rule.charge(0.0, stage.stop + terms.wind_down_s, prices, "released").charged_usd
    return usd


@over_numbers(2000)
def test_no_bill_exceeds_the_budget_and_no_plan_the_deadline(number: int) -> None:
    terms = random_terms(random.Random(number))
    plan = billed_plan(terms)
    assert plan.usd <= terms.budget_usd
    if sum(plan.machines) < 2000:
        assert billed(terms, plan) <= terms.budget_usd * (1 + 1e-9)
    assert terms.provision_s + plan.stages[-1].stop + terms.wind_down_s <= terms.deadline_s * (1 + 1e-9)
    assert plan.stages[0].stop >= terms.t_min_s * (1 - 1e-9)
    assert plan.machines[0] <= terms.most_machines
    for stage, machines in zip(plan.stages, plan.machines, strict=True):
        assert 0 < stage.slots <= machines * terms.slots
        assert all(terms.p_min <= bracket.slots <= terms.p_max for bracket in stage.brackets)
    for earlier, later in pairwise(zip(plan.stages, plan.machines, strict=True)):
        assert later[1] <= earlier[1]
        assert later[0].start == earlier[0].stop
        assert trials(later[0].brackets) <= trials(earlier[0].brackets)


def trials(brackets: tuple[Bracket, ...]) -> int:
    return sum(bracket.trials for bracket in brackets)


def test_plans_spend_what_they_may() -> None:
    """Of the dollars of the budget, where it pays for more than 20 trials and neither max_machines nor a price
    that may rise forbids more. What counts as used is the bill: whole machines, their least charges, their way out."""
    bills, slots = [], []
    for number in range(1200):
        terms = random_terms(random.Random(f"share/{number}"))
        terms = replace(terms, most_machines=10**6, ceiling_usd_per_hour=0.0)
        plan = billed_plan(terms)
        if plan.plan.trials > 20:
            bills.append(plan.usd / terms.budget_usd)
        if plan.plan.trials > 20 and terms.billing != "per_hour":  # there an hour begun is paid, whoever uses it
            paid = zip(plan.stages, plan.machines, strict=True)
            slots.append(plan.plan.cost / sum((stage.stop - stage.start) * held * terms.slots for stage, held in paid))
    assert len(bills) > 400
    assert statistics.mean(bills) >= 0.98
    assert statistics.quantiles(bills, n=20)[0] >= 0.95
    assert statistics.mean(slots) >= 0.95, "of the slots that are paid for, nearly all have a trial on them"


def test_the_worked_example_on_machines_of_one_slot_costs_no_more_than_in_slot_time() -> None:
    plan = billed_plan(EXAMPLE)
    assert len(plan.stages) == 3
    assert plan.machines[0] == plan.stages[0].slots == sum(b.trials * b.slots for b in plan.stages[0].brackets)
    assert plan.plan.trials >= 16
    assert plan.usd == pytest.approx(EXAMPLE.budget_usd, rel=1e-6)


def test_what_is_left_over_buys_time_for_the_first_stage() -> None:
    plan = billed_plan(EXAMPLE)
    assert plan.stages[0].stop > 600 / 7
    assert plan.stages[-1].stop == pytest.approx(600)


def test_a_machine_is_billed_until_the_last_stage_that_needs_it_and_its_way_out() -> None:
    terms = replace(EXAMPLE, usd_per_hour=3600, wind_down_s=10)
    assert bill_usd(terms, [100, 200], [5, 2]) == pytest.approx(3 * 110 + 2 * 310)


def test_a_stage_that_is_too_short_is_billed_for_the_least_charge() -> None:
    terms = replace(EXAMPLE, usd_per_hour=3600)
    assert bill_usd(terms, [10, 20], [2, 1]) == pytest.approx(2 * 60)


def test_no_more_machines_begin_than_can_be_prepaid_at_the_price_they_may_rise_to() -> None:
    """The guard sets that price aside from the request on, and two wind-downs ahead while a machine is in use."""
    terms = replace(EXAMPLE, provision_s=30.0, wind_down_s=20.0)
    risky = replace(terms, ceiling_usd_per_hour=6.0)
    plan = billed_plan(risky)
    assert plan.machines[0] < billed_plan(terms).machines[0]
    assert plan.machines[0] * 6.0 * 60.0 / 3600 <= risky.budget_usd
    accrued = plan.machines[0] * plan.stages[0].stop / 3600
    assert accrued + plan.machines[0] * 6.0 * 40.0 / 3600 <= risky.budget_usd


def test_slots_that_are_paid_for_are_used() -> None:
    """One machine of four slots: when two of the four trials are out, the others get their slots."""
    plan = billed_plan(replace(EXAMPLE, budget_usd=0.18, slots=4, eta=4))
    assert [stage.brackets for stage in plan.stages] == [
        (Bracket(trials=4, slots=1),),
        (Bracket(trials=2, slots=2),),
    ]


@over_numbers(1000)
def test_the_least_that_is_named_works_and_less_does_not(number: int) -> None:
    rng = random.Random(number)
    terms = random_terms(rng)
    terms = replace(terms, most_machines=10**6)
    poor = replace(
        terms,
        budget_usd=terms.budget_usd if rng.random() < 0.3 else least_budget_usd(terms) * rng.uniform(0.01, 0.99),
        deadline_s=terms.deadline_s if rng.random() < 0.3 else least_deadline_s(terms) * rng.uniform(0.01, 0.99),
    )
    if feasible(poor):
        return
    with pytest.raises(SpecError) as refused:
        billed_plan(poor)
    budget, deadline = refused.value.hint.removeprefix("the minimum is a budget of ").split(" and a deadline of ")
    named = replace(poor, budget_usd=parse_usd(budget), deadline_s=parse_duration_s(deadline))
    assert billed_plan(named).usd <= named.budget_usd
    assert named.budget_usd <= 1.12 * least_budget_usd(terms), "it is no more than rounding makes it"
    assert named.deadline_s <= least_deadline_s(terms) + 3600


def test_more_workers_than_machines_allow_is_an_error() -> None:
    with pytest.raises(SpecError, match="p_min=9 needs 3 machines, more than max_machines=2"):
        billed_plan(replace(EXAMPLE, p_min=9, slots=4, most_machines=2))


def test_machines_free_of_charge_are_limited_by_their_number_alone() -> None:
    plan = billed_plan(replace(EXAMPLE, budget_usd=0, usd_per_hour=0, billing="free", slots=4, most_machines=2))
    assert plan.machines[0] == 2
    assert plan.usd == 0
