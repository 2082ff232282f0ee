"""Slots that are wanted, and two ways to have a trial leave its place: at once, or after the step it is in."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView


def wanted_slots(state: RunView) -> int:
    """Of all that waits, and of all that runs and is to go on."""
    waiting = sum(state.jobs[job].slots for job in state.waiting)
    return waiting + sum(
        job.slots for segment in state.segments.values() if (job := state.jobs[segment.job]).status == "running"
    )


def leave_at_once(state: RunView, job: Job) -> Iterator[d.Decision]:
    """The place is wanted, or no longer paid for. Only the best so far may finish its step, to be saved."""
    if job.segment is not None and job.segment in state.draining and job.id != state.best:
        yield d.HaltSegment(segment=job.segment, grace_s=0.0, why="its trial is out, and nobody needs its state")


def leave_after_this_step(state: RunView, job: Job) -> Iterator[d.Decision]:
    """It may be wanted again, and being hurried would cost it the step."""
    if job.segment is not None and job.segment in state.draining:
        yield d.HaltSegment(
            segment=job.segment,
            grace_s=max(state.spec.wind_down_s, state.deadline_at - state.now),
            why="its trial rests after this step",
        )
