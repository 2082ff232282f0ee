"""Slack of jobs that end by themselves: their length is the user's estimate, then that of finished jobs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.placement.slack.per_trial import SlackContext, slack_of
from shoestring.policies.placement.slack.policy import Slack
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story, story

HOUR_S = 3600.0
BAG = replace(SPEC, kind="bag", metric=None, max_steps=1, open_ended=True, deadline_s=10 * HOUR_S)
ON_TWO_CORES = 2**0.7
"""How much longer a job takes on the machines of the story than on four cores."""


def first_offer(job_takes_s: float | None) -> object:
    run = Story(Slack(), spec=BAG if job_takes_s is None else replace(BAG, job_takes_s=job_takes_s))
    run.happened(e.RunStarted(at=0.0, spec=run.spec, seed=0))
    run.add("j0", until_step=1)
    decided = run.tell(e.UserAsked(at=0.0, wish="resume"))
    return next(decision.offer for decision in decided if isinstance(decision, d.RequestLease))


def test_the_estimate_of_the_user_decides_where_the_first_job_runs() -> None:
    assert first_offer(None) == SPOT
    assert first_offer(1 * HOUR_S) == SPOT
    assert first_offer(5.95 * HOUR_S) == ON_DEMAND_OFFER, "9.7 of ten hours: no preemption may happen"


def test_reports_are_progress_once_a_job_has_finished() -> None:
    run = story(Slack(), lease="l0", job="j0", running_since=0.0, spec=BAG)
    assert slack_of(SlackContext(run.view), run.state.jobs["j0"]) is None, "how long it takes is unknown"
    run.happened(replace(run.report("j0", 50, 0.0), at=1800.0))
    assert slack_of(SlackContext(run.view), run.state.jobs["j0"]) is None
    run.happened(e.SegmentEnded(at=HOUR_S, segment="s0", step=100, cause="completed"))
    run.add("j1", until_step=1)
    run.start("s1", "j1", "l0", running_since=HOUR_S)
    whole = slack_of(SlackContext(run.view), run.state.jobs["j1"])
    assert whole is not None
    run.happened(replace(run.report("j1", 50, 0.0), at=1.5 * HOUR_S))
    half = slack_of(SlackContext(run.view), run.state.jobs["j1"])
    assert half is not None
    assert half.now.work_left_s == pytest.approx(whole.now.work_left_s / 2)
    assert half.now.unsaved_s == pytest.approx(whole.now.work_left_s / 2)
    run.happened(replace(run.report("j1", 200, 0.0), at=3 * HOUR_S))
    longer = slack_of(SlackContext(run.view), run.state.jobs["j1"])
    assert longer is not None
    assert 0 < longer.now.work_left_s < 0.1 * whole.now.work_left_s, "it still runs"


def test_the_estimate_is_of_four_cores() -> None:
    run = story(Slack(), job="j0", spec=replace(BAG, job_takes_s=HOUR_S))
    found = slack_of(SlackContext(run.view), run.state.jobs["j0"])
    assert found is not None
    assert found.now.work_left_s == pytest.approx(ON_TWO_CORES * HOUR_S)
