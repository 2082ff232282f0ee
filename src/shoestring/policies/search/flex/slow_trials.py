"""Which trials are slow: before they start, predicted from similar ones; and in their first step, by the clock.

Where one configuration takes ten times as long as another, exploration is mostly waiting for the slow ones, which then
cannot be trained far either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.policies.search.flex.curve_arrays import CurveArrays, Numbers

RIDGE = 0.3
"""Regularisation: how strongly the regression is shrunk towards equal speed."""
BEYOND = 0.3
"""How far outside the measured (log) step times a prediction may lie."""
TOO_LONG = 2.5
"""In usual step times: a trial whose first step takes longer is paused."""
LEAST_SEEN = 6
"""Trials. With fewer the usual step time is unknown."""
MOST_GIVEN_UP = 0.25
"""Per measured trial. If more were slow, the first step itself is: something is set up in it."""


class StepTimes:
    """A ridge regression of log(seconds per step) on the encoded configuration and its squares."""

    def __init__(self, curves: CurveArrays, speeds: SpeedByWidth, slots: int) -> None:
        """Of trials on so many slots."""
        seen = [number for number, job in enumerate(curves.ids) if speeds.knows(job)]
        logs = np.array([math.log(speeds.step_s(curves.ids[number], slots)) for number in seen])
        self._usual = math.log(speeds.usual_s(slots))
        self._ends = (logs.min() - BEYOND, logs.max() + BEYOND) if seen else (self._usual, self._usual)
        features = _features(curves.x[seen])
        slopes = features.T @ features + RIDGE * np.eye(features.shape[1])
        self._weights = np.linalg.solve(slopes, features.T @ (logs - self._usual))

    def log_ratio(self, x: Numbers) -> Numbers:
        """log(step time / usual step time) of these configurations."""
        logs: Numbers = np.clip(self._usual + _features(x) @ self._weights, *self._ends)
        return logs - self._usual


def _features(x: Numbers) -> Numbers:
    away = x - 0.5
    return np.concatenate([np.full((len(x), 1), 0.5), away, away * away], axis=1)


def too_slow(state: RunView) -> Iterator[Job]:
    """Trials whose first step takes so long that their slots are better given to others."""
    speeds = SpeedByWidth.of(state)
    seen = sum(1 for job in state.jobs if speeds.knows(job))
    given_up = sum(1 for job in state.jobs.values() if job.status == "paused" and not job.values)
    for segment in list(state.segments.values()):
        job = state.jobs[segment.job]
        if seen < LEAST_SEEN or given_up >= MOST_GIVEN_UP * seen:
            return
        if job.values or segment.running_since is None:
            continue
        if state.now - segment.running_since > TOO_LONG * speeds.usual_s(segment.slots):
            given_up += 1
            yield job
