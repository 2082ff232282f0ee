"""A trial that has reached a limit on cost or time cannot be the answer: it is ended there, and the rest is saved."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.constraints import COST, SECONDS
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.search.judging import ENDED, verdict_on
from shoestring.search.taken import Taken, taken, usd_per_hour
from shoestring.units import show_duration, show_usd

LEEWAY_S = 1.0
"""So much beyond its limit a trial is looked at: one that ends just in time is not ended by us."""
_TIMER = "limit:"


@dataclass(frozen=True)
class EndAtLimits:
    """Looks at a trial when it must have reached a limit if it has trained without a pause, and then again."""

    wants: ClassVar[frozenset[Waker]] = frozenset((e.SegmentStarted, e.TimerFired))

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        job = _whom(state, event)
        if job is None or job.status != "running" or job.segment is None:
            return
        spent = taken(state, job)
        left_s = _left_s(state, job, spent)
        if left_s == math.inf or spent is None:
            return
        if left_s < 0:
            yield d.DropJob(
                job=job.id,
                why=f"{show_duration(spent.seconds)} of training and {show_usd(spent.usd)} are beyond a limit already",
            )
            verdict = verdict_on(state, job)
            if verdict is not None:  # now: once its segment is gone, what it had trained since its last report is too
                yield verdict
            yield d.TagJob(job=job.id, tags={ENDED: True}, why="it was ended, and would have taken more")
        else:
            lease = state.segments[job.segment].leases[0]
            at = state.now + left_s + LEEWAY_S
            yield d.WakeAt(name=f"{_TIMER}{job.id}", at=at, about=lease, why="by then it may have reached a limit")


def _whom(state: RunView, event: e.Event) -> Job | None:
    match event:
        case e.SegmentStarted(segment=segment) if segment in state.segments:
            return state.jobs[state.segments[segment].job]
        case e.TimerFired(name=name) if name.startswith(_TIMER):
            return state.jobs.get(JobId(name.removeprefix(_TIMER)))
    return None


def _left_s(state: RunView, job: Job, spent: Taken | None) -> float:
    """Seconds of training until the first limit on cost or time, at the price of now; infinite where there is none."""
    if spent is None or job.rented is None:
        return math.inf
    usd_per_s = usd_per_hour(state, job.rented, job.slots) / 3600
    left = [math.inf]
    for limit in state.spec.constraints:
        if limit.at_most and limit.metric == SECONDS:
            left.append(limit.limit - spent.seconds)
        elif limit.at_most and limit.metric == COST and usd_per_s > 0:
            left.append((limit.limit - spent.usd) / usd_per_s)
    return min(left)
