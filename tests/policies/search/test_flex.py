"""Flex: every slot explores, then the best continue, fewer and wider; no trial is interrupted in a step."""

from __future__ import annotations

import math
import random
from dataclasses import replace as with_fields
from functools import cache

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.controller import run as run_through
from shoestring.errors import SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.market.prices import PriceBook
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import Never
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.search.flex.policy import Flex
from shoestring.space.space import Float, Space
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story
from shoestring.world.sim.workload import Latencies, Workload
from shoestring.world.sim.world import SimWorld
from tests.policies.search.test_seer_runs import elastic_case
from tests.studies import play

FOUR = Listing(offer=ON_DEMAND_OFFER, vcpus=16, memory_gb=64, slots=4, on_demand_usd_per_hour=1.0)
FLAT = Space(params={"x": Float(low=0.0, high=1.0), "y": Float(low=0.0, high=1.0)})


# -- told step by step ---------------------------------------------------------------------------------------------
ON_DEMAND = Flex(spot=False)


def study(search: Flex = ON_DEMAND, **fields) -> Story:
    """Four slots, granted at once; steps take a minute."""
    spec = replace(
        SPEC, listings=(FOUR,), max_machines=1, trials=1000, max_steps=12, deadline_s=3600.0, slice_s=7200.0, **fields
    )
    run = Story(search, OnDemand(), spec=spec)
    run.begin()
    run.tell(e.LeaseGranted(at=1.0, lease="l0"))
    return run


def pass_a_minute(run: Story, value: float | None = None) -> list[d.Decision]:
    """Whatever runs does a step, reports it, and stops where it was to stop."""
    decided = []
    at = run.state.now + 60.0
    for segment in list(run.state.segments.values()):
        job = run.state.jobs[segment.job]
        if segment.running_since is None:
            run.happened(e.SegmentStarted(at=at - 60.0, segment=segment.id))
        step = segment.step + 1
        told = float(job.config["x"]) + 1.0 / step if value is None else value
        decided += run.tell(e.JobReported(at=at, segment=segment.id, job=job.id, step=step, metrics={"loss": told}))
        if job.status in ("paused", "pruned") or step == segment.until_step or job.slots != segment.slots:
            run.happened(run.save(job.id, step))
            cause = "reached" if step == segment.until_step else "halted"
            decided += run.tell(e.SegmentEnded(at=at, segment=segment.id, step=step, cause=cause))
    return decided


def test_every_slot_that_can_be_paid_takes_a_new_trial() -> None:
    run = study()
    assert [job.until_step for job in run.state.jobs.values()] == [1, 1, 1, 1]
    assert [job.slots for job in run.state.jobs.values()] == [1, 1, 1, 1]
    assert run.state.by_status["running"] == 4


def test_a_new_trial_is_judged_after_two_steps_and_its_slot_goes_to_the_next() -> None:
    run = study(search=Flex(grace_steps=2, spot=False))
    pass_a_minute(run)
    assert len(run.state.jobs) == 4
    pass_a_minute(run)
    assert len(run.state.jobs) == 8
    assert run.state.by_status["running"] == 4
    assert run.state.by_status["paused"] == 4


def test_configurations_given_by_the_user_come_first() -> None:
    run = study(given=({"x": 0.25}, {"x": 0.75}))
    assert [job.config for job in run.state.jobs.values()][:2] == [{"x": 0.25}, {"x": 0.75}]


def test_the_model_proposes_trials_once_there_are_results_to_compare() -> None:
    run = study()
    decided = [x for _ in range(12) for x in pass_a_minute(run)]
    origins = [x.why.partition(", ")[2] for x in decided if isinstance(x, d.AddJob)]
    assert origins[:6] == ["sampled at random"] * 6
    assert set(origins[6:]) == {"proposed by the model"}
    late = [job.config["x"] for job in run.state.jobs.values() if job.number >= 16]
    assert sum(late) / len(late) < 0.3  # the loss is least where x is 0


def test_a_diverged_trial_is_pruned_at_its_report() -> None:
    run = study()
    decided = pass_a_minute(run, math.nan)
    assert [x.job for x in decided if isinstance(x, d.DropJob)] == ["j0", "j1", "j2", "j3"]
    assert run.state.by_status["running"] == 4


