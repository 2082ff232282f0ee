"""How far a new trial is trained before it is judged: until ranks hold.

Where the first steps say little (a warm-up, a schedule, noise), or whoever ends well begins slowly, trials judged by
their first steps are chosen badly. So a few trials are scouts: they go on, as far as a study of this size can afford.
All others are judged at the first step whose ranks agree with those where the scouts have arrived.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView

SCOUT = "scout_to"
"""The tag of a scout: the step it goes to."""
ENOUGH = 8
"""Scouts. The rank correlation of fewer says too little."""
SHARE = 0.6
"""Of the steps there are for exploring: all that scouts may take."""
HELD = 0.7
"""The correlation of ranks from which on they count as having held."""
LEAST = 4
"""Times as far as everybody else: scouts that can afford less cost more than they tell."""
MOST = 0.25
"""Of all steps: nobody is trained further than this just to be judged."""


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
    """A trial that rests where all are judged and should go on as a scout, to this step; None if none is wanted."""
    scouts = _scouts(state)
    there = int(scouts[0].tags[SCOUT] or 0) if scouts else _worthwhile(state.spec.max_steps, first, steps_to_explore)
    if there <= first or len(scouts) >= ENOUGH:
        return None
    resting = (job for job in state.jobs.values() if job.status == "paused" and job.segment is None and job.values)
    return next(((job, there) for job in resting if SCOUT not in job.tags and job.step < there), None)


def _worthwhile(max_steps: int, first: int, steps_to_explore: float) -> int:
    """How far scouts go, in doublings of the first steps; no further than all others if that would be too little."""
    there = first
    while 2 * there <= MOST * max_steps and ENOUGH * (2 * there - first) <= SHARE * steps_to_explore:
        there *= 2
    return there if there >= LEAST * first else first


def _scouts(state: RunView) -> list[Job]:
    return [job for job in state.jobs.values() if SCOUT in job.tags and job.values]


def _arrived_at(scouts: list[Job], first: int) -> int:
    """The furthest step, counted in doublings of the first, at which enough scouts have been."""
    step = first
    while sum(job.steps[-1] >= 2 * step for job in scouts) >= ENOUGH:
        step *= 2
    return step


def rank_correlation(pairs: list[tuple[float, float]]) -> float:
    """Spearman's; those that are equal share their rank, and NaN ranks last. 0 where nothing differs."""
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
    """What it reported last up to this step."""
    known = bisect_right(job.steps, step)
    return job.values[known - 1] if known else math.nan
