"""Closing: how a run ends, whatever the reason, with nothing left that costs money."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.housekeeping.closing import DEADLINE, Closing
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.testing.story import SPEC, Story, story

LAST_MINUTES = SPEC.deadline_s - SPEC.wind_down_s


def halt(why: str) -> d.HaltSegment:
    return d.HaltSegment(segment="s0", grace_s=SPEC.wind_down_s, why=why)


def busy(*policies) -> Story:
    return story(*policies or (Closing(),), lease="l0", job="j0", running_since=0.0)


def wound_down(run: Story, why: str) -> None:
    """From here on: the segment saves and ends, the machine is released, the run concludes."""
    assert run.end("j0", "halted", step=0) == [d.ReleaseLease(lease="l0", why=why)]
    assert run.tell(e.LeaseEnded(at=run.state.now, lease="l0", cause="released", charged_usd=0.1)) == [
        d.Conclude(best=None, why=why)
    ]
    assert run.state.concluded


def test_the_deadline_is_known_from_the_start() -> None:
    run = Story(Closing())
    assert run.begin()[0] == d.WakeAt(name=DEADLINE, at=LAST_MINUTES, why="everything must be over by the deadline")


def test_before_the_deadline_everything_is_saved_and_released() -> None:
    run = busy()
    run.order(d.WakeAt(name=DEADLINE, at=LAST_MINUTES, why="the story"))
    why = "the deadline is near"
    assert run.tell(e.TimerFired(at=LAST_MINUTES, name=DEADLINE)) == [
        d.WindDown(reason="deadline_reached", why=why),
        halt(why),
    ]
    wound_down(run, why)


def test_a_deadline_that_was_moved_does_not_end_the_run() -> None:
    run = busy()
    run.order(d.WakeAt(name=DEADLINE, at=LAST_MINUTES, why="the story"))
    moved = run.tell(e.UserAsked(at=LAST_MINUTES - 1, wish="amend", deadline_s=2 * SPEC.deadline_s))
    assert moved == [d.WakeAt(name=DEADLINE, at=2 * SPEC.deadline_s - SPEC.wind_down_s, why=ANY)]
    assert run.tell(e.TimerFired(at=LAST_MINUTES, name=DEADLINE)) == []  # it was sent before
    assert run.view.phase == "running"


def test_a_run_without_work_ends_by_itself() -> None:
    run = Story(Closing())
    _, wind_down, conclude = run.begin()
    assert (wind_down.why, conclude.why) == ("all work is done", "all work is done")
    assert run.state.concluded


@pytest.mark.parametrize("what", ["a machine", "a timer", "a background task", "a waiting job"])
def test_a_run_is_not_over_while_work_may_come_of(what: str) -> None:
    run = story(Closing())
    match what:
        case "a machine":
            run.rent("l0")
        case "a timer":
            run.order(d.WakeAt(name="later", at=99.0, why="the story"))
        case "a background task":
            run.order(d.Think(name="fit", question="m:f", given=None, why="the story"))
        case "a waiting job":
            run.add("j0", until_step=9)
    assert run.tell(e.TimerFired(at=5.0, name="tick")) == []


def test_a_retry_for_a_machine_that_no_trial_waits_for_does_not_hold_the_run_open() -> None:
    run = story(Closing(), lease="l0", job="j0", running_since=0.0)
    run.order(d.WakeAt(name=RETRY, at=60.0, why="every offer was denied just now: try again"))
    run.order(d.ReleaseLease(lease="l0", why="the story"), d.DropJob(job="j0", why="the story"))
    run.end("j0", "halted", step=0)
    decided = run.tell(e.LeaseEnded(at=10.0, lease="l0", cause="released", charged_usd=0.1))
    assert [type(decision) for decision in decided] == [d.WindDown, d.Conclude]


def test_a_pending_machine_does_not_hold_a_run_open_in_which_no_trial_waits() -> None:
    run = story(Closing(), lease="l0", job="j0", running_since=0.0)
    offer = run.view.leases["l0"].offer
    run.order(d.RequestLease(lease="l1", offer=offer, end_by=900.0, reserve_usd=0.1, why="the story"))
    run.order(d.ReleaseLease(lease="l0", why="the story"), d.DropJob(job="j0", why="the story"))
    run.end("j0", "halted", step=0)
    decided = run.tell(e.LeaseEnded(at=10.0, lease="l0", cause="released", charged_usd=0.1))
    why = "all work is done"
    assert decided == [d.WindDown(reason="completed", why=why), d.ReleaseLease(lease="l1", why=why)]


def test_a_pending_machine_for_a_waiting_trial_holds_the_run_open() -> None:
    run = story(Closing(), lease="l0")
    offer = run.view.leases["l0"].offer
    run.order(d.RequestLease(lease="l1", offer=offer, end_by=900.0, reserve_usd=0.1, why="the story"))
    run.add("j0", until_step=9)
    assert run.tell(e.LeaseEnded(at=10.0, lease="l0", cause="lost", charged_usd=0.1)) == []


def test_a_retry_for_a_waiting_trial_holds_the_run_open() -> None:
    run = story(Closing(), lease="l0")
    run.add("j0")
    run.order(d.RunJob(job="j0", until_step=9, slots=1, why="the story"))
    run.order(d.WakeAt(name=RETRY, at=60.0, why="every offer was denied just now: try again"))
    assert run.tell(e.LeaseEnded(at=10.0, lease="l0", cause="released", charged_usd=0.1)) == []


def test_a_run_that_can_pay_no_machine_ends_with_the_reason() -> None:
    run = story(Cheapest(), Closing(), spec=replace(SPEC, budget_usd=0.001), job="j0")
    decided = run.tell(e.TimerFired(at=5.0, name="tick"))
    assert isinstance(decided[0], d.Refused)
    assert decided[-2:] == [d.WindDown(reason="out_of_budget", why=ANY), d.Conclude(best=None, why=ANY)]
    assert run.view.ending.startswith("no more machines can be rented: $0.001 of the budget is free, 4m30 of small")


def test_a_pause_saves_everything_and_can_be_resumed() -> None:
    run = busy()
    wake, halted = run.tell(e.UserAsked(at=5.0, wish="pause"))
    assert (wake.name, halted) == (DEADLINE, halt("paused by the user"))
    assert run.end("j0", "halted", step=0) == [d.ReleaseLease(lease="l0", why="paused by the user")]
    assert run.tell(e.LeaseEnded(at=8.0, lease="l0", cause="released", charged_usd=0.1)) == []
    assert (run.view.phase, run.state.concluded) == ("pausing", False)
    run.tell(e.UserAsked(at=9.0, wish="resume"))
    assert run.view.phase == "running"
    assert run.state.jobs["j0"].status == "waiting"


def test_a_run_stopped_by_the_user_concludes() -> None:
    run = busy()
    assert run.tell(e.UserAsked(at=5.0, wish="stop"))[1:] == [halt("stopped by the user")]
    wound_down(run, "stopped by the user")


def test_after_a_policy_broke_everything_is_saved_and_released() -> None:
    run = busy()
    assert run.tell(e.PolicyBroke(at=5.0, detail="division by zero")) == [halt("division by zero")]
    assert run.end("j0", "halted", step=0) == [d.ReleaseLease(lease="l0", why="division by zero")]
    assert run.tell(e.LeaseEnded(at=8.0, lease="l0", cause="released", charged_usd=0.1)) == []
    assert run.view.phase == "parking"


def test_a_machine_granted_while_the_run_ends_is_released_at_once() -> None:
    run = story(Closing())
    run.order(d.RequestLease(lease="l0", offer=SPEC.listings[0].offer, end_by=900.0, why="the story"))
    assert run.tell(e.UserAsked(at=5.0, wish="stop"))[1:] == [d.ReleaseLease(lease="l0", why="stopped by the user")]
    assert run.tell(e.LeaseGranted(at=6.0, lease="l0")) == []  # its release is under way
    assert not run.view.with_free_slots


@pytest.mark.parametrize(("order", "word"), [(d.DropJob, "pruned"), (d.PauseJob, "paused")])
def test_a_pruned_or_paused_job_is_halted(order, word: str) -> None:
    class Unwants:
        wants = frozenset({e.TimerFired})

        def decide(self, state, event):  # noqa: ARG002
            yield order(job="j0", why="the story")

    run = busy(Unwants(), Closing())
    assert run.tell(e.TimerFired(at=5.0, name="tick"))[1:] == [halt(f"its trial is {word}")]
