"""How fast trials train, learned from their own reports: seconds per step of each, and the speed-up of more slots.

The speed-up lambda(p) is (p / p0) ** alpha, with p0 the slots of one worker. Before any observation alpha is a guess;
every trial that was trained at p0 and at another width is an observation of it, and observed widths have an alpha of
their own, shrunk towards what all widths have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView

USUAL_ALPHA = 0.8
"""Data-parallel training loses a little to communication at every doubling."""
WEIGHT_OF_GUESS = 2.0
"""The guess has the weight of so many observations."""
LEAST_ALPHA, MOST_ALPHA = 0.0, 1.1
"""Values outside are machine hiccups, not scaling."""
MOST_OBSERVATIONS = 8
"""Per width. The first ones suffice."""
USUAL_STEP_S = 60.0
"""Seconds per step before any was measured."""


def learned_speedup(view: RunView, slots: int) -> float:
    """How many times faster a trial trains on so many slots than on those of one worker."""
    return learned_speeds(view).speedup(slots)


def learned_speeds(view: RunView) -> ScalingModel:
    speeds = view.memo(ScalingModel, lambda: ScalingModel(view.spec.slots))
    speeds.catch_up(view)
    return speeds


class ScalingModel:
    """Fitted to the recorded paces: a memo, rebuilt whenever it is missing."""

    def __init__(self, narrowest: int) -> None:
        self._narrowest = narrowest
        self._seen: dict[JobId, tuple[int, str | None]] = {}
        self._seconds: dict[JobId, dict[tuple[str, int], float]] = {}
        """Seconds per step, by instance type and slots."""
        self._alpha = USUAL_ALPHA
        self._alphas: dict[int, float] = {}
        self._usual_s: float | None = None
        """None: to be recomputed."""

    def catch_up(self, view: RunView) -> None:
        widened = False
        for job in view.jobs.values():
            if self._seen.get(job.id) != (len(job.values), job.segment):
                self._seen[job.id] = (len(job.values), job.segment)
                self._usual_s = None
                self._seconds[job.id] = seconds = dict(_seconds_per_step(view, job))
                widened = widened or len(seconds) > 1
        if widened:
            self._learn()

    def speedup(self, slots: int) -> float:
        return float((slots / self._narrowest) ** self._alphas.get(slots, self._alpha))

    def knows(self, job: JobId) -> bool:
        """Has it reported a step?"""
        return bool(self._seconds.get(job))

    def step_s(self, job: JobId) -> float:
        """Seconds per step on the slots of one worker; the usual time if it never reported."""
        seconds = self._seconds.get(job)
        return self._narrow_s(seconds) if seconds else self.usual_s

    @property
    def usual_s(self) -> float:
        """Seconds per step of a trial that was never measured: the geometric mean of the others."""
        if self._usual_s is None:
            logs = [math.log(self._narrow_s(seconds)) for seconds in self._seconds.values() if seconds]
            self._usual_s = math.exp(math.fsum(logs) / len(logs)) if logs else USUAL_STEP_S
        return self._usual_s

    def _narrow_s(self, seconds: dict[tuple[str, int], float]) -> float:
        """From the observed width closest to one worker."""
        (_, slots), seen_s = min(seconds.items(), key=lambda item: item[0][1])
        return seen_s if slots == self._narrowest else seen_s * self.speedup(slots)

    def _learn(self) -> None:
        observed: dict[int, list[float]] = {}
        for seconds in self._seconds.values():
            if len(seconds) < 2:
                continue
            for (machine, slots), wide_s in seconds.items():
                narrow_s = seconds.get((machine, self._narrowest))
                if slots > self._narrowest and narrow_s is not None:
                    alpha = math.log(narrow_s / wide_s) / math.log(slots / self._narrowest)
                    observed.setdefault(slots, []).append(min(MOST_ALPHA, max(LEAST_ALPHA, alpha)))
        first = {slots: alphas[:MOST_OBSERVATIONS] for slots, alphas in observed.items()}
        self._alpha = _drawn_towards(USUAL_ALPHA, [alpha for alphas in first.values() for alpha in alphas])
        self._alphas = {slots: _drawn_towards(self._alpha, alphas) for slots, alphas in first.items()}


def _drawn_towards(guess: float, observed: list[float]) -> float:
    return (WEIGHT_OF_GUESS * guess + math.fsum(observed)) / (WEIGHT_OF_GUESS + len(observed))


def _seconds_per_step(view: RunView, job: Job) -> Iterable[tuple[tuple[str, int], float]]:
    """For every instance type and width it was trained on, including its open segment."""
    paces = {where: (pace.steps, pace.seconds) for where, pace in job.paces.items()}
    if job.segment is not None:
        segment = view.segments[job.segment]
        where, pace = (segment.machine, segment.slots), segment.pace
        steps, seconds = paces.get(where, (0, 0.0))
        paces[where] = (steps + pace.steps, seconds + pace.seconds)
    for where, (steps, seconds) in paces.items():
        if steps > 0 and seconds > 0:
            yield where, seconds / steps
