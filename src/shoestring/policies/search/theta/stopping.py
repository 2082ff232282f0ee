"""A stopping rule beside `Theta`: prunes trials that are predicted to end outside the best."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.theta.policy import CURVES, boundaries

if TYPE_CHECKING:
    from shoestring.models.curves.model import CurveForecast

LOOKS = 100
"""A trial is checked at most so often, evenly over its steps."""
OUT = ("pruned", "failed")
Known = tuple[int, float, tuple[int, ...]]
"""A fingerprint of the data a prediction was made from."""


@dataclass(frozen=True)
class StopHopeless:
    """A trial that has just reported is compared with the one predicted to rank mcnt-th of the others: if that one ends
    better with this confidence, given the variance of both predictions, the trial is pruned.

    All are predicted from their curves up to one step, the last that mcnt of the others have reached too. What misleads
    a prediction there, such as a learning rate that is about to fall, misleads all of them alike.
    """

    mcnt: int = 3
    confidence: float = 0.95
    curve: str = CURVES[0]
    grace: float = 0.2
    """No trial is pruned before this share of max_steps."""
    wants: ClassVar[frozenset[Waker]] = frozenset({e.JobReported})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running" or not isinstance(event, e.JobReported):
            return
        spec, job = state.spec, state.jobs[event.job]
        between = max(1, spec.max_steps // LOOKS)
        if job.segment != event.segment or job.status != "running" or job.step % between or not job.values:
            return
        others = [
            other for other in state.jobs.values() if other is not job and other.values and other.status not in OUT
        ]
        furthest = nlargest(self.mcnt, (other.steps[-1] for other in others))
        if len(furthest) < self.mcnt:
            return
        at = min(job.steps[-1], furthest[-1]) // between * between
        if self.grace * spec.max_steps <= at < spec.max_steps:
            yield from self._judge(state, job, [other for other in others if other.steps[-1] >= at], at)

    def _judge(self, state: RunView, job: Job, rivals: list[Job], at: int) -> Iterator[d.Decision]:
        spec, outlooks = state.spec, state.memo(self, Outlooks)
        known = (outlooks.of(spec, rival, at, self.curve) for rival in rivals)
        bar = nsmallest(self.mcnt, known, key=lambda outlook: spec.rank(outlook.mean))[-1]
        mine = outlooks.of(spec, job, at, self.curve)
        sure = _sure_to_lose(spec, mine, bar)
        if sure >= self.confidence:
            yield d.DropJob(
                job=job.id,
                why=f"pruned: predicted final value {mine.mean:.4g} ± {mine.deviation:.2g} by step {at}; the trial "
                f"ranked {self.mcnt} of the others, predicted {bar.mean:.4g}, ends better with probability {sure:.3f}",
            )


def _sure_to_lose(spec: RunSpec, mine: CurveForecast, bar: CurveForecast) -> float:
    """The probability that `bar` ends better."""
    deviation = (mine.deviation**2 + bar.deviation**2) ** 0.5
    if not deviation > 0.0 or mine.mean == bar.mean:  # both known exactly, or infinitely bad: no probability involved
        return float(spec.better(bar.mean, mine.mean))
    ahead = bar.mean - mine.mean if spec.direction == "maximize" else mine.mean - bar.mean
    return NormalDist().cdf(ahead / deviation)


class Outlooks:
    """Cached predictions, each from a curve up to some step: a memo, so that every trial is predicted once per step."""

    def __init__(self) -> None:
        self._made: dict[tuple[JobId, int], tuple[Known, CurveForecast]] = {}

    def of(self, spec: RunSpec, job: Job, at: int, curve: str) -> CurveForecast:
        count, stages = bisect_right(job.steps, at), boundaries(job)
        known = (count, job.values[count - 1] if count else 0.0, stages)
        made = self._made.get((job.id, at))
        if made is None or made[0] != known:
            from shoestring.models.curves.registry import curve_model

            steps, values = job.steps[:count], job.values[:count]
            outlook = curve_model(curve).predict(steps, values, spec.max_steps, spec.direction, stages)
            made = self._made[job.id, at] = known, outlook
        return made[1]
