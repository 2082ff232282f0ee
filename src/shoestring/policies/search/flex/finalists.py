"""Who is trained on, and on how many slots, once exploring is over.

All who might win are judged by what they would come to at the end of the time there is, were they trained on as many
slots as one may get. The best share the cluster; nobody gets more slots than it needs to finish.
"""

from __future__ import annotations

import numpy as np

from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.elastic.scaling import ScalingModel
from shoestring.policies.search.flex.model import CurvePosterior, ledger_of
from shoestring.policies.search.flex.narrowing import Narrowing, power_of_two
from shoestring.policies.search.flex.resources import Resources

CURIOUS = 0.3
"""How many deviations of hope count for a trial,"""
STAYS = 0.15
"""and how many more for one that is being trained: every change costs a start."""


def finalists(
    state: RunView, belief: CurvePosterior | None, speeds: ScalingModel, resources: Resources, narrowing: Narrowing
) -> dict[JobId, int]:
    """Trials that should be trained now, best first, each with the slots it should have."""
    worker, max_steps = state.spec.slots, state.spec.max_steps
    ranked = _ranked(state, belief, speeds, resources, narrowing)
    if not ranked:
        return {}
    alone = narrowing.most(resources, worker)
    widest = narrowing.width(resources, worker, len(ranked), max_steps * speeds.usual_s / speeds.speedup(alone))
    chosen: dict[JobId, int] = {}
    free = resources.slots
    for job in ranked:
        if free < worker:
            break
        width = min(widest, worker * power_of_two(free // worker))
        left, step_s = max_steps - state.jobs[job].step, speeds.step_s(job)
        while width > worker and resources.steps(step_s / speeds.speedup(width // 2)) > left:
            width //= 2
        chosen[job] = width
        free -= width
    return chosen


def _ranked(
    state: RunView, belief: CurvePosterior | None, speeds: ScalingModel, resources: Resources, narrowing: Narrowing
) -> list[JobId]:
    """All that can still be trained: by their outlook, and behind them those of whom too little is known."""
    max_steps, ledger = state.spec.max_steps, ledger_of(state)
    alive = [job.number for job in state.jobs.values() if not job.over and job.step < max_steps]
    known = alive[:0] if belief is None else belief.contenders(alive).tolist()
    if belief is not None and known:
        fastest = speeds.speedup(narrowing.most(resources, state.spec.slots))
        reached = ledger.reached()[known]
        more = np.array([resources.steps(speeds.step_s(ledger.ids[k]) / fastest) for k in known])
        mean, deviation = belief.outlook(np.array(known), np.minimum(max_steps, reached + more))
        hope = CURIOUS + STAYS * np.array([state.jobs[ledger.ids[k]].wanted for k in known])
        known = [known[place] for place in np.argsort(-(mean + hope * deviation), kind="stable")]
    latest = ledger.latest()
    others = sorted(set(alive) - set(known), key=lambda k: (-latest[k], k))
    return [ledger.ids[k] for k in [*known, *others]]
