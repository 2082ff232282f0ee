"""How much of a job is left, in steps of `max_steps`.

A trial has a target step. A job of a bag is done when its code ends: at which step that will be is learned from those
that have finished; before that it is `max_steps`, if the user gave it, and else unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView

STILL_RUNS = 0.05
"""The share of a job that counts as left, at least, as long as it runs: it may be longer than all before it."""


def steps_left(view: RunView, job: Job, step: int) -> float:
    """After this step, in steps of `max_steps`: all of them while nothing tells how far a job is."""
    if not view.spec.until_exit:
        return max(0, job.until_step - step)
    last = last_step(view)
    return job.until_step if last is None else reports_left(view, step) * job.until_step / last


def steps_done(view: RunView, job: Job) -> float:
    """So far, in steps of `max_steps`."""
    if not view.spec.until_exit:
        return job.step
    return job.until_step if job.status == "finished" else job.until_step - steps_left(view, job, job.step)


def reports_left(view: RunView, step: int) -> float:
    """Of a job of a bag after this step, in the steps that jobs report; infinite while that is unknown."""
    last = last_step(view)
    return math.inf if last is None else max(STILL_RUNS * last, last - step)


def step_size(view: RunView) -> float:
    """One reported step, in steps of `max_steps`: what a save waits for. 0 while no job of a bag is known to report."""
    if not view.spec.until_exit:
        return 1
    last = last_step(view)
    return 0.0 if last is None else view.spec.max_steps / last


def last_step(view: RunView) -> float | None:
    """Of a bag: the step at which jobs end. None while unknown."""
    known = view.memo("last steps", _LastSteps)
    known.read_on(view)
    if known.jobs:
        return known.steps / known.jobs
    return None if view.spec.open_ended else float(view.spec.max_steps)


@dataclass
class _LastSteps:
    """Of finished jobs that reported any, as a running sum: bags have a hundred thousand jobs."""

    read: int = 0
    jobs: int = 0
    steps: int = 0

    def read_on(self, view: RunView) -> None:
        for settled in view.settled[self.read :]:
            if settled.status == "finished" and settled.step:
                self.jobs, self.steps = self.jobs + 1, self.steps + settled.step
        self.read = len(view.settled)
