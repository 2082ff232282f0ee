"""What SEER is compared with: plans that keep to money and time, and searches that keep their machines busy."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Listing, Offer
from shoestring.policies.search.elastic.hypersched import steady_machines
from shoestring.policies.search.elastic.plans import grid_plan, halving_plan, hyperband_plan
from shoestring.policies.search.seer.bill import BilledPlan, SeerTerms
from shoestring.policies.search.seer.plan import Bracket
from shoestring.space.space import Float, Space
from tests.numbers import over_numbers
from tests.papers.test_seer_bill import random_terms
from tests.studies import Case, play

TERMS = SeerTerms(deadline_s=1000, budget_usd=8.01, slots=4, usd_per_hour=3.6, most_machines=99, t_min_s=60)
"""A tenth of a cent a second and machine: a little more than 8000 seconds of one."""


@over_numbers(1000)
def test_no_plan_costs_more_than_the_budget_or_ends_after_the_deadline(number: int) -> None:
    terms = random_terms(random.Random(number))
    for plan in (grid_plan(terms), halving_plan(terms), hyperband_plan(terms)):
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


def test_elastic_halving_gives_promoted_trials_the_slots_of_the_others() -> None:
    plan = halving_plan(replace(TERMS, p_max=16, t_min_s=300))
    assert steady_machines(TERMS) == 8
    assert plan.machines == (8, 8, 8)
    assert [stage.brackets for stage in plan.stages] == [
        (Bracket(trials=32, slots=1),),
        (Bracket(trials=8, slots=4),),
        (Bracket(trials=2, slots=16),),
    ]
    assert [stage.stop for stage in plan.stages] == pytest.approx([1000 / 3, 2000 / 3, 1000])


def test_elastic_halving_trains_longer_where_a_trial_may_not_be_wider_and_releases_machines() -> None:
    plan = halving_plan(replace(TERMS, p_max=4))
    assert [stage.brackets for stage in plan.stages] == [
        (Bracket(trials=64, slots=1),),
        (Bracket(trials=16, slots=4),),
        (Bracket(trials=4, slots=4),),
    ]
    first, second, third = (stage.stop - stage.start for stage in plan.stages)
    assert first + second == pytest.approx(2000 / 6, rel=0.01)
    assert third == pytest.approx(4000 / 6, rel=0.01)


def test_elastic_halving_takes_less_time_if_money_is_short() -> None:
    plan = halving_plan(replace(TERMS, p_max=4, budget_usd=0.2))
    assert [stage.brackets for stage in plan.stages] == [(Bracket(trials=4, slots=1),), (Bracket(trials=1, slots=4),)]
    assert [stage.stop for stage in plan.stages] == pytest.approx([100, 200])


def test_elastic_hyperband_runs_all_brackets_side_by_side_and_each_stops_its_own() -> None:
    plan = hyperband_plan(replace(TERMS, budget_usd=30))
    assert [stage.stop for stage in plan.stages] == pytest.approx([1000 / 16, 250, 1000], rel=0.05)
    counts = [[bracket.trials for bracket in stage.brackets] for stage in plan.stages]
    many, fewer, few = zip(*counts, strict=True)
    assert many[0] > 3 * many[1] > 9 * many[2] > 0
    assert fewer[0] == fewer[1] > 3 * fewer[2] > 0
    assert few[0] == few[1] == few[2] > 0
    assert many[0] > fewer[0] > few[0]


@pytest.mark.parametrize("made", [halving_plan, hyperband_plan])
def test_a_plan_spends_the_budget_and_has_a_trial_on_every_slot_it_pays_for(
    made: Callable[[SeerTerms], BilledPlan],
) -> None:
    """Of random budgets for more than 20 trials, where neither a limit on machines nor a price that may rise forbids
    more. Hours begun and least charges are paid, whoever uses them."""
    bills, slots = [], []
    for number in range(300):
        terms = random_terms(random.Random(f"share/{number}"))
        terms = replace(terms, most_machines=10**6, ceiling_usd_per_hour=0.0, billing="per_second")
        plan = made(terms)
        if plan.plan.trials > 20:
            paid = zip(plan.stages, plan.machines, strict=True)
            bills.append(plan.usd / terms.budget_usd)
            slots.append(plan.plan.cost / sum((stage.stop - stage.start) * held * terms.slots for stage, held in paid))
    assert len(bills) > 100
    assert statistics.mean(bills) >= 0.98
    assert statistics.quantiles(bills, n=20)[0] >= 0.95
    assert statistics.mean(slots) >= 0.95


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


def test_what_finalists_leave_over_that_are_soon_trained_to_the_end_pays_for_more_of_them() -> None:
    """The plan has one trial in its last stage, which 200 steps on four slots keep busy for half of the time."""
    state = simulated("elastic_successive_halving", max_steps=200)
    assert state.spent_usd / 4.8 > 0.85
    assert sum(job.status == "finished" for job in state.jobs.values()) > 1


@pytest.mark.parametrize(
    ("recipe", "trials", "spent", "trained"),
    [
        ("seer", 60, 0.90, 0.70),
        ("seer_as_printed", 50, 0.90, 0.50),
        ("hypersched", 60, 0.85, 0.70),
        ("elastic_hyperband", 60, 0.85, 0.80),
        ("elastic_grid", 20, 0.85, 0.80),
        ("elastic_successive_halving", 80, 0.85, 0.65),
    ],
)
def test_money_is_spent_and_machines_are_busy(recipe: str, trials: int, spent: float, trained: float) -> None:
    state = simulated(recipe, options={"grace_steps": 6} if recipe == "hypersched" else {})
    assert len(state.jobs) >= trials
    assert spent <= state.spent_usd / 4.8 <= 1.0
    assert busy(state) >= trained
    widths = {slots for job in state.jobs.values() for _, slots in job.paces}
    assert len(widths) > 1 or recipe == "elastic_hyperband", "trials change their width on the way"
