"""The trials of a study as arrays: the step and value of each, and a few points of its curve; larger is better."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView

Numbers = NDArray[np.float64]
Whole = NDArray[np.intp]

Seen = tuple[int, float | None] | None
"""The number of values of a curve, and the last; None if it has none."""
POINTS = 4
"""Of a curve: the latest, at half of its length, a quarter, an eighth. More points would add little."""
SMOOTHED = 8
"""A point is the mean of the last eighth of the steps up to it."""


class CurveArrays:
    """Row k is trial number k. A memo, which is updated as the curves grow and is rebuilt whenever it is missing."""

    def __init__(self, state: RunView) -> None:
        self._sign = -1.0 if state.spec.direction == "minimize" else 1.0
        self._seen: list[Seen] = []
        self.ids: list[JobId] = []
        self.x: Numbers = np.zeros((0, state.spec.space.dimensions))
        self.steps: Numbers = np.zeros((0, POINTS))
        """Of the points of each curve, latest first; 0 where it has no more."""
        self.values: Numbers = np.zeros((0, POINTS))
        self.best: Numbers = np.zeros(0)
        """The best of each curve; minus infinity if it has none."""

    def catch_up(self, state: RunView) -> None:
        jobs = list(state.jobs.values())
        self._make_room(len(jobs))
        for job in jobs[len(self.ids) :]:
            self.x[job.number] = state.spec.space.encode(job.config)
            self.ids.append(job.id)
            self._seen.append(None)
        for k, job in enumerate(jobs):
            curve = job.values
            now = (len(curve), curve[-1] if curve[-1] == curve[-1] else None) if curve else None  # NaN is not itself
            if now != self._seen[k]:
                self._seen[k] = now
                self._read(k, job)

    @property
    def count(self) -> int:
        return len(self.ids)

    @property
    def state_of_curves(self) -> tuple[Seen, ...]:
        """A fingerprint: equal if nothing was reported or lost in between."""
        return tuple(self._seen)

    @property
    def reports(self) -> int:
        return sum(seen[0] for seen in self._seen if seen is not None)

    def reached(self) -> Numbers:
        """The last reported step of each trial; 0 if none."""
        reached: Numbers = self.steps[: self.count, 0]
        return reached

    def latest(self, since: int = 1) -> Numbers:
        """Minus infinity where a curve has diverged or is not yet at the step `since`."""
        latest: Numbers = np.where(self.reached() >= since, self.values[: self.count, 0], -np.inf)
        return latest

    def _read(self, k: int, job: Job) -> None:
        curve = [self._sign * value if math.isfinite(value) else -math.inf for value in job.values]
        self.steps[k], self.values[k] = 0.0, 0.0
        self.best[k] = max(curve, default=-math.inf)
        last, point = len(curve), 0
        while last and point < POINTS:
            some = max(1, last // SMOOTHED)
            self.steps[k, point] = job.steps[last - 1]
            self.values[k, point] = sum(curve[last - some : last]) / some
            last, point = last // 2, point + 1

    def _make_room(self, trials: int) -> None:
        more = max(trials, 2 * len(self.best)) - len(self.best)
        if trials > len(self.best):
            self.x = np.concatenate([self.x, np.zeros((more, self.x.shape[1]))])
            self.steps = np.concatenate([self.steps, np.zeros((more, POINTS))])
            self.values = np.concatenate([self.values, np.zeros((more, POINTS))])
            self.best = np.concatenate([self.best, np.full(more, -np.inf)])