def test_after_exploration_the_best_continue_fewer_and_wider() -> None:
    run = study()
    widths = []
    while run.state.now < 3500.0 and run.state.segments:
        pass_a_minute(run)
        widths.append(max((segment.slots for segment in run.state.segments.values()), default=0))
    assert widths[:30] == [1] * 30
    assert max(widths[30:]) > 1
    best = min(run.state.jobs.values(), key=lambda job: job.config["x"])
    assert best.step == max(job.step for job in run.state.jobs.values())


def test_a_trial_not_ranked_yet_when_exploration_ends_is_ranked_at_its_next_report() -> None:
    run = study(search=Flex(grace_steps=4, explore=0.41, spot=False))
    while run.state.now < 1440.0:
        pass_a_minute(run)
    begun = [segment.job for segment in run.state.segments.values()]
    assert [run.state.jobs[job].until_step for job in begun] == [4, 4, 4, 4]
    decided = pass_a_minute(run)
    told_off = [x.job for x in decided if isinstance(x, d.PauseJob) and "predicted to end better" in x.why]
    assert told_off
    assert set(told_off) <= set(begun)
    assert {run.state.jobs[job].step for job in told_off} == {1}


def test_the_last_step_that_ends_in_time_is_saved() -> None:
    run = study()
    while run.state.now < 3400.0:
        pass_a_minute(run)
    decided = [x for _ in range(4) for x in pass_a_minute(run)]
    assert any(isinstance(x, d.PauseJob) and "in time" in x.why for x in decided)


def test_code_that_never_saves_is_not_stopped_on_the_way() -> None:
    run = study()
    decided: list[d.Decision] = []
    while run.state.now < 3000.0:
        at = run.state.now + 60.0
        for segment in list(run.state.segments.values()):
            if segment.running_since is None:
                run.happened(e.SegmentStarted(at=at - 60.0, segment=segment.id))
            report = e.JobReported(
                at=at, segment=segment.id, job=segment.job, step=segment.step + 1, metrics={"loss": 1.0}
            )
            decided += run.tell(report)
            if segment.step == segment.until_step:
                decided += run.tell(e.SegmentEnded(at=at, segment=segment.id, step=segment.step, cause="reached"))
    assert not [x for x in decided if isinstance(x, d.PauseJob)]


def test_no_trial_starts_while_the_run_is_paused_and_all_resume_after() -> None:
    run = study()
    run.happened(e.UserAsked(at=5.0, wish="pause"))
    assert not [x for x in pass_a_minute(run) + pass_a_minute(run) if isinstance(x, d.AddJob | d.RunJob)]
    decided = run.tell(e.UserAsked(at=200.0, wish="resume"))
    assert sum(isinstance(x, d.RunJob) for x in decided) == 4


# -- whole runs ----------------------------------------------------------------------------------------------------
def simulated(curve, seed: int = 0, **fields) -> tuple[RunState, MemoryJournal]:
    """On-demand machines of four slots, p slots p ** 0.7 times as fast as one, a minute a step."""
    provider = SimulatedProvider((FOUR,), PriceBook({}, (FOUR,)), Never(), provision_s=60.0, provision_spread=0.0)
    workload = Workload(curve=curve, seconds_per_step=lambda _config, _listing, slots: 60.0 / slots**0.7)
    usual = {"deadline_s": 1800.0, "budget_usd": 2.0, "trials": 1000, "max_steps": 30, "max_machines": 64}
    spec = replace(
        SPEC,
        **{
            "space": FLAT,
            "listings": (FOUR,),
            "recipe": "flex",
            "wind_down_s": 30.0,
            "slice_s": 300.0,
            **usual,
            **fields,
        },
    )
    journal = MemoryJournal()
    world = SimWorld(provider, workload, Latencies(start_s=10.0), start=0.0)
    opening = e.RunStarted(at=0.0, spec=spec, seed=seed)
    return run_through(world, journal, recipes.build(spec), BudgetAndDeadline(), first=[opening]), journal


def bowl(config):
    level = (float(config["x"]) - 0.3) ** 2 + (float(config["y"]) - 0.6) ** 2
    return lambda step: {"loss": level + 1.0 / step}


@cache
def usual_run() -> tuple[RunState, MemoryJournal]:
    """One run that several tests look at."""
    return simulated(bowl)


