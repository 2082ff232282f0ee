"""How far a new trial is trained before it is ranked: until ranks hold.

Where the first steps say little (a warm-up, a schedule, noise), or good trials start slowly, trials ranked by their
first steps are chosen badly. So a few trials are scouts: they continue, as far as a study of this size can afford. All
others are ranked at the first step whose ranks agree with those where the scouts have arrived.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView

SCOUT = "scout_to"
"""Tag of a scout: its target step."""
ENOUGH = 8
"""Scouts. The rank correlation of fewer says too little."""
SHARE = 0.6
"""The share of the exploration steps that scouts may use."""
HELD = 0.7
"""The rank correlation from which on ranks count as stable."""
LEAST = 4
"""In grace steps of all other trials: scouts that can afford less cost more than they show."""
MOST = 0.25
"""Of max_steps: no trial is trained further than this just to be ranked."""


def grace_steps(state: RunView, first: int) -> int:
    """`first` steps, doubled until ranks are what they are where the scouts have arrived."""
    sign = 1.0 if state.spec.direction == "minimize" else -1.0
    steps = min(first, state.spec.max_steps)
    scouts = _scouts(state)
    arrived_at = _arrived_at(scouts, steps)
    arrived = [job for job in scouts if job.steps[-1] >= arrived_at]
    while steps < arrived_at:
        if rank_correlation([(sign * _at(job, steps), sign * _at(job, arrived_at)) for job in arrived]) >= HELD:
            break
        steps *= 2
    return steps


def next_scout(state: RunView, first: int, steps_to_explore: float) -> tuple[Job, int] | None:
    """A paused trial that should continue as a scout, with its target step; None if none is needed."""
    scouts = _scouts(state)
    there = int(scouts[0].tags[SCOUT] or 0) if scouts else _worthwhile(state.spec.max_steps, first, steps_to_explore)
    if there <= first or len(scouts) >= ENOUGH:
        return None
    paused = (job for job in state.jobs.values() if job.status == "paused" and job.segment is None and job.values)
    return next(((job, there) for job in paused if SCOUT not in job.tags and job.step < there), None)


def _worthwhile(max_steps: int, first: int, steps_to_explore: float) -> int:
    """The target step of scouts, in doublings of the first steps; `first` if scouts cannot afford enough."""
    there = first
    while 2 * there <= MOST * max_steps and ENOUGH * (2 * there - first) <= SHARE * steps_to_explore:
        there *= 2
    return there if there >= LEAST * first else first


def _scouts(state: RunView) -> list[Job]:
    return [job for job in state.jobs.values() if SCOUT in job.tags and job.values]


def _arrived_at(scouts: list[Job], first: int) -> int:
    """The furthest step, counted in doublings of the first, that enough scouts have reached."""
    step = first
    while sum(job.steps[-1] >= 2 * step for job in scouts) >= ENOUGH:
        step *= 2
    return step


def rank_correlation(pairs: list[tuple[float, float]]) -> float:
    """Spearman's rho; ties share their mean rank, and NaN ranks last. 0 where nothing differs."""
    before, after = (_ranks([pair[side] for pair in pairs]) for side in (0, 1))
    middle = (len(pairs) - 1) / 2
    spread = math.sqrt(sum((rank - middle) ** 2 for rank in before) * sum((rank - middle) ** 2 for rank in after))
    together = sum((a - middle) * (b - middle) for a, b in zip(before, after, strict=True))
    return together / spread if spread > 0 else 0.0


def _ranks(values: list[float]) -> list[float]:
    finite = [math.inf if math.isnan(value) else value for value in values]
    ordered = sorted(finite)
    return [(ordered.index(value) + bisect_right(ordered, value) - 1) / 2 for value in finite]


def _at(job: Job, step: int) -> float:
    """The last value it reported up to this step."""
    known = bisect_right(job.steps, step)
    return job.values[known - 1] if known else math.nan
