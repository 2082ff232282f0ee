"""What SEER is compared with: plans that keep to money and time, and searches that keep their machines busy."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Listing, Offer
from shoestring.search.affordable import steady_machines
from shoestring.search.elastic_plans import grid_plan, halving_plan, hyperband_plan
from shoestring.search.seer_bill import Terms
from shoestring.search.seer_plan import Bracket
from shoestring.space import Float, Space
from tests.papers.test_seer_bill import random_terms
from tests.studies import Case, play

TERMS = Terms(deadline_s=1000, budget_usd=8.01, slots=4, usd_per_hour=3.6, most_machines=99, t_min_s=60)
"""A tenth of a cent a second and machine: a little more than 8000 seconds of one."""


@settings(max_examples=1000, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**48))
def test_no_plan_costs_more_than_the_budget_or_ends_after_the_deadline(number: int) -> None:
    terms = random_terms(random.Random(number))
    for plan in (grid_plan(terms), hyperband_plan(terms)):
        assert plan.usd <= terms.budget_usd
        assert terms.provision_s + plan.stages[-1].stop + terms.wind_down_s <= terms.deadline_s * (1 + 1e-9)
        assert plan.machines[0] <= terms.most_machines
        for stage, machines in zip(plan.stages, plan.machines, strict=True):
            assert 0 < stage.slots <= machines * terms.slots


def test_elastic_grid_search_explores_for_half_of_the_time_and_trains_the_best_in_the_other() -> None:
    explore, exploit = grid_plan(replace(TERMS, p_max=4)).stages
    assert (explore.stop, exploit.stop) == (500, 1000)
    assert explore.brackets == (Bracket(trials=60, slots=1),)
    assert exploit.brackets == (Bracket(trials=1, slots=4),)


def test_elastic_grid_search_takes_fewer_slots_for_the_best_if_money_is_short() -> None:
    plan = grid_plan(replace(TERMS, budget_usd=1.2, slots=1))
    assert plan.stages[1].brackets == (Bracket(trials=1, slots=1),)


def test_elastic_halving_keeps_one_cluster_and_gives_survivors_the_slots_of_the_others() -> None:
    plan = halving_plan(replace(TERMS, p_max=16), steady_machines(TERMS))
    assert steady_machines(TERMS) == 8
    assert plan.machines == (8, 8, 8)
    assert [stage.brackets for stage in plan.stages] == [
        (Bracket(trials=32, slots=1),),
        (Bracket(trials=8, slots=4),),
        (Bracket(trials=2, slots=16),),
    ]
    assert [stage.stop for stage in plan.stages] == pytest.approx([1000 / 3, 2000 / 3, 1000])


def test_elastic_hyperband_runs_all_brackets_side_by_side_and_each_stops_its_own() -> None:
    plan = hyperband_plan(replace(TERMS, budget_usd=30))
    assert [stage.stop for stage in plan.stages] == pytest.approx([1000 / 16, 250, 1000])
    counts = [[bracket.trials for bracket in stage.brackets] for stage in plan.stages]
    many, fewer, few = zip(*counts, strict=True)
    assert many[0] >= 4 * many[1] >= 16 * many[2] > 0
    assert fewer[0] == fewer[1] >= 4 * fewer[2] > 0
    assert few[0] == few[1] == few[2] > 0
    assert many[0] > fewer[0] > few[0]


def test_a_budget_that_pays_for_less_than_a_machine_still_has_one() -> None:
    assert steady_machines(replace(TERMS, budget_usd=0.01)) == 1
    assert steady_machines(replace(TERMS, usd_per_hour=0, most_machines=7)) == 7


# -- well fed ----------------------------------------------------------------------------------------------------------
MACHINE = Listing(
    offer=Offer(provider="aws", zone="z0", machine="m0", spot=False),
    vcpus=16,
    memory_gb=8,
    slots=4,
    on_demand_usd_per_hour=2.4,
)


def simulated(recipe: str, **fields: object) -> RunState:
    """Half an hour, $4.80: 480 slot-minutes, on machines of four slots, with steps of ten seconds."""
    spec = RunSpec(
        name="fed",
        metric="loss",
        space=Space(params={"x": Float(low=0.0, high=1.0)}),
        trials=10_000,
        max_steps=1000,
        budget_usd=4.8,
        deadline_s=1800.0,
        wind_down_s=30.0,
        recipe=recipe,
        listings=(MACHINE,),
        max_machines=64,
    )
    case = Case(
        spec=replace(spec, **fields),
        seed=1,
        traces=(),
        revoked_per_hour=0.0,
        shocks_per_hour=0.0,
        denial_share=0.0,
        provision_s=60.0,
        base_step_s=10.0,
        checkpoint_gb=0.05,
        trouble_share=0.0,
    )
    return play(case)[0]


def busy(state: RunState) -> float:
    """The share of paid slot-time in which a trial trained."""
    paid_s = sum(account.seconds * state.listings[offer].slots for offer, account in state.accounts.items())
    return sum(pace.seconds * slots for job in state.jobs.values() for (_, slots), pace in job.paces.items()) / paid_s


@pytest.mark.parametrize(
    ("recipe", "trials", "spent", "trained"),
    [
        ("seer", 60, 0.90, 0.70),
        ("seer_as_printed", 50, 0.90, 0.50),
        ("hypersched", 60, 0.85, 0.70),
        ("elastic_hyperband", 40, 0.80, 0.65),
        ("elastic_grid", 20, 0.85, 0.80),
        ("elastic_successive_halving", 16, 0.80, 0.75),
    ],
)
def test_money_is_spent_and_machines_are_busy(recipe: str, trials: int, spent: float, trained: float) -> None:
    state = simulated(recipe, options={"grace_steps": 6} if recipe == "hypersched" else {})
    assert len(state.jobs) >= trials
    assert spent <= state.spent_usd / 4.8 <= 1.0
    assert busy(state) >= trained
    widths = {slots for job in state.jobs.values() for _, slots in job.paces}
    assert len(widths) > 1 or recipe == "elastic_hyperband", "trials change their width on the way"
