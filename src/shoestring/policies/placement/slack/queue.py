"""Trials that wait for a place, and behind whom: whoever is done first takes the next.

Charging every trial with its share of the whole queue would put those that begin late on demand, though nobody is
going to follow them.
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from itertools import islice
from typing import NamedTuple

from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView

MOST_ROUNDS = 4
"""So many trials for each place are queued one by one; of a longer queue everybody has the same share."""


def places_of(state: RunView) -> int:
    """How many trials can run at once."""
    return max(1, state.spec.max_machines * state.largest_slots // state.spec.slots)


def rounds_at_most(state: RunView) -> int:
    """How many trials there are for each place after those that run now. With most searches none: one that decides as
    it goes asks only for what can run at once. One that lets trials queue runs them all, also those yet to be added."""
    places, wanted = places_of(state), len(state.segments) + len(state.waiting)
    return -(-(wanted + _yet_to_be_added(state)) // places) - 1 if wanted > places else 0


class Behind(NamedTuple):
    """What a trial is to make room for in time."""

    steps: int = 0
    starts: int = 0


NOBODY = Behind()


def queued_behind(state: RunView) -> dict[JobId, Behind]:
    """For each wanted trial, where any queue."""
    spec, places = state.spec, places_of(state)
    if not rounds_at_most(state):
        return {}
    running = ((state.jobs[segment.job], segment.step) for segment in state.segments.values())
    seated = [(max(0, job.until_step - step), job.id) for job, step in running]
    waiting = [state.jobs[job] for job in islice(state.waiting, (MOST_ROUNDS + 1) * places)]
    empty = max(0, places - len(seated))
    seated += [(_steps_left(job), job.id) for job in waiting[:empty]]
    unseen = len(state.waiting) - len(waiting) + _yet_to_be_added(state)
    one_by_one = min(unseen, MOST_ROUNDS * places)
    queue = [*map(_steps_left, waiting[empty:]), *[spec.max_steps] * one_by_one]
    later = (unseen - one_by_one) // places
    behind = {job: Behind(later * spec.max_steps, later) for _, job in seated}
    heapify(seated)
    for steps in queue:
        done_after, first = seated[0]
        before = behind[first]
        behind[first] = Behind(before.steps + steps, before.starts + 1)
        heapreplace(seated, (done_after + steps, first))
    return behind


def _yet_to_be_added(state: RunView) -> int:
    return max(0, max(state.spec.trials, len(state.spec.given)) - len(state.jobs))


def _steps_left(job: Job) -> int:
    return max(0, job.until_step - job.saved_step)
