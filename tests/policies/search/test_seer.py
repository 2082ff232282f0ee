"""SEER's rounds: many trials start, the clock ends a round, the best get more slots, idle machines are released."""

from __future__ import annotations

import math
from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing
from shoestring.policies.search.seer.as_printed import SeerAsPrinted
from shoestring.policies.search.seer.policy import Seer
from shoestring.policies.search.seer.renting import ReleaseSpare, RentByPlan
from shoestring.policies.search.seer.replan import affordable_brackets, billed_so_far_usd
from shoestring.policies.search.seer.terms import Parameters, check_feasible_spec, chosen, t_min_s, terms_at_start
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story

PARAMETERS = Parameters(t_min_s=60.0, provision_s=0.0, spot=False)
MACHINE = Listing(offer=ON_DEMAND_OFFER, vcpus=4, memory_gb=8, slots=4, on_demand_usd_per_hour=1.0)
SMALL = replace(
    SPEC, listings=(MACHINE,), budget_usd=0.18, deadline_s=600.0, wind_down_s=0.0, max_machines=9, max_steps=99
)
"""Pays for one machine of four slots: four trials for a fifth of the time, the best two, on two slots each, for the
rest."""
FIRST_S, SECOND_S = 120.0, 480.0


def begun(policy: object = None, spec: RunSpec = SMALL) -> Story:
    run = Story(policy or Seer(PARAMETERS), spec=spec)
    run.begin()
    return run


def racing(values: dict[str, float | None], policy: object = None, spec: RunSpec = SMALL) -> Story:
    """All trials of the first stage run on one machine, and these reported these values."""
    run = begun(policy, spec)
    run.order(d.RequestLease(lease="l0", offer=ON_DEMAND_OFFER, end_by=600.0, why="the story"))
    run.tell(e.LeaseGranted(at=0.0, lease="l0"))
    for number, job in enumerate(list(run.state.waiting)):
        run.start(f"s{number}", job, "l0")
    for job, value in values.items():
        if value is not None:
            run.happened(run.report(job, 3, value))
    return run


def ended(run: Story, stage: int, at: float) -> list[d.Decision]:
    return run.tell(e.TimerFired(at=at, name=f"stage:{stage}"))


# -- the beginning -----------------------------------------------------------------------------------------------------
def test_all_trials_of_the_plan_begin_at_once_on_the_slots_of_their_brackets() -> None:
    run = Story(Seer(PARAMETERS), spec=SMALL)
    decisions = run.begin()
    assert [x.job for x in decisions if isinstance(x, d.AddJob)] == ["j0", "j1", "j2", "j3"]
    assert [x for x in decisions if isinstance(x, d.RunJob)] == [
        d.RunJob(job=f"j{n}", until_step=99, slots=1, why="stage 1 of 2, 1 slot, for 2m") for n in range(4)
    ]


def test_given_configurations_are_the_first_trials() -> None:
    run = begun(spec=replace(SMALL, given=({"x": 0.25},)))
    assert run.state.jobs["j0"].config == {"x": 0.25}


def test_a_worker_that_takes_two_slots_makes_every_width_even() -> None:
    run = begun(spec=replace(SMALL, slots=2))
    assert {job.slots for job in run.state.jobs.values()} == {2}


def test_the_clock_of_the_first_stage_starts_with_the_first_machine() -> None:
    run = begun()
    run.order(*(d.RequestLease(lease=f"l{n}", offer=ON_DEMAND_OFFER, end_by=600.0, why="the story") for n in range(2)))
    assert run.tell(e.LeaseGranted(at=40.0, lease="l0")) == [
        d.WakeAt(name="stage:1", at=pytest.approx(40.0 + FIRST_S), why="stage 1 of 2 lasts 2m")
    ]
    assert run.tell(e.LeaseGranted(at=50.0, lease="l1")) == []


def test_a_stage_never_lasts_beyond_the_wind_down() -> None:
    run = begun()
    run.order(d.RequestLease(lease="l0", offer=ON_DEMAND_OFFER, end_by=600.0, why="the story"))
    (clock,) = run.tell(e.LeaseGranted(at=550.0, lease="l0"))
    assert clock == d.WakeAt(name="stage:1", at=600.0, why=ANY)


# -- the end of a stage ------------------------------------------------------------------------------------------------
def test_the_best_are_promoted_to_more_slots_and_the_others_are_pruned_at_once() -> None:
    run = racing({"j0": 0.4, "j1": 0.1, "j2": 0.3, "j3": 0.2})
    decisions = ended(run, 1, FIRST_S)
    assert [x for x in decisions if isinstance(x, d.DropJob)] == [
        d.DropJob(job="j2", why="pruned: ranked 3 of 4 at the end of stage 1"),
        d.DropJob(job="j0", why="pruned: ranked 4 of 4 at the end of stage 1"),
    ]
    assert [x for x in decisions if isinstance(x, d.HaltSegment)] == [
        d.HaltSegment(segment="s2", grace_s=0.0, why=ANY),
        d.HaltSegment(segment="s0", grace_s=0.0, why=ANY),
    ]
    assert [x for x in decisions if isinstance(x, d.RunJob)] == [
        d.RunJob(job="j1", until_step=99, slots=2, why="promoted to stage 2 of 2, 2 slots: ranked 1 of 4"),
        d.RunJob(job="j3", until_step=99, slots=2, why="promoted to stage 2 of 2, 2 slots: ranked 2 of 4"),
    ]
    assert decisions[-1] == d.WakeAt(name="stage:2", at=pytest.approx(FIRST_S + SECOND_S), why=ANY)


