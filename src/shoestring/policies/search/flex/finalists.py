"""Which trials continue, and on how many slots, once exploration is over.

All contenders are ranked by their predicted value at the end of the remaining time, if each trained on as many slots as
one trial may get. The best share the cluster; no trial gets more slots than it needs to finish.
"""

from __future__ import annotations

import numpy as np

from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.policies.search.flex.model import CurvePosterior, curve_arrays
from shoestring.policies.search.flex.narrowing import Narrowing, power_of_two
from shoestring.policies.search.flex.resources import Resources

KAPPA = 0.3
"""Upper confidence bound of a trial: standard deviations added to its mean,"""
RUNNING_BONUS = 0.15
"""and how many more for one that is running: every switch costs a start."""


def finalists(
    state: RunView, posterior: CurvePosterior | None, speeds: SpeedByWidth, resources: Resources, narrowing: Narrowing
) -> dict[JobId, int]:
    """Trials that should be trained now, best first, each with the slots it should have."""
    worker, max_steps = state.spec.slots, state.spec.max_steps
    ranked = _ranked(state, posterior, speeds, resources, narrowing)
    if not ranked:
        return {}
    alone = narrowing.most(resources, worker)
    widest = narrowing.width(resources, worker, len(ranked), max_steps * speeds.usual_s(alone))
    chosen: dict[JobId, int] = {}
    free = resources.slots
    for job in ranked:
        if free < worker:
            break
        width = min(widest, worker * power_of_two(free // worker))
        left = max_steps - state.jobs[job].step
        while width > worker and resources.steps(speeds.step_s(job, width // 2)) > left:
            width //= 2
        chosen[job] = width
        free -= width
    return chosen


def _ranked(
    state: RunView, posterior: CurvePosterior | None, speeds: SpeedByWidth, resources: Resources, narrowing: Narrowing
) -> list[JobId]:
    """All trials that can still be trained: by predicted final value, and behind them those without a prediction."""
    max_steps, curves = state.spec.max_steps, curve_arrays(state)
    alive = [job.number for job in state.jobs.values() if not job.over and job.step < max_steps]
    known = alive[:0] if posterior is None else posterior.contenders(alive).tolist()
    if posterior is not None and known:
        alone = narrowing.most(resources, state.spec.slots)
        reached = curves.reached()[known]
        more = np.array([resources.steps(speeds.step_s(curves.ids[k], alone)) for k in known])
        mean, deviation = posterior.outlook(np.array(known), np.minimum(max_steps, reached + more))
        kappa = KAPPA + RUNNING_BONUS * np.array([state.jobs[curves.ids[k]].wanted for k in known])
        known = [known[place] for place in np.argsort(-(mean + kappa * deviation), kind="stable")]
    latest = curves.latest()
    others = sorted(set(alive) - set(known), key=lambda k: (-latest[k], k))
    return [curves.ids[k] for k in [*known, *others]]
