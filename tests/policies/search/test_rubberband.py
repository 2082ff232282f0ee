"""Rubberband: a schedule is run to the letter, on the machines planned for it, and planned anew with what was seen."""

from __future__ import annotations

import math
import random

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.controller import run
from shoestring.errors import SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.events import RunStarted
from shoestring.kernel.records import Pace
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Listing
from shoestring.market.prices import PriceBook
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import Never
from shoestring.policies.placement.renting.release_by_plan import KEEP
from shoestring.policies.search.rubberband.inputs import PlanInputs
from shoestring.policies.search.rubberband.plan import Round
from shoestring.policies.search.rubberband.policy import Rubberband
from shoestring.policies.search.rubberband.speed import Guess, Speed, learned
from shoestring.recipes.rubberband import plan_of
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story
from shoestring.units import parse_duration_s
from shoestring.world.sim.workload import Workload
from shoestring.world.sim.world import SimWorld
from tests.policies.search.studies import finish, play_out, running, statuses, study

FOUR_SLOTS = Listing(offer=ON_DEMAND_OFFER, vcpus=32, memory_gb=244, slots=4, on_demand_usd_per_hour=36.0)
BIG = replace(
    SPEC,
    recipe="rubberband",
    trials=32,
    max_steps=21,
    budget_usd=500.0,
    deadline_s=3600.0,
    max_machines=8,
    listings=(FOUR_SLOTS,),
    options={"stages": "32x1, 8x4, 2x16", "step_s": 100},
)
START = 1_700_000_000.0


def simulated(
    spec: RunSpec, *, power: float = 0.8, step_s: float = 100.0, spread: float = 0.0
) -> tuple[RunState, list]:
    """A study on machines that are never preempted, with a given speed of trials."""

    def seconds(config, _listing, slots: int) -> float:
        own = math.exp(random.Random(str(config)).gauss(0.0, spread))
        return step_s * own / (slots / spec.slots) ** power

    provider = SimulatedProvider(spec.listings, PriceBook({}, spec.listings), Never(), provision_s=40.0)
    workload = Workload(curve=lambda config: lambda step: {"loss": config["x"] + 1 / step}, seconds_per_step=seconds)
    journal = MemoryJournal()
    state = run(
        SimWorld(provider, workload, start=START),
        journal,
        recipes.build(spec),
        BudgetAndDeadline(),
        first=[RunStarted(at=START, spec=spec, seed=spec.seed)],
    )
    return state, list(journal.read())


def told_to_run(entries: list) -> list[d.RunJob]:
    return [x for entry in entries for x in entry.decisions if isinstance(x, d.RunJob)]


# -- the schedule --------------------------------------------------------------------------------------------------
def test_the_schedule_is_followed_exactly_and_the_best_are_promoted() -> None:
    state, entries = simulated(BIG)
    reached = {step: {x.job for x in told_to_run(entries) if x.until_step == step} for step in (1, 5, 21)}
    best = sorted(state.jobs.values(), key=lambda job: job.config["x"])
    assert reached == {step: {job.id for job in best[:count]} for step, count in ((1, 32), (5, 8), (21, 2))}
    assert {status: count for status, count in state.by_status.items() if count} == {"pruned": 30, "finished": 2}


def test_no_trial_is_promoted_before_the_stage_is_over() -> None:
    rounds = (Round(trials=6, steps=1, until_step=1), Round(trials=2, steps=8, until_step=9))
    run_ = study(Rubberband(rounds, PlanInputs(p_max=1)), places=6, trials=6)
    for number in range(5):
        assert finish(run_, f"j{number}", number / 10) == []
    decided = finish(run_, "j5", 0.05)
    assert [(x.job, x.until_step) for x in decided if isinstance(x, d.RunJob)] == [("j0", 9), ("j5", 9)]
    assert {x.job for x in decided if isinstance(x, d.DropJob)} == {"j1", "j2", "j3", "j4"}


def test_diverged_and_failed_trials_are_not_promoted_and_silent_ones_rank_last() -> None:
    rounds = (Round(trials=5, steps=1, until_step=1), Round(trials=3, steps=8, until_step=9))
    run_ = study(Rubberband(rounds, PlanInputs(p_max=1)), places=5, trials=5, max_failures=0)
    run_.end("j0", "failed", step=0)
    finish(run_, "j1", math.nan)
    finish(run_, "j2", None)
    finish(run_, "j3", 0.9)
    decided = finish(run_, "j4", 0.1)
    assert [x.job for x in decided if isinstance(x, d.RunJob)] == ["j4", "j3", "j2"]


