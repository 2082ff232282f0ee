"""Which waiting trials queue behind which running trial: the first one done makes room for the next in the queue.

Charging every trial with its share of the whole queue would put those that start late on on-demand machines, though no
trial is going to follow them.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heapreplace
from itertools import islice
from typing import NamedTuple

from shoestring.kernel.records import Job, Segment
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.models.speed.progress import steps_left

MOST_ROUNDS = 4
"""This many trials per place are queued one by one; the rest of a longer queue is shared equally."""


def rounds_at_most(state: RunView) -> int:
    """Trials per place after those that run now. With most searches none: one that decides step by step wants only as
    many as can run at once. One that lets trials queue runs them all, also those yet to be added."""
    places, wanted = state.places, len(state.segments) + len(state.waiting)
    return -(-(wanted + _yet_to_be_added(state)) // places) - 1 if wanted > places else 0


class Behind(NamedTuple):
    """What queues behind a trial, and must still be in time."""

    steps: float = 0
    starts: int = 0


NONE_BEHIND = Behind()


def queued_behind(state: RunView, relative_pace: Callable[[Segment], float] = lambda _: 1.0) -> dict[JobId, Behind]:
    """For each trial that runs or starts next; empty where no trials queue. `relative_pace`: how many times longer a
    step takes where this one runs than it will take the trials behind it."""
    spec, places = state.spec, state.places
    if not rounds_at_most(state):
        return {}
    staying = [segment for segment in state.segments.values() if not vacates(state, segment)]
    placed = [(_to_run(state, segment) * relative_pace(segment), segment.job) for segment in staying]
    waiting = [state.jobs[job] for job in islice(state.waiting, (MOST_ROUNDS + 1) * places)]
    waiting.sort(key=lambda job: -to_do(state, job))  # where it matters they start in this order: see `lanes`
    unseen = len(state.waiting) - len(waiting) + _yet_to_be_added(state)
    empty = max(0, places - len(placed))
    placed += [(to_do(state, job), job.id) for job in waiting[:empty]]
    if not placed:  # all are leaving their machines: they queue once they have left
        return {}
    one_by_one = min(unseen, MOST_ROUNDS * places)
    queue = [*(to_do(state, job) for job in waiting[empty:]), *[spec.max_steps] * one_by_one]
    leaving = (segment for segment in state.segments.values() if vacates(state, segment))
    queue += [_to_run(state, segment) for segment in leaving if state.jobs[segment.job].wanted]
    queue.sort(reverse=True)
    later = (unseen - one_by_one) // places
    behind = {job: Behind(later * spec.max_steps, later) for _, job in placed}
    heapify(placed)
    for steps in queue:
        done_after, first = placed[0]
        before = behind[first]
        behind[first] = Behind(before.steps + steps, before.starts + 1)
        heapreplace(placed, (done_after + steps, first))
    return behind


def vacates(state: RunView, segment: Segment) -> bool:
    """Will its place be empty soon, for the next trial? Its machine is on notice, or it is moving."""
    return segment.halting or not all(state.leases[lease].usable for lease in segment.leases)


def _to_run(state: RunView, segment: Segment) -> float:
    return steps_left(state, state.jobs[segment.job], segment.step)


def _yet_to_be_added(state: RunView) -> int:
    return max(0, max(state.spec.trials, len(state.spec.given)) - len(state.jobs))


def to_do(state: RunView, job: Job) -> float:
    """Steps that are not saved."""
    return steps_left(state, job, job.saved_step)