def test_a_pruned_trial_with_the_best_value_of_all_may_save_its_checkpoint() -> None:
    run = racing({"j0": 0.01, "j1": 0.1, "j2": 0.3, "j3": 0.2})
    run.happened(run.report("j0", 4, 0.9))
    decisions = ended(run, 1, FIRST_S)
    assert d.DropJob(job="j0", why=ANY) in decisions
    assert not [x for x in decisions if isinstance(x, d.HaltSegment) and x.segment == "s0"]


def test_silent_trials_rank_behind_and_diverged_ones_last() -> None:
    run = racing({"j0": math.nan, "j1": None, "j2": 5.0, "j3": None}, spec=replace(SMALL, direction="maximize"))
    ended(run, 1, FIRST_S)
    assert {job.id: job.status for job in run.state.jobs.values()} == {
        "j0": "pruned",
        "j1": "running",
        "j2": "running",
        "j3": "pruned",
    }


def test_a_finished_trial_needs_no_slots() -> None:
    run = racing({"j0": 0.1, "j1": 0.2, "j2": 0.3, "j3": 0.4})
    run.end("j0", "completed", step=9)
    ended(run, 1, FIRST_S)
    assert [job.status for job in run.state.jobs.values()] == ["finished", "running", "running", "pruned"]


def test_the_end_of_the_last_stage_is_the_end_of_the_run() -> None:
    run = racing({"j0": 0.4, "j1": 0.1, "j2": 0.3, "j3": 0.2})
    ended(run, 1, FIRST_S)
    assert ended(run, 2, FIRST_S + SECOND_S) == [d.WindDown(reason="completed", why="stage 2 of 2, the last, is over")]


def test_a_timer_of_a_stage_that_is_over_changes_nothing() -> None:
    run = racing({"j0": 0.4, "j1": 0.1, "j2": 0.3, "j3": 0.2})
    ended(run, 1, FIRST_S)
    assert ended(run, 1, FIRST_S + 1) == []


def test_when_every_trial_is_over_before_its_stage_the_run_is_over() -> None:
    run = racing({})
    for number in range(3):
        assert run.end(f"j{number}", "completed", step=9) == []
    assert run.end("j3", "completed", step=9) == [
        d.WindDown(reason="completed", why="all remaining trials have finished or failed")
    ]


# -- money in the middle of a run --------------------------------------------------------------------------------------
MANY = replace(SMALL, budget_usd=1.0, max_machines=30)


def test_money_that_was_not_billed_promotes_more_trials() -> None:
    """Machines were granted just now, where the plan has paid for a whole first stage."""
    run = begun(spec=MANY)
    seer = Seer(PARAMETERS)
    planned = seer.plan(run.view)
    for number in range(planned.machines[0]):
        run.rent(f"l{number}", offer=ON_DEMAND_OFFER, end_by=60.0)
    places = affordable_brackets(run.view, terms_at_start(run.view, PARAMETERS), planned, 1)
    assert sum(b.trials * b.slots for b in places) > planned.stages[1].slots


def test_higher_bills_than_planned_promote_fewer_trials() -> None:
    run = begun(spec=MANY)
    planned = Seer(PARAMETERS).plan(run.view)
    run.rent("l0", offer=ON_DEMAND_OFFER)
    run.happened(e.LeaseEnded(at=300.0, lease="l0", cause="released", charged_usd=0.95))
    places = affordable_brackets(run.view, terms_at_start(run.view, PARAMETERS), planned, 1)
    assert sum(b.trials * b.slots for b in places) <= MACHINE.slots
    assert places


def test_what_was_billed_so_far_counts_open_machines_up_to_now() -> None:
    run = begun(spec=MANY)
    run.rent("l0", offer=ON_DEMAND_OFFER)
    run.happened(e.TimerFired(at=360.0, name="later"))
    assert billed_so_far_usd(run.view) == pytest.approx(0.1)


# -- machines ----------------------------------------------------------------------------------------------------------
def test_the_machines_of_the_first_stage_are_requested_together_and_prepaid_for_it() -> None:
    seer = Seer(PARAMETERS)
    run = Story(seer, RentByPlan(seer), spec=replace(SMALL, budget_usd=0.6, wind_down_s=20.0))
    asked = [x for x in run.begin() if isinstance(x, d.RequestLease)]
    plan = seer.plan(run.view)
    assert len(asked) == plan.machines[0] > plan.machines[1]
    assert [x.end_by for x in asked] == [pytest.approx(plan.stages[0].stop + 40.0)] * len(asked)
    assert sum(x.reserve_usd for x in asked) <= 0.6


