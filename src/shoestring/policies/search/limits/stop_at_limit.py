"""A trial that has reached a limit on cost or time cannot be the answer: it is ended there, and the rest is saved.

On a part of the data the end may come sooner, where what it has taken leaves no hope for all of it.
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
from shoestring.policies.search.limits.judge import ENDED, verdict_on
from shoestring.policies.search.limits.trial_cost import Taken, cost_so_far, usd_per_hour
from shoestring.space.constraints import COST, SECONDS, ends
from shoestring.units import show_duration, show_usd

LEEWAY_S = 1.0
"""So much beyond its limit a trial is looked at: one that ends just in time is not ended by us."""
_TIMER = "limit:"
WHOLE = 1.0


@dataclass(frozen=True)
class EndAtLimits:
    """Looks at a trial when it must have reached a limit if it has trained without a pause, and then again."""

    gives_up: bool = False
    """Are trials on parts of the data ended where there is no hope left, and not only at the limit itself?"""
    wants: ClassVar[frozenset[Waker]] = frozenset((e.SegmentStarted, e.TimerFired))

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        job = _whom(state, event)
        if job is None or job.status != "running" or job.segment is None:
            return
        spent = cost_so_far(state, job)
        left_s = self._left_s(state, job, spent)
        if left_s == math.inf or spent is None:
            return
        if left_s < 0:
            yield d.DropJob(
                job=job.id,
                why=f"{show_duration(spent.seconds)} of training and {show_usd(spent.usd)} are {self._beyond(job)}",
            )
            verdict = verdict_on(state, job)
            if verdict is not None:  # now: once its segment is gone, what it had trained since its last report is too
                yield verdict
            yield d.TagJob(job=job.id, tags={ENDED: True}, why="it was ended, and would have taken more")
        else:
            lease = state.segments[job.segment].leases[0]
            at = state.now + left_s + LEEWAY_S
            yield d.WakeAt(name=f"{_TIMER}{job.id}", at=at, about=lease, why="by then it may have reached a limit")

    def _left_s(self, state: RunView, job: Job, spent: Taken | None) -> float:
        """Seconds of training until the first end by cost or time, at the price of now; infinite if there is none."""
        if spent is None or job.rented is None:
            return math.inf
        end_at = ends(state.spec.constraints, job.fraction if self.gives_up else WHOLE)
        usd_per_s = usd_per_hour(state, job.rented, job.slots) / 3600
        left = [math.inf]
        if SECONDS in end_at:
            left.append(end_at[SECONDS] - spent.seconds)
        if COST in end_at and usd_per_s > 0:
            left.append((end_at[COST] - spent.usd) / usd_per_s)
        return min(left)

    def _beyond(self, job: Job) -> str:
        if self.gives_up and job.fraction < WHOLE:
            return f"so much for {100 * job.fraction:.3g} % of the data that all of it cannot keep a limit"
        return "beyond a limit already"


def _whom(state: RunView, event: e.Event) -> Job | None:
    match event:
        case e.SegmentStarted(segment=segment) if segment in state.segments:
            return state.jobs[state.segments[segment].job]
        case e.TimerFired(name=name) if name.startswith(_TIMER):
            return state.jobs.get(JobId(name.removeprefix(_TIMER)))
    return None
