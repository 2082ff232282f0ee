"""Settled trials are judged: their cost, and which constraints they satisfy. One that violates any is never best."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.search.constraints.judge import ENDED, JudgeTrials
from shoestring.policies.search.constraints.stop_early import LEEWAY_S, PruneAtConstraints
from shoestring.space.constraints import parse_all
from shoestring.testing.story import SPEC, SPOT_USD_PER_HOUR, Story, story

STEP_S = 40.0
WHOLE_S = 3 * STEP_S
WHOLE_USD = WHOLE_S / 3600 * SPOT_USD_PER_HOUR


def limited(*limits: str, policy: object = None, **fields: object) -> Story:
    """A machine, and room for trials of three steps."""
    spec = replace(SPEC, max_steps=3, constraints=parse_all(limits), **fields)
    return story(policy or JudgeTrials(), spec=spec, lease="l0")


def train(run: Story, job: str, value: float, *, fraction: float = 1.0, **metrics: float) -> list[d.Decision]:
    """All steps of a trial, forty seconds each; what is decided at its end."""
    number = len(run.state.jobs)
    run.add(job, until_step=3, fraction=fraction)
    run.start(f"s{number}", job, "l0")
    for step in (1, 2, 3):
        at = run.state.now + STEP_S
        told = {"loss": value, **metrics}
        run.happened(e.JobReported(at=at, segment=run.state.jobs[job].segment, job=job, step=step, metrics=told))
    return run.end(job)


def test_a_settled_trial_is_judged_by_its_training_time_at_the_current_price() -> None:
    run = limited("cost <= $1", "time <= 10m")
    verdict = d.JudgeJob(job="j0", seconds=WHOLE_S, usd=WHOLE_USD, feasible=True, why=ANY)
    assert train(run, "j0", 0.5) == [verdict]
    job = run.state.jobs["j0"]
    assert (job.seconds, job.usd, job.feasible) == (WHOLE_S, WHOLE_USD, True)


def test_only_a_trial_that_satisfies_every_constraint_can_be_the_best() -> None:
    run = limited("latency <= 20")
    train(run, "j0", 0.1, latency=25.0)
    assert run.state.best is None
    train(run, "j1", 0.3, latency=15.0)
    train(run, "j2", 0.2, latency=20.5)
    assert run.state.best == "j1"
    (verdict,) = (entry.decisions[0] for entry in run.entries[-1:])
    assert "violates latency <= 20 with 20.5" in verdict.why


def test_a_constraint_on_an_unreported_metric_is_violated_and_the_reason_names_it() -> None:
    run = limited("latency <= 20")
    (verdict,) = train(run, "j0", 0.1)
    assert verdict.feasible is False
    assert "latency was not reported" in verdict.why


def test_a_metric_called_cost_does_not_stand_for_what_the_floor_measures() -> None:
    run = limited("cost <= $1")
    (verdict,) = train(run, "j0", 0.1, cost=99.0)
    assert verdict.feasible is True


def test_a_trial_on_a_data_fraction_is_neither_best_nor_infeasible() -> None:
    run = limited("latency <= 20")
    (verdict,) = train(run, "j0", 0.01, fraction=0.25, latency=25.0)
    assert verdict.feasible is None
    assert run.state.best is None


def test_without_constraints_trials_on_data_fractions_are_still_timed() -> None:
    run = limited(fractions=(0.25, 1.0))
    assert train(run, "j0", 0.1, fraction=0.25) == [
        d.JudgeJob(job="j0", seconds=WHOLE_S, usd=WHOLE_USD, feasible=None, why=ANY)
    ]


def test_work_that_was_lost_is_not_counted() -> None:
    run = limited("time <= 10m")
    run.add("j0", until_step=3)
    run.start("s0", "j0", "l0")
    run.happened(e.JobReported(at=STEP_S, segment="s0", job="j0", step=1, metrics={"loss": 1.0}))
    assert run.end("j0", "failed", step=1) == []
    run.start("s1", "j0", "l0")
    for step in (1, 2, 3):
        at = run.state.now + STEP_S
        run.happened(e.JobReported(at=at, segment="s1", job="j0", step=step, metrics={"loss": 1.0}))
    run.end("j0")
    assert run.state.jobs["j0"].seconds == WHOLE_S


def test_a_trial_that_becomes_infeasible_is_no_longer_the_best() -> None:
    run = limited("cost <= $1")
    train(run, "j0", 0.1)
    train(run, "j1", 0.2)
    assert run.state.best == "j0"
    run.order(d.JudgeJob(job="j0", seconds=9.0, usd=2.0, feasible=False, why="the story"))
    assert run.state.best == "j1"


def test_a_judged_trial_is_not_judged_again_by_a_controller_that_takes_over() -> None:
    run = limited("cost <= $1")
    train(run, "j0", 0.1)
    run.state.memos.clear()
    assert [type(decision) for decision in train(run, "j1", 0.2)] == [d.JudgeJob]


# -- trials that reach a limit on cost or time -------------------------------------------------------------------------
def begun(*limits: str, fraction: float = 1.0) -> tuple[Story, list[d.Decision]]:
    run = limited(*limits, policy=PruneAtConstraints())
    run.add("j0", until_step=3, fraction=fraction)
    run.order(
        d.StartSegment(
            segment="s0", job="j0", leases=("l0",), config=run.state.jobs["j0"].config, until_step=3, why="the story"
        )
    )
    return run, run.tell(e.SegmentStarted(at=10.0, segment="s0"))


def test_a_trial_is_checked_when_it_may_violate_its_first_constraint() -> None:
    usd = 60 / 3600 * SPOT_USD_PER_HOUR
    _, decided = begun("time <= 2m", f"cost <= {usd!r}", "latency <= 3")
    assert [type(decision) for decision in decided] == [d.WakeAt]
    assert abs(decided[0].at - (10.0 + 60.0 + LEEWAY_S)) < 1e-6
    assert begun("latency <= 3", "time >= 5")[1] == []


def test_on_a_data_fraction_a_trial_is_pruned_when_all_of_the_data_would_violate_a_constraint() -> None:
    run, (look,) = begun("time <= 100", fraction=1 / 16)
    end_s = 100.0 * (1 / 16) ** 0.6
    assert abs(look.at - (10.0 + end_s + LEEWAY_S)) < 1e-6
    drop, judged, tagged = run.tell(e.TimerFired(at=look.at, name="limit:j0"))
    assert drop == d.DropJob(job="j0", why=ANY)
    assert "6.25 % of the data" in drop.why
    assert judged == d.JudgeJob(job="j0", seconds=ANY, usd=ANY, feasible=None, why=ANY)
    assert tagged == d.TagJob(job="j0", tags={ENDED: True}, why=ANY)
    (whole,) = begun("time <= 100")[1]
    assert abs(whole.at - (10.0 + 100.0 + LEEWAY_S)) < 1e-6


def test_trials_pruned_on_a_data_fraction_give_those_beside_them_more_time() -> None:
    run, _ = begun("time <= 100", fraction=1 / 16)
    for number in (1, 2):
        job, lease, segment = f"j{number}", f"l{number}", f"s{number}"
        run.rent(lease)
        run.add(job, until_step=3, fraction=1 / 16)
        run.order(
            d.StartSegment(segment=segment, job=job, leases=(lease,), config={"x": 0.5}, until_step=3, why="the story")
        )
        (look,) = run.tell(e.SegmentStarted(at=10.0, segment=segment))
    assert isinstance(run.tell(e.TimerFired(at=look.at, name="limit:j0"))[0], d.DropJob)
    assert isinstance(run.tell(e.TimerFired(at=look.at, name="limit:j1"))[0], d.DropJob)
    (again,) = run.tell(e.TimerFired(at=look.at, name="limit:j2"))
    assert isinstance(again, d.WakeAt)
    assert again.at == pytest.approx(10.0 + 2 * 100.0 * (1 / 16) ** 0.6 + LEEWAY_S)


def test_a_trial_that_violates_a_constraint_is_pruned_and_judged_by_its_cost_so_far() -> None:
    run, _ = begun("time <= 1m")
    decided = run.tell(e.TimerFired(at=71.0, name="limit:j0"))
    assert decided == [
        d.DropJob(job="j0", why=ANY),
        d.JudgeJob(job="j0", seconds=61.0, usd=ANY, feasible=False, why=ANY),
        d.TagJob(job="j0", tags={ENDED: True}, why=ANY),
    ]


def test_a_save_on_the_way_gives_a_trial_as_much_more_time() -> None:
    run, _ = begun("time <= 1m")
    run.happened(e.JobReported(at=40.0, segment="s0", job="j0", step=1, metrics={"loss": 1.0}))
    run.state.now = 60.0
    run.happened(run.save("j0", 1))
    (again,) = run.tell(e.TimerFired(at=71.0, name="limit:j0"))
    assert isinstance(again, d.WakeAt)
    assert abs(again.at - (91.0 + LEEWAY_S - 1.0)) < 1.0 + 1e-6


def test_a_trial_that_saves_after_its_last_step_is_not_pruned_for_the_time_that_takes() -> None:
    run, _ = begun("time <= 1m")
    for step in (1, 2, 3):
        run.happened(e.JobReported(at=10.0 + 15.0 * step, segment="s0", job="j0", step=step, metrics={"loss": 1.0}))
    assert run.tell(e.TimerFired(at=71.0, name="limit:j0")) == []


def test_a_timer_of_a_trial_that_is_over_does_nothing() -> None:
    run, _ = begun("time <= 1m")
    run.happened(e.SegmentEnded(at=50.0, segment="s0", step=3, cause="reached"))
    assert run.tell(e.TimerFired(at=71.0, name="limit:j0")) == []