def test_idle_machines_that_moving_trials_do_not_need_are_released() -> None:
    run = Story(ReleaseSpare(), spec=MANY)
    run.happened(e.RunStarted(at=0.0, spec=MANY, seed=0))
    for number in range(4):
        run.rent(f"l{number}", offer=ON_DEMAND_OFFER)
    for job in ("j0", "j1", "j2"):
        run.add(job, until_step=9)
    for number in range(3):
        run.start(f"s{number}", f"j{number}", "l0")
    run.order(d.RunJob(job="j0", until_step=9, slots=4, why="it grows by three"))
    run.order(d.RunJob(job="j1", until_step=9, slots=4, why="it grows by three"))
    assert run.end("j2", "completed", step=3) == [
        d.ReleaseLease(lease=lease, why="idle, and all trials fit on the other machines") for lease in ("l1", "l2")
    ], "six slots more are wanted: two are free where they run, and one whole machine must stay for the rest"


# -- as printed --------------------------------------------------------------------------------------------------------
LARGE = replace(MACHINE, slots=64, on_demand_usd_per_hour=64.0)
EXAMPLE = replace(SMALL, listings=(LARGE,), budget_usd=80 / 60)
"""The paper's: 80 slot-minutes in ten minutes."""


def test_as_printed_a_bracket_takes_one_trial_too_many_and_the_next_begins_before_its_end() -> None:
    """N = [8, 4, 0] on P = [1, 2, 4]: trials 1 to 9, then 8 to 12, then, as s was reset to 4, the fourth."""
    printed = SeerAsPrinted(Parameters(eta=2.0, t_min_s=60.0, provision_s=0.0, spot=False))
    run = begun(printed, EXAMPLE)
    assert [job.slots for job in run.state.jobs.values()] == [1, 1, 1, 4, 1, 1, 1, 2, 2, 2, 2, 2]


def test_as_printed_only_those_that_should_be_promoted_are_removed_and_the_worst_of_the_rest_train() -> None:
    """With eta = 4 a quarter is pruned, three quarters stay, and the slots are filled from the worst up."""
    printed = SeerAsPrinted(Parameters(t_min_s=60.0, provision_s=0.0, spot=False))
    run = begun(printed, replace(EXAMPLE, budget_usd=4.0))
    jobs = list(run.state.waiting)
    run.order(d.RequestLease(lease="l0", offer=ON_DEMAND_OFFER, end_by=200.0, why="the story"))
    run.tell(e.LeaseGranted(at=0.0, lease="l0"))
    for number, job in enumerate(jobs):
        run.start(f"s{number}", job, "l0")
        run.happened(run.report(job, 1, float(number)))
    ended(run, 1, run.state.timers["stage:1"])
    status = {job.id: job.status for job in run.state.jobs.values()}
    assert status["j0"] == "paused", "the best of all waits"
    worst_left = max((job for job in jobs if status[job] != "pruned"), key=lambda job: int(job[1:]))
    assert status[worst_left] == "running"


# -- what a user need not say ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("deadline_s", "least_s"), [(900.0, 60.0), (3600.0, 112.0), (6 * 3600.0, 712.0), (100.0, 21.25)]
)
def test_the_least_time_of_a_trial_is_a_thirtieth_of_the_time_and_a_minute_if_there_is_one(
    deadline_s: float, least_s: float
) -> None:
    spec = replace(SPEC, deadline_s=deadline_s, wind_down_s=min(120.0, deadline_s / 20))
    assert t_min_s(spec, Parameters()) == pytest.approx(least_s)


def test_a_run_that_can_be_is_not_refused() -> None:
    check_feasible_spec(SMALL, PARAMETERS)


def test_a_machine_billed_by_the_hour_is_not_chosen_if_an_hour_cannot_be_paid() -> None:
    hourly = replace(
        MACHINE, offer=replace(ON_DEMAND_OFFER, machine="hourly"), on_demand_usd_per_hour=0.5, billing="per_hour"
    )
    run = begun(spec=replace(SMALL, listings=(hourly, MACHINE)))
    listing, _ = chosen(run.view, PARAMETERS)
    assert listing == MACHINE


def test_a_budget_amended_to_less_than_a_trial_ends_the_run_with_the_reason() -> None:
    run = begun()
    (end,) = run.tell(e.UserAsked(at=10.0, wish="amend", budget_usd=0.001))
    assert isinstance(end, d.WindDown)
    assert end.reason == "out_of_budget"
    assert "do not allow a single trial" in end.why


def test_a_deadline_amended_to_less_than_a_trial_ends_the_run_with_the_reason() -> None:
    run = begun()
    (end,) = run.tell(e.UserAsked(at=10.0, wish="amend", deadline_s=50.0))
    assert isinstance(end, d.WindDown)
    assert end.reason == "deadline_reached"
    assert "do not allow a single trial" in end.why
