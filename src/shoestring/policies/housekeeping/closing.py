"""How every run ends: at its deadline, on request, when all work is done, or when no machine can be paid.

Also the fixed `park` rule: alone in the chain after a policy broke, it saves, halts and releases. No search ever has to
report that it is finished: a run without running or waiting trials, background tasks and machines is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.guard import came_too_late
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.types import EndReason, SegmentId
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.policies.placement.renting.breaker import renting_stopped, why_stopped

DEADLINE = "deadline"


@dataclass(frozen=True)
class Closing:
    wants: ClassVar[frozenset[Waker]] = frozenset(
        {
            e.RunStarted,
            e.LeaseGranted,
            e.LeaseDenied,
            e.LeaseEnded,
            e.SegmentEnded,
            e.TimerFired,
            e.ThoughtReady,
            e.UserAsked,
            e.PolicyBroke,
            d.RunJob,
            d.PauseJob,
            d.DropJob,
            d.WindDown,
        }
    )

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if isinstance(event, e.RunStarted | e.UserAsked):
            yield d.WakeAt(
                name=DEADLINE,
                at=max(state.now, state.deadline_at - state.spec.wind_down_s),
                why="everything must be over by the deadline",
            )
        if _deadline_is_near(state, event) and state.phase == "running":
            yield d.WindDown(reason="deadline_reached", why="the deadline is near")
        for segment in list(state.draining):
            yield _halt(state, segment)
        if state.phase == "running":
            yield from self._notice_the_end(state)
        if state.phase != "running":
            yield from self._shut_down(state)

    def _notice_the_end(self, state: RunView) -> Iterator[d.Decision]:
        if renting_stopped(state) and state.waiting and not state.leases:
            yield d.WindDown(reason="failed", why=why_stopped(state))
            return
        if _holds(state) or state.background_tasks or any(_may_bring_work(state, name) for name in state.timers):
            return
        refused = [decision for decision in state.decided if isinstance(decision, d.Refused)]
        if refused:
            reason: EndReason = "deadline_reached" if _came_too_late(state, refused[-1]) else "out_of_budget"
            yield d.WindDown(reason=reason, why=f"no more machines can be rented: {refused[-1].why}")
        elif state.jobs and state.count("failed") == len(state.jobs):
            yield d.WindDown(reason="failed", why=f"all trials failed ({len(state.jobs)})")
        elif not state.waiting:
            yield d.WindDown(reason="completed", why="all work is done")

    def _shut_down(self, state: RunView) -> Iterator[d.Decision]:
        for segment in list(state.segments.values()):
            if not segment.halting:
                yield d.HaltSegment(segment=segment.id, grace_s=state.spec.wind_down_s, why=state.ending)
        for lease in list(state.leases.values()):
            if not lease.segments and not lease.releasing:
                yield d.ReleaseLease(lease=lease.id, why=state.ending)
        if state.phase == "winding_down" and not state.leases:
            yield d.Conclude(best=state.best, why=state.ending)


def _came_too_late(state: RunView, refused: d.Refused) -> bool:
    """Was a lease refused for lack of time, and not of money?"""
    return isinstance(refused.wish, d.RequestLease) and came_too_late(state, refused.wish)


def _holds(state: RunView) -> bool:
    """Is a machine held that counts? A pending one does only while a trial waits for it: in the queue of a busy cluster
    it may be pending for days."""
    return bool(state.leases) if state.waiting else len(state.leases) > len(state.pending)


def _may_bring_work(state: RunView, timer: str) -> bool:
    """A search may decide more when its timer fires; placement only tries again for waiting trials."""
    return bool(state.waiting) if timer == RETRY else timer != DEADLINE


def _halt(state: RunView, segment: SegmentId) -> d.HaltSegment:
    """A trial that resumes elsewhere gets time to finish its current step, which would be lost."""
    job = state.jobs[state.segments[segment].job]
    if not job.wanted:
        return d.HaltSegment(segment=segment, grace_s=state.spec.wind_down_s, why=f"its trial is {job.status}")
    return d.HaltSegment(
        segment=segment,
        grace_s=max(state.spec.wind_down_s, min(state.spec.slice_s, state.deadline_at - state.now)),
        why=f"its trial resumes on {job.slots} slot{'' if job.slots == 1 else 's'}",
    )


def _deadline_is_near(state: RunView, event: e.Event) -> bool:
    """A timer that is still set was moved after this event was sent: the user gave more time."""
    return isinstance(event, e.TimerFired) and event.name == DEADLINE and DEADLINE not in state.timers
