"""Which trials are slow: before they are begun, by those that resemble them; and in their first step, by the clock.

Where one configuration takes ten times as long as another, exploring is mostly waiting for the slow ones, which then
cannot be trained far either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView
from shoestring.policies.search.elastic.scaling import ScalingModel, learned_speeds
from shoestring.policies.search.flex.curve_arrays import Ledger, Numbers

RIDGE = 0.3
"""How strongly the regression is drawn towards "all are alike"."""
BEYOND = 0.3
"""How far outside the (logarithms of) times seen so far a guess may lie."""
TOO_LONG = 2.5
"""Times what a step usually takes: a first step that is not over by then is not waited for."""
LEAST_SEEN = 6
"""Trials. With fewer nobody knows what is usual."""
MOST_GIVEN_UP = 0.25
"""For each trial that was seen. If more were slow, it is the first step that is: something is set up in it."""


class StepTimes:
    """A ridge regression of the logarithm of seconds a step on the configuration and its squares."""

    def __init__(self, ledger: Ledger, speeds: ScalingModel) -> None:
        seen = [number for number, job in enumerate(ledger.ids) if speeds.knows(job)]
        logs = np.array([math.log(speeds.step_s(ledger.ids[number])) for number in seen])
        self._usual = math.log(speeds.usual_s)
        self._ends = (logs.min() - BEYOND, logs.max() + BEYOND) if seen else (self._usual, self._usual)
        features = _features(ledger.x[seen])
        slopes = features.T @ features + RIDGE * np.eye(features.shape[1])
        self._weights = np.linalg.solve(slopes, features.T @ (logs - self._usual))

    def log_ratio(self, x: Numbers) -> Numbers:
        """The logarithm of how many times as long as usual a step of these configurations takes."""
        logs: Numbers = np.clip(self._usual + _features(x) @ self._weights, *self._ends)
        return logs - self._usual


def _features(x: Numbers) -> Numbers:
    away = x - 0.5
    return np.concatenate([np.full((len(x), 1), 0.5), away, away * away], axis=1)


def too_slow(state: RunView) -> Iterator[Job]:
    """Trials whose first step takes so long that their places are better given to others."""
    speeds = learned_speeds(state)
    seen = sum(1 for job in state.jobs if speeds.knows(job))
    given_up = sum(1 for job in state.jobs.values() if job.status == "paused" and not job.values)
    for segment in list(state.segments.values()):
        job = state.jobs[segment.job]
        if seen < LEAST_SEEN or given_up >= MOST_GIVEN_UP * seen:
            return
        if job.values or segment.running_since is None:
            continue
        if (state.now - segment.running_since) * speeds.speedup(segment.slots) > TOO_LONG * speeds.usual_s:
            given_up += 1
            yield job
