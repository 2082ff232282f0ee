"""Slots in demand, and two ways to stop a trial: at once, or after its current step."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView


def wanted_slots(state: RunView) -> int:
    """Of all waiting trials, and of all running trials that are to continue."""
    waiting = sum(state.jobs[job].slots for job in state.waiting)
    return waiting + sum(
        job.slots for segment in state.segments.values() if (job := state.jobs[segment.job]).status == "running"
    )


def leave_at_once(state: RunView, job: Job) -> Iterator[d.Decision]:
    """Its slots are needed, or no longer paid for. The current best trial finishes its step first, so that its
    checkpoint is saved."""
    if job.segment is not None and job.segment in state.draining and job.id != state.best:
        yield d.HaltSegment(segment=job.segment, grace_s=0.0, why="its trial is pruned, its checkpoint is not needed")


def leave_after_this_step(state: RunView, job: Job) -> Iterator[d.Decision]:
    """It may be resumed later, and stopping it at once would lose the step."""
    if job.segment is not None and job.segment in state.draining:
        yield d.HaltSegment(
            segment=job.segment,
            grace_s=max(state.spec.wind_down_s, state.deadline_at - state.now),
            why="its trial pauses after this step",
        )