def test_a_whole_run_finds_the_best_uses_the_money_and_loses_no_step() -> None:
    state, journal = usual_run()
    added = [x for entry in journal.read() for x in entry.decisions if isinstance(x, d.AddJob)]
    paid_s = sum(account.seconds * 4 for account in state.accounts.values())
    trained_s = sum(pace.seconds * slots for job in state.jobs.values() for (_, slots), pace in job.paces.items())
    best = state.jobs[state.best]
    assert 0.9 * 2.0 < state.spent_usd <= 2.0
    assert trained_s / paid_s > 0.75
    assert sum("by the model" in x.why for x in added) > len(added) / 2
    assert state.lost_steps == 0
    assert abs(best.config["x"] - 0.3) < 0.1
    assert abs(best.config["y"] - 0.6) < 0.1
    assert best.step > 20


def test_scaling_is_learned_on_the_way() -> None:
    state, _ = usual_run()
    assert SpeedByWidth.of(RunView(state)).speedup(4) == pytest.approx(4**0.7, rel=0.1)


def test_larger_is_better_just_the_same() -> None:
    smaller, _ = usual_run()
    larger, _ = simulated(lambda config: lambda step: {"loss": -bowl(config)(step)["loss"]}, direction="maximize")
    assert [job.config for job in larger.jobs.values()] == [job.config for job in smaller.jobs.values()]


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    first, again, other = usual_run()[1], simulated(bowl)[1], simulated(bowl, seed=1)[1]
    assert list(first.read()) == list(again.read())
    assert list(first.read()) != list(other.read())


def test_the_number_of_trials_is_respected_and_all_are_trained_if_there_is_time() -> None:
    state, _ = simulated(bowl, trials=6, deadline_s=6 * 3600.0, budget_usd=20.0)
    assert len(state.jobs) == 6
    assert state.by_status["finished"] == 6


@pytest.mark.parametrize("trials", [1, 2])
def test_a_trial_or_two_are_trained_to_the_end_on_all_slots(trials: int) -> None:
    state, journal = simulated(bowl, trials=trials, max_steps=60, budget_usd=1.0)
    widths = {x.slots for entry in journal.read() for x in entry.decisions if isinstance(x, d.RunJob)}
    assert state.by_status["finished"] == trials
    assert max(widths) > 1


def test_where_early_values_mislead_trials_are_judged_later() -> None:
    def misleading(config):
        level, noise = bowl(config), random.Random(str(config)).random()
        return lambda step: {"loss": noise} if step <= 3 else level(step)

    state, _ = simulated(misleading, budget_usd=6.0, deadline_s=3600.0, max_steps=50)
    late = [job for job in state.jobs.values() if job.number > 80]
    assert late
    assert min(job.until_step for job in late) >= 4


def test_budget_and_deadline_hold_on_any_market() -> None:
    counted = 0
    for number in range(60):
        case = elastic_case(number, ("flex",))
        if case is None:
            continue
        options = {name: value for name, value in case.spec.options.items() if name not in ("t_min_s", "startup")}
        state, _ = play(with_fields(case, spec=replace(case.spec, options=options)))
        assert state.concluded, number
        assert not state.leases, number
        assert state.spent_usd <= case.spec.budget_usd * (1 + 1e-9), number
        assert state.now <= state.deadline_at + 1e-6, number
        counted += 1
    assert counted >= 50


# -- the recipe ----------------------------------------------------------------------------------------------------
def built(**fields) -> Flex:
    search = recipes.build(replace(SPEC, recipe="flex", **fields))[0]
    assert isinstance(search, Flex)
    return search


def test_options_reach_the_search() -> None:
    asked = {"grace_steps": 3, "explore": 0.4, "startup": 5, "placement": "on_demand"}
    assert built(options=asked) == Flex(grace_steps=3, explore=0.4, startup=5, spot=False)
    assert built() == Flex()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"options": {"explore": 1.5}}, "options.explore"),
        ({"options": {"grace_steps": 0}}, "options.grace_steps"),
        ({"options": {"explor": 0.5}}, "options.explor"),
        ({"metric": None, "kind": "bag"}, "no metric"),
        ({"slots": 3}, "3 slots"),
    ],
)
def test_impossible_requests_are_refused(fields: dict, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        built(**fields)
