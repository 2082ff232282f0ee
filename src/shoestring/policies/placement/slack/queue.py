"""Which waiting trials queue behind which running trial: the first one done makes room for the next in the queue.

Charging every trial with its share of the whole queue would put those that start late on on-demand machines, though no
trial is going to follow them.
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from itertools import islice
from typing import NamedTuple

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


def queued_behind(state: RunView) -> dict[JobId, Behind]:
    """For each trial that runs or starts next; empty where no trials queue."""
    spec, places = state.spec, state.places
    if not rounds_at_most(state):
        return {}
    running = ((state.jobs[segment.job], segment.step) for segment in state.segments.values())
    placed = [(steps_left(state, job, step), job.id) for job, step in running]
    waiting = [state.jobs[job] for job in islice(state.waiting, (MOST_ROUNDS + 1) * places)]
    empty = max(0, places - len(placed))
    placed += [(steps_left(state, job, job.saved_step), job.id) for job in waiting[:empty]]
    unseen = len(state.waiting) - len(waiting) + _yet_to_be_added(state)
    one_by_one = min(unseen, MOST_ROUNDS * places)
    queue = [steps_left(state, job, job.saved_step) for job in waiting[empty:]]
    queue += [spec.max_steps] * one_by_one
    later = (unseen - one_by_one) // places
    behind = {job: Behind(later * spec.max_steps, later) for _, job in placed}
    heapify(placed)
    for steps in queue:
        done_after, first = placed[0]
        before = behind[first]
        behind[first] = Behind(before.steps + steps, before.starts + 1)
        heapreplace(placed, (done_after + steps, first))
    return behind


def _yet_to_be_added(state: RunView) -> int:
    return max(0, max(state.spec.trials, len(state.spec.given)) - len(state.jobs))