def test_a_study_in_which_everything_fails_ends() -> None:
    rounds = (Round(trials=5, steps=1, until_step=1), Round(trials=3, steps=8, until_step=9))
    run_ = study(Rubberband(rounds, PlanInputs(p_max=1)), places=5, trials=5, max_failures=0)
    play_out(run_, lambda _job, _step: 0.0, random.Random(1), fails=1.0)
    assert statuses(run_) == {"failed": 5}


def test_a_trial_pruned_by_another_policy_while_it_waits_is_skipped() -> None:
    rounds = (Round(trials=4, steps=1, until_step=1), Round(trials=3, steps=8, until_step=9))
    run_ = study(Rubberband(rounds, PlanInputs(p_max=1)), places=1, trials=4)
    for number in range(4):
        finish(run_, f"j{number}", number / 10)
    assert running(run_) == ["j0"]
    run_.order(d.DropJob(job="j1", why="the story"))
    assert [x.job for x in finish(run_, "j0", 0.1) if isinstance(x, d.RunJob)] == ["j2"]


# -- machines ------------------------------------------------------------------------------------------------------
def test_the_cluster_shrinks_as_planned_and_costs_what_was_forecast() -> None:
    """Many trials at first and few steps at the end: eight machines, then one."""
    options = {"stages": "32x4, 4x4, 1x4", "step_s": 100, "spread": 0.0}
    hurried = replace(BIG, max_steps=12, deadline_s=1320.0, wind_down_s=66.0, options=options)
    planned = plan_of(hurried)
    state, entries = simulated(hurried)
    assert planned.stages[0].machines > planned.stages[-1].machines
    assert state.jobs[state.best].status == "finished"
    assert state.now - START <= 1320.0 - 66.0
    assert state.spent_usd == pytest.approx(planned.usd, rel=0.12)
    given_back = [x for entry in entries for x in entry.decisions if isinstance(x, d.ReleaseLease)]
    assert any("the next stage needs only" in x.why for x in given_back)


def test_machines_the_next_stage_needs_are_kept_through_the_wait_for_the_last_trial() -> None:
    tight = replace(BIG, deadline_s=1000.0, wind_down_s=50.0)
    _, entries = simulated(tight, spread=0.2)
    keeps = {x.tags[KEEP] for entry in entries for x in entry.decisions if isinstance(x, d.AddJob)}
    assert len(keeps) == 1
    ends = [entry.event.at for entry in entries if isinstance(entry.event, e.SegmentEnded)]
    first_stage_over = sorted(ends)[31]
    released = [entry.event.at for entry in entries for x in entry.decisions if isinstance(x, d.ReleaseLease)]
    held = plan_of(tight).stages[0].machines + 1 - sum(at < first_stage_over for at in released)
    assert held >= keeps.pop()


def test_the_first_trial_tries_a_width_that_is_needed_later() -> None:
    _, entries = simulated(replace(BIG, deadline_s=1200.0))
    first, second = told_to_run(entries)[:2]
    assert (first.slots, second.slots) == (4, 1)
    assert first.why == "measure the speed-up on 4 slots"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("power", "step_s"), [(0.5, 100.0), (0.95, 100.0), (0.8, 130.0), (0.8, 60.0)])
def test_the_deadline_holds_although_the_guess_was_wrong(power: float, step_s: float, seed: int) -> None:
    state, _ = simulated(replace(BIG, deadline_s=1800.0, seed=seed), power=power, step_s=step_s, spread=0.1)
    assert state.by_status["finished"] == 2


def test_what_was_learned_makes_the_rest_cheaper_than_the_guess() -> None:
    fast, slow = (simulated(replace(BIG, deadline_s=1500.0), step_s=s)[0] for s in (60.0, 100.0))
    assert fast.spent_usd < 0.75 * slow.spent_usd


# -- speed ---------------------------------------------------------------------------------------------------------
MACHINE = Listing(offer=ON_DEMAND_OFFER, vcpus=32, memory_gb=64, slots=8, on_demand_usd_per_hour=1.0)


