"""HyperSched: ASHA that stops exploring in time and gives its leaders a growing share of the slots."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import shoestring as ss
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Job, Pace
from shoestring.kernel.types import Listing
from shoestring.policies.search.elastic.hypersched import HyperSched
from shoestring.policies.search.elastic.hypersched_forecast import TrialForecast, outlook, widths_by_gain
from shoestring.policies.search.seer.terms import Parameters
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story

MACHINE = Listing(offer=ON_DEMAND_OFFER, vcpus=4, memory_gb=8, slots=8, on_demand_usd_per_hour=1.0)
STUDY = replace(SPEC, listings=(MACHINE,), budget_usd=0.3, deadline_s=1000.0, wind_down_s=0.0, trials=99, max_steps=64)
"""One machine of eight slots to the end."""
SEARCH = HyperSched(Parameters(provision_s=0.0, spot=False), eta=4, grace_steps=1)


def exploring() -> Story:
    """Eight trials run, one on each slot; those that have an even number are better, and the first is the best."""
    run = Story(SEARCH, spec=STUDY)
    run.begin()
    run.order(d.RequestLease(lease="l0", offer=ON_DEMAND_OFFER, end_by=1000.0, why="the story"))
    run.happened(e.LeaseGranted(at=0.0, lease="l0"))
    for number, job in enumerate(list(run.state.waiting)):
        run.start(f"s{number}", job, "l0", running_since=0.0)
    return run


def train(run: Story, at: float, *steps: int) -> None:
    """All trials report these steps, evenly spaced up to a time."""
    for place, step in enumerate(steps):
        run.happened(e.TimerFired(at=at * (place + 1) / len(steps), name="later"))
        for number, job in enumerate(list(run.state.jobs.values())):
            if job.segment is not None:
                run.happened(run.report(job.id, step, number / 10 + 1 / step))


def test_it_begins_as_many_trials_as_the_affordable_cluster_has_slots() -> None:
    run = Story(SEARCH, spec=STUDY)
    decisions = run.begin()
    assert decisions[0] == d.WakeAt(name="leaders:1", at=500.0, why="then the leaders get 25% of the slots")
    assert [x.slots for x in decisions if isinstance(x, d.RunJob)] == [1] * 8


def test_a_free_slot_gets_a_new_trial_while_one_could_get_as_far_as_the_leader() -> None:
    run = exploring()
    train(run, 100.0, 1)
    assert [x.job for x in run.end("j7") if isinstance(x, d.AddJob)] == ["j8"]


def test_no_trial_is_begun_that_could_not_get_as_far_as_the_leader() -> None:
    run = exploring()
    train(run, 600.0, 1)
    assert not [x for x in run.end("j7") if isinstance(x, d.AddJob)]


def test_the_leaders_get_their_share_and_the_others_keep_the_rest() -> None:
    run = exploring()
    train(run, 400.0, 1, 2, 4)
    decisions = run.tell(e.TimerFired(at=500.0, name="leaders:1"))
    assert [(x.job, x.slots, x.until_step) for x in decisions if isinstance(x, d.RunJob)] == [("j0", 2, 64)]
    assert [x.job for x in decisions if isinstance(x, d.PauseJob)] == ["j7"], "eight slots: two, and six of one"
    (halt,) = [x for x in decisions if isinstance(x, d.HaltSegment)]
    assert halt.grace_s >= 500.0, "it may be resumed later: it is not interrupted"
    assert run.state.timers["leaders:2"] == pytest.approx(500.0 + 400.0 / 3)


def test_in_the_end_all_slots_belong_to_one_leader() -> None:
    run = exploring()
    train(run, 400.0, 1, 2, 4)
    decisions = run.tell(e.TimerFired(at=900.0, name="leaders:4"))
    assert [(x.job, x.slots) for x in decisions if isinstance(x, d.RunJob)] == [("j0", 8)]
    assert len([x for x in decisions if isinstance(x, d.PauseJob)]) == 7


def test_a_leader_is_never_narrower_than_before() -> None:
    run = exploring()
    train(run, 400.0, 1, 2, 4)
    run.tell(e.TimerFired(at=900.0, name="leaders:4"))
    again = run.tell(e.TimerFired(at=901.0, name="leaders:1"))
    assert not [x for x in again if isinstance(x, d.RunJob) and x.job == "j0"]


# -- the forecast ------------------------------------------------------------------------------------------------------
def known(loss: float, per_doubling: float) -> TrialForecast:
    job = Job(id="j", number=0, config={}, tags={})
    return TrialForecast(job, loss, per_doubling, steps=4, steps_per_s=0.1)


def test_a_curve_keeps_falling_by_as_much_for_each_doubling() -> None:
    assert known(1.0, 0.2).forecast(1, left_s=40.0, max_steps=99) == pytest.approx(0.8)
    assert known(1.0, 0.2).forecast(1, left_s=40.0, max_steps=4) == pytest.approx(1.0)


def test_slots_go_to_the_trials_that_gain_most_from_them() -> None:
    leaders = [known(0.5, 0.0), known(0.6, 0.1)]
    assert widths_by_gain(leaders, 5, narrowest=1, widest=8, left_s=100.0, max_steps=99) == [1, 4]
    assert widths_by_gain(leaders, 5, narrowest=1, widest=2, left_s=100.0, max_steps=99) == [2, 2]


def test_speed_is_that_of_one_slot_whatever_it_ran_on() -> None:
    run = exploring()
    train(run, 100.0, 1, 2)
    job = run.state.jobs["j0"]
    job.paces["small", 4] = Pace(steps=8, seconds=80.0)
    found = outlook(run.view, job)
    assert found is not None
    assert found.steps_per_s == pytest.approx(10 / (100.0 + 80.0 * 4**0.8))
    assert found.per_doubling == pytest.approx(0.5)


def test_nothing_is_known_of_a_trial_that_has_not_reported() -> None:
    run = exploring()
    assert outlook(run.view, run.state.jobs["j0"]) is None


# -- the end -----------------------------------------------------------------------------------------------------------
def test_it_is_over_when_no_trial_is_left_for_the_leaders_turns_to_come() -> None:
    """Turns at 18, 23, 28 and 32 hours kept a run open whose last trial had ended in the first."""
    study = ss.simulate(
        name="early",
        space={"x": ss.uniform(0, 1)},
        minimize="loss",
        recipe="hypersched",
        trials=16,
        max_steps=27,
        budget=4,
        deadline="36h",
        max_machines=4,
        market="modern",
    )
    state = study.state
    ended = [entry.event.at for entry in study.entries() if isinstance(entry.event, e.SegmentEnded)]
    assert study.status == "completed"
    assert {job.status for job in state.jobs.values()} == {"finished", "pruned"}
    assert state.now - ended[-1] < 60


def test_turns_go_on_while_a_trial_is_left() -> None:
    """Eight trials paused at their first rung are leaders to be."""
    run = exploring()
    train(run, 600.0, 1)
    decided = [x for job in list(run.state.jobs) for x in run.end(job, step=1)]
    assert not [x for x in decided if isinstance(x, d.WakeAt)]
    assert "leaders:1" in run.state.timers
