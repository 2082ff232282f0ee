"""How far a new trial is trained before it is judged: until ranks hold.

Where the first steps say little (a warm-up, a schedule, noise), trials judged by them are drawn by lot. So a few trials
are scouts and go twice as far. If their ranks have changed by then, nobody was worth judging that early, and from there
on everybody goes twice as far.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView

SCOUT = "scout_to"
"""The tag of a scout: the step it goes to."""
ENOUGH = 6
"""Scouts that can be compared before anything is concluded."""
FEW = 40
"""New trials. Scouts of a study that can begin fewer would cost more than they could save."""
HELD = 0.5
"""The correlation of ranks from which on they count as having held."""
MOST = 0.25
"""Of all steps: nobody is trained further than this just to be judged."""


def grace_steps(state: RunView, first: int) -> int:
    """`first` steps, doubled for as long as scouts say that they are too few."""
    sign = 1.0 if state.spec.direction == "minimize" else -1.0
    steps = min(first, state.spec.max_steps)
    scouts = [job for job in state.jobs.values() if SCOUT in job.tags and job.values]
    while scouts:
        pairs = [(sign * _at(job, steps), sign * _at(job, 2 * steps)) for job in scouts if job.steps[-1] >= 2 * steps]
        if len(pairs) < ENOUGH or rank_correlation(pairs) >= HELD:
            break
        steps *= 2
    return steps


def next_scout(state: RunView, grace: int, new_trials: float) -> Job | None:
    """A trial that stands at `grace` and should go on to twice that, if one is wanted, while `new_trials`
    can still be begun."""
    if new_trials < FEW or 2 * grace > MOST * state.spec.max_steps:
        return None
    jobs = state.jobs.values()
    if sum(int(job.tags.get(SCOUT) or 0) >= 2 * grace for job in jobs) >= ENOUGH:
        return None
    resting = (job for job in jobs if job.status == "paused" and job.segment is None and job.step == grace)
    return next((job for job in resting if job.values), None)


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