def speed_of(*trials: dict[int, float], guess: Guess, promoted: tuple[int, ...] = (), worker: int = 1) -> Speed:
    """Of trials that were timed on some widths: {slots: seconds a step}."""
    run = Story(spec=replace(SPEC, listings=(MACHINE,), slots=worker))
    run.begin()
    for number, widths in enumerate(trials):
        run.add(f"j{number}", until_step=1, slots=worker)
        run.state.jobs[f"j{number}"].paces = {
            (MACHINE.offer.machine, slots): Pace(2, 2 * step_s) for slots, step_s in widths.items()
        }
    return learned(run.view, [run.state.jobs[f"j{number}"] for number in promoted], MACHINE, guess)


def test_before_anybody_has_trained_speed_is_the_guess() -> None:
    speed = speed_of(guess=Guess(step_s=30.0, scaling=0.5))
    assert (speed.step_s, speed.on(1), speed.on(16)) == (30.0, 1.0, pytest.approx(4.0))


def test_a_trial_seen_on_two_widths_is_believed_more_than_two_trials_on_one_each() -> None:
    others = [{1: 10.0}] * 8
    told = speed_of(*others, {1: 20.0, 4: 10.0}, guess=Guess(scaling=1.0))
    compared = speed_of(*others, {4: 5.0}, guess=Guess(scaling=1.0, spread=0.5))
    assert told.on(4) == pytest.approx(2.0, rel=0.1)
    assert compared.on(4) == pytest.approx(2.0, rel=0.2)  # eight trials that are all alike: so is the ninth
    uneven = [{1: 10.0 * 2 ** (number % 3)} for number in range(9)]
    assert speed_of(*uneven, {4: 10.0}, guess=Guess(scaling=1.0)).on(4) > compared.on(4) + 0.2


def test_the_step_time_is_that_of_the_promoted_trials() -> None:
    trials = {1: 10.0}, {1: 30.0}, {2: 100.0}
    assert speed_of(*trials, guess=Guess(), promoted=(1,)).step_s == pytest.approx(30.0, rel=0.05)
    assert speed_of(guess=Guess(step_s=7.0)).step_s == 7.0


def test_untried_widths_follow_those_that_were_measured() -> None:
    speed = speed_of({2: 40.0, 8: 20.0}, guess=Guess(), worker=2)
    assert speed.on(4) == pytest.approx(2.0, rel=0.1)
    assert speed.on(16) == pytest.approx(4.0, rel=0.2)


def test_trials_that_do_not_differ_at_all_can_be_promised() -> None:
    assert speed_of({1: 10.0}, {1: 10.0}, guess=Guess(spread=0.0)).step_s == pytest.approx(10.0)


