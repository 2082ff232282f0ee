"""Trials that queue: each starts after the one that will be done first."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from benchmarks.placement_queue import TRIALS, queued
from shoestring.kernel import events as e
from shoestring.kernel.types import LeaseId
from shoestring.policies.placement.slack.per_trial import HOPELESS_SHARE, SlackContext, slack_of
from shoestring.policies.placement.slack.policy import Slack
from shoestring.policies.placement.slack.queue import Behind, queued_behind
from shoestring.testing.story import SPEC, Story, story

TWO_PLACES = replace(SPEC, max_machines=2, trials=4)


def queue(*, spec=TWO_PLACES, waiting: int = 2) -> Story:
    """Two trials of nine steps run, the second is ahead; others wait."""
    run = story(Slack(), spec=spec)
    for number in range(2 + waiting):
        run.add(f"j{number}", until_step=9, slots=spec.slots)
    for number, step in ((0, 2), (1, 6)):
        run.rent(f"l{number}", end_by=spec.deadline_s)
        run.start(f"s{number}", f"j{number}", f"l{number}", running_since=0.0)
        run.happened(replace(run.report(f"j{number}", step, 0.5), at=600.0 * step))
    return run


def test_the_first_trial_done_makes_room_for_the_next() -> None:
    assert queued_behind(queue().view) == {"j0": Behind(9, 1), "j1": Behind(9, 1)}
    assert queued_behind(queue(spec=replace(TWO_PLACES, trials=3), waiting=1).view) == {
        "j0": Behind(),
        "j1": Behind(9, 1),
    }


def test_trials_that_a_search_has_yet_to_add_count_where_trials_queue() -> None:
    run = queue(spec=replace(TWO_PLACES, trials=5))
    assert queued_behind(run.view) == {"j0": Behind(9, 1), "j1": Behind(18, 2)}


def test_a_search_that_wants_only_what_can_run_has_no_queue() -> None:
    assert queued_behind(queue(spec=replace(TWO_PLACES, trials=99), waiting=0).view) == {}


def test_trials_that_all_leave_their_machines_queue_once_they_have_left() -> None:
    run = queue(spec=replace(TWO_PLACES, max_machines=1, trials=2), waiting=0)
    for lease in ("l0", "l1"):
        run.happened(e.RevocationNoticed(at=4000.0, lease=LeaseId(lease), gone_at=4120.0))
    assert queued_behind(run.view) == {}


def test_slots_that_fit_no_worker_are_no_places() -> None:
    """Three slots on each of two machines, and two of them for a trial: two places, not three."""
    three = tuple(replace(listing, slots=3) for listing in SPEC.listings)
    run = queue(spec=replace(TWO_PLACES, listings=three, slots=2))
    assert queued_behind(run.view) == queued_behind(queue().view) == {"j0": Behind(9, 1), "j1": Behind(9, 1)}


@pytest.mark.parametrize("seed", [2, 15, 20])
def test_slots_that_do_not_divide_cost_no_deadline(seed: int) -> None:
    """Counted as six places instead of four, the queue looked shorter than it was: a trial was not done."""
    assert queued("slack", 2, 3, 70, seed).finished == queued("slack", 1, 1, 70, seed).finished == TRIALS


def test_what_queues_lowers_the_slack_of_those_it_waits_for() -> None:
    run = queue(spec=replace(TWO_PLACES, trials=3), waiting=1)
    first, second = (slack_of(SlackContext(run.view), run.state.jobs[job]) for job in ("j0", "j1"))
    assert first is not None
    assert second is not None
    assert first.now.work_left_s == 7 * 600.0
    assert second.now.work_left_s > (3 + 9) * 600.0


def test_of_a_queue_that_cannot_be_done_in_time_only_what_has_room_counts() -> None:
    run = queue(spec=replace(TWO_PLACES, trials=40, deadline_s=4 * 3600.0))
    trial_slack = slack_of(SlackContext(run.view), run.state.jobs["j1"])
    assert trial_slack is not None
    assert 0 < trial_slack.now.slack_s
    assert not trial_slack.hopeless


def test_nothing_is_paid_for_a_trial_that_cannot_be_done_in_time_at_all() -> None:
    run = queue(waiting=0, spec=replace(TWO_PLACES, trials=2, deadline_s=2 * 3600.0))
    trial_slack = slack_of(SlackContext(run.view), run.state.jobs["j0"])
    assert trial_slack is not None
    assert trial_slack.now.time_left_s < HOPELESS_SHARE * trial_slack.now.work_left_s
    assert trial_slack.hopeless
