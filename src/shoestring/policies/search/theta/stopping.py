"""A stopping rule beside `Theta`: whoever cannot be among the best any more, as far as curves can tell, is dropped."""

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
"""A trial is looked at so often at most, evenly over its steps."""
OUT = ("dropped", "failed")
Known = tuple[int, float, tuple[int, ...]]
"""What a prediction was made from, in short."""


@dataclass(frozen=True)
class StopHopeless:
    """A trial that has just reported is compared with the one that is expected to come in as number mcnt of the
    others: if that one ends better with this confidence, both predictions being uncertain, the trial is dropped.

    All are judged by what they had come to at one step, the last that mcnt of the others have reached too. Whatever
    misleads a prediction there, a learning rate that is about to fall, misleads all of them alike.
    """

    mcnt: int = 3
    confidence: float = 0.95
    curve: str = CURVES[0]
    grace: float = 0.2
    """Nobody is judged before this share of all steps."""
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
                why=f"by step {at} expected to come to {mine.mean:.4g}, give or take {mine.deviation:.2g}; number "
                f"{self.mcnt} of the others, expected at {bar.mean:.4g}, ends better with a chance of {sure:.3f}",
            )


def _sure_to_lose(spec: RunSpec, mine: CurveForecast, bar: CurveForecast) -> float:
    """How likely `bar` ends better."""
    doubt = (mine.deviation**2 + bar.deviation**2) ** 0.5
    if not doubt > 0.0 or mine.mean == bar.mean:  # both known, or infinitely bad ones: no chance about it
        return float(spec.better(bar.mean, mine.mean))
    ahead = bar.mean - mine.mean if spec.direction == "maximize" else mine.mean - bar.mean
    return NormalDist().cdf(ahead / doubt)


class Outlooks:
    """Predictions made before, each from a curve as it was at some step: a memo, so that every trial is looked at once
    at every step, whoever asks."""

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