# -- what cannot be ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "says", "hint"),
    [
        ({"stages": "32 trials"}, "'32 trials' is not a schedule", "64x1, 16x4, 4x16"),
        ({"stages": "32x0"}, "is not a schedule", ""),
        ({"stages": 32}, "is not text", "quotes"),
        ({"stages": "32x1, 64x20"}, "has 64 trials after 32", ""),
        ({"stages": "16x1, 4x20"}, "begins with 16 trials, and trials=32", "set trials to 16"),
        ({"stages": "32x1, 4x4"}, "ends at step 5, and max_steps=21", "set max_steps to 5"),
        ({"stages": "32x21", "eta": 3}, "has no such option", ""),
        ({"eta": 1}, "options.eta=1 is too small", "at least 2"),
        ({"scaling": 1.5}, "options.scaling=1.5 is out of range", ""),
        ({"step_s": 0}, "options.step_s=0 is not a positive time", ""),
        ({"p_max": 0}, "options.p_max=0 is too small", ""),
    ],
)
def test_wrong_input_is_an_error_with_a_hint(options: dict, says: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        recipes.build(replace(BIG, options=options))
    assert says in str(caught.value)
    assert hint in caught.value.hint


def test_p_max_below_what_one_worker_takes() -> None:
    with pytest.raises(SpecError, match=r"p_max=1 is less than slots=2"):
        recipes.build(replace(BIG, slots=2, options={"p_max": 1}))


def test_a_worker_that_fits_on_no_machine() -> None:
    with pytest.raises(SpecError, match=r"no machine on offer has the slots=5"):
        recipes.build(replace(BIG, slots=5))


def test_workers_of_three_slots_leave_one_of_four_unused() -> None:
    stages = plan_of(replace(BIG, slots=3, deadline_s=2400.0)).stages
    assert all(stage.slots % 3 == 0 for stage in stages)
    state, _ = simulated(replace(BIG, slots=3, deadline_s=2400.0))
    assert state.by_status["finished"] == 2


def test_the_smallest_deadline_that_would_do_is_named_and_does() -> None:
    with pytest.raises(SpecError, match=r"deadline 5m is too short for 32x1, 8x4, 2x16") as caught:
        recipes.build(replace(BIG, deadline_s=300.0))
    least_s = parse_duration_s(caught.value.hint.split("deadline of ")[1].split(";")[0])
    recipes.build(replace(BIG, deadline_s=least_s))
    with pytest.raises(SpecError, match="too short"):
        recipes.build(replace(BIG, deadline_s=0.97 * least_s))


def test_the_smallest_budget_that_would_do_is_named_and_does() -> None:
    with pytest.raises(SpecError, match=r"budget \$20.00 is too small") as caught:
        recipes.build(replace(BIG, deadline_s=20000.0, budget_usd=20.0))
    least_usd = float(caught.value.hint.split("budget of $")[1].split(",")[0])
    recipes.build(replace(BIG, deadline_s=20000.0, budget_usd=least_usd))


def test_a_spec_whose_machines_are_not_known_yet_is_not_judged() -> None:
    assert recipes.build(replace(BIG, listings=(), deadline_s=1.0))


def test_successive_halving_is_a_schedule() -> None:
    search, *_ = recipes.build(replace(BIG, trials=27, max_steps=27, options={"grace_steps": 2}))
    assert [(round_.trials, round_.until_step) for round_ in search.schedule] == [(27, 2), (9, 6), (3, 18), (1, 27)]


def test_a_plan_needs_no_more_machines_than_can_be_prepaid() -> None:
    """The guard sets $9 aside for each: a quarter of an hour."""
    rich, poor = (plan_of(replace(BIG, budget_usd=usd, deadline_s=2400.0)) for usd in (500.0, 45.0))
    assert max(stage.machines for stage in poor.stages) <= 5
    assert poor.usd >= rich.usd


def test_spot_machines_are_planned_for_only_if_requested() -> None:
    spot = replace(FOUR_SLOTS, offer=replace(ON_DEMAND_OFFER, spot=True))
    both = replace(BIG, listings=(spot, FOUR_SLOTS))
    dear = PlanInputs().listing(both, lambda listing: listing.on_demand_usd_per_hour)
    cheap = PlanInputs(spot=True).listing(both, lambda listing: listing.on_demand_usd_per_hour)
    assert (dear.offer.spot, cheap.offer.spot) == (False, True)
    search, placement, *_ = recipes.build(replace(both, options={**BIG.options, "placement": "cheapest"}))
    assert (search.outlook.spot, type(placement).__name__) == (True, "Cheapest")


def test_gangs_are_planned_on_the_largest_machines_only() -> None:
    """Placement would put a trial of two slots on the machine with four, whatever the plan is for."""
    small = replace(FOUR_SLOTS, offer=replace(ON_DEMAND_OFFER, machine="smaller"), slots=1, on_demand_usd_per_hour=1.0)
    mixed = plan_of(replace(BIG, listings=(FOUR_SLOTS, small), deadline_s=6000.0))
    assert {stage.slots for stage in mixed.stages} == {1}


class TestRubberbandKeepsTheContract(PolicySuite):
    spec = replace(SPEC, recipe="rubberband", trials=9, options={"step_s": 120, "placement": "cheapest"})

    def policies(self, spec: RunSpec):
        return recipes.build(spec)


class TestRubberbandWithGangsKeepsTheContract(PolicySuite):
    spec = replace(
        SPEC,
        recipe="rubberband",
        trials=12,
        deadline_s=3600.0,
        max_machines=6,
        direction="maximize",
        listings=tuple(replace(listing, slots=2) for listing in SPEC.listings),
        options={"step_s": 120, "stages": "12x1, 4x2, 1x6", "margin": 0.1},
    )

    def policies(self, spec: RunSpec):
        return recipes.build(spec)
