"""A trial that violates a constraint on cost or time cannot be the answer: it is pruned there, which saves the rest.

On a data fraction it is pruned sooner, once its cost shows that training on all of the data would violate one. Where
that is depends on the other trials so far (`space.early_end`), so it is looked up when a trial is checked: of several
that started together, the first that is pruned gives the others more time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.constraints.judge import ENDED, verdict_on
from shoestring.policies.search.constraints.trial_cost import TrialCost, cost_so_far, usd_per_hour
from shoestring.space.constraints import COST, SECONDS
from shoestring.space.early_end import PastRun, ends
from shoestring.units import show_duration, show_usd

LEEWAY_S = 1.0
"""A trial is checked so long after it could violate a constraint: one that ends just in time is not pruned."""
_TIMER = "limit:"
WHOLE = 1.0


@dataclass(frozen=True)
class PruneAtConstraints:
    """Checks a trial when it must violate a constraint if it has trained without a pause, and then again."""

    wants: ClassVar[frozenset[Waker]] = frozenset((e.SegmentStarted, e.TimerFired))

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        job = _whom(state, event)
        if job is None or job.status != "running" or job.segment is None:
            return
        if state.segments[job.segment].step >= job.until_step:
            return  # it has trained, and only saves: that takes its time, and is no part of what a trial took
        spent = cost_so_far(state, job)
        left_s = _left_s(state, job, spent)
        if left_s == math.inf or spent is None:
            return
        if left_s < 0:
            yield d.DropJob(
                job=job.id,
                why=f"pruned after {show_duration(spent.seconds)} and {show_usd(spent.usd)} of training: "
                f"{_reason(state, job, spent)}",
            )
            verdict = verdict_on(state, job)
            if verdict is not None:  # now: once its segment is gone, so is the time since its last report
                yield verdict
            yield d.TagJob(job=job.id, tags={ENDED: True}, why="stopped early: its full cost and time would be higher")
        else:
            lease = state.segments[job.segment].leases[0]
            at = state.now + left_s + LEEWAY_S
            yield d.WakeAt(
                name=f"{_TIMER}{job.id}",
                at=at,
                about=lease,
                why="check its cost and time constraints: by then it may violate one",
            )


def _left_s(state: RunView, job: Job, spent: TrialCost | None) -> float:
    """Seconds of training until it violates a constraint on cost or time, at the current price; or infinite."""
    if spent is None or job.rented is None:
        return math.inf
    end_at = _ends(state, job)
    usd_per_s = usd_per_hour(state, job.rented, job.slots) / 3600
    left = [math.inf]
    if SECONDS in end_at:
        left.append(end_at[SECONDS] - spent.seconds)
    if COST in end_at and usd_per_s > 0:
        left.append((end_at[COST] - spent.usd) / usd_per_s)
    return min(left)


def _ends(state: RunView, job: Job) -> dict[str, float]:
    past = list(_past(state)) if job.fraction < WHOLE else []
    return ends(state.spec.constraints, job.fraction, past)


def _reason(state: RunView, job: Job, spent: TrialCost) -> str:
    limits, took = ends(state.spec.constraints, WHOLE), {SECONDS: spent.seconds, COST: spent.usd}
    if job.fraction == WHOLE or any(took[metric] > limit for metric, limit in limits.items()):
        return "it violates a constraint already"
    return f"after this much for {100 * job.fraction:.3g} % of the data, all of it is expected to violate a constraint"


def _past(state: RunView) -> Iterator[PastRun]:
    """Trials that finished or were ended at a limit, and what they reported of smaller fractions on their way."""
    for job in state.jobs.values():
        for fraction, snapshot in job.snapshots.items():
            spent = {SECONDS: snapshot.seconds}
            if job.seconds and job.usd is not None:
                spent[COST] = snapshot.seconds * job.usd / job.seconds
            yield PastRun(fraction, spent)
        if ENDED in job.tags or (job.status == "finished" and math.isfinite(job.best)):
            took = {SECONDS: job.seconds, COST: job.usd}
            known = {metric: value for metric, value in took.items() if value is not None}
            yield PastRun(job.fraction, known, killed=ENDED in job.tags)


def _whom(state: RunView, event: e.Event) -> Job | None:
    match event:
        case e.SegmentStarted(segment=segment) if segment in state.segments:
            return state.jobs[state.segments[segment].job]
        case e.TimerFired(name=name) if name.startswith(_TIMER):
            return state.jobs.get(JobId(name.removeprefix(_TIMER)))
    return None
