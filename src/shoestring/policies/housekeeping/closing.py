"""How every run ends: at its deadline, when asked, when nothing is left to do, or when nothing more can be paid.

Also the fixed `park` rule: alone on the bench after a policy broke, it saves, halts and releases. No search ever has
to say that it is finished: a run in which nothing runs, waits, thinks or is held can only be over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.types import SegmentId
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import RETRY

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
            yield d.WindDown(why="the deadline is near")
        for segment in list(state.draining):
            yield _leave(state, segment)
        if state.phase == "running":
            yield from self._notice_the_end(state)
        if state.phase != "running":
            yield from self._shut_down(state)

    def _notice_the_end(self, state: RunView) -> Iterator[d.Decision]:
        if _holds(state) or state.thinking or any(_may_bring_work(state, name) for name in state.timers):
            return
        refused = [wish for wish in state.decided if isinstance(wish, d.Refused)]
        if refused:
            yield d.WindDown(why=f"no machine can be paid any more: {refused[-1].why}")
        elif not state.waiting:
            yield d.WindDown(why="nothing is left to do")

    def _shut_down(self, state: RunView) -> Iterator[d.Decision]:
        for segment in list(state.segments.values()):
            if not segment.halting:
                yield d.HaltSegment(segment=segment.id, grace_s=state.spec.wind_down_s, why=state.ending)
        for lease in list(state.leases.values()):
            if not lease.segments and not lease.releasing:
                yield d.ReleaseLease(lease=lease.id, why=state.ending)
        if state.phase == "winding_down" and not state.leases:
            yield d.Conclude(best=state.best, why=state.ending)


def _holds(state: RunView) -> bool:
    """Is a machine held that counts? One that is still on its way does only while somebody waits for it: in the queue
    of a busy cluster it may be on its way for days."""
    return bool(state.leases) if state.waiting else len(state.leases) > len(state.pending)


def _may_bring_work(state: RunView, timer: str) -> bool:
    """A search may go on when its timer fires; placement only tries again for those who wait."""
    return bool(state.waiting) if timer == RETRY else timer != DEADLINE


def _leave(state: RunView, segment: SegmentId) -> d.HaltSegment:
    """Whoever goes on elsewhere is not hurried: the step it is in would be lost."""
    job = state.jobs[state.segments[segment].job]
    if not job.wanted:
        return d.HaltSegment(segment=segment, grace_s=state.spec.wind_down_s, why=f"its trial is {job.status}")
    return d.HaltSegment(
        segment=segment,
        grace_s=max(state.spec.wind_down_s, min(state.spec.slice_s, state.deadline_at - state.now)),
        why=f"its trial goes on with {job.slots} slot{'' if job.slots == 1 else 's'}",
    )


def _deadline_is_near(state: RunView, event: e.Event) -> bool:
    """A timer that is still set was moved while the event was on its way: the user gave more time."""
    return isinstance(event, e.TimerFired) and event.name == DEADLINE and DEADLINE not in state.timers
