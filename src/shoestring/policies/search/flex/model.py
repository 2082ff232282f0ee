"""The posterior of flex: a freeze-thaw model of all curves, on a scale on which good trials differ most.

A value becomes the negative logarithm of its gap to the best, in units of the gap between best and median: halving the
gap to the best is worth the same everywhere, and how bad the bad ones are hardly matters.
"""

from __future__ import annotations

import math

import numpy as np

from shoestring.kernel.view import RunView
from shoestring.policies.search.flex.curve_arrays import POINTS, CurveArrays, Numbers, Whole
from shoestring.policies.search.flex.freeze_thaw import CurvePoints, FreezeThaw, FreezeThawParameters

NEAREST_GAP, WIDEST_GAP = 0.17, 4.0
"""Gaps below the first and above the second are treated as equal."""
BEST, OTHERS, WHOLE_CURVES = 48, 28, 8
"""Trials the model is fitted to: so many of the best, so many of the rest, evenly; whole curves of the very best.
Every trial that may still be chosen must be among them, or its own value would not count."""
LEAST_TRIALS = 3
"""With fewer no model is fitted."""
CROWDED = 0.3
"""A configuration closer than this to a pending one, in length scales of the model, is hardly informative."""
NEW = 1 << 40
"""Candidates, which are not trials yet, are numbered from here."""


class CurvePosterior:
    """A model fitted to all curves as they are now. Its values are on the scale above: larger is better."""

    def __init__(self, curves: CurveArrays, max_steps: int, shape: FreezeThawParameters, since: int) -> None:
        """Reports before the step `since` are left out: they say nothing about the final value."""
        self._curves, self.since = curves, since
        self._log_steps = math.log(max(2, max_steps))
        self._shape = shape
        latest = curves.latest(since)
        self._top = float(curves.best[: curves.count].max())
        self._unit = max(self._top - float(np.median(latest[np.isfinite(latest)])), 1e-12)
        trials, points = _training_points(latest, curves.steps[: curves.count], since)
        gaps = self._gaps(curves.values[trials, points])
        spread = float(gaps.std()) or 1.0
        seen = self._points(trials, curves.steps[trials, points])
        self._model = FreezeThaw(seen, (gaps - gaps.mean()) / spread, shape)

    def contenders(self, trials: list[int]) -> Whole:
        """Of these trials, the best of those the model is fitted to, and all that were ranked too early to be included:
        those are predicted from their neighbours."""
        order = np.array(trials, dtype=np.intp)
        latest = self._curves.latest(self.since)[order]
        fitted = order[np.argsort(-latest, kind="stable")][: min(BEST, int(np.isfinite(latest).sum()))]
        reached = self._curves.reached()[order]
        return np.concatenate([fitted, order[(reached > 0) & (reached < self.since)]])

    def outlook(self, trials: Whole, steps: Numbers) -> tuple[Numbers, Numbers]:
        """Posterior mean and standard deviation of these trials at these steps."""
        return self._model.mean_and_deviation(self._points(trials, steps))

    def outlook_of_new(self, x: Numbers, step: float) -> tuple[Numbers, Numbers]:
        """The same for configurations that have no trial yet."""
        u = np.full(len(x), math.log(max(1.0, step)) / self._log_steps)
        return self._model.mean_and_deviation(CurvePoints(x, NEW + np.arange(len(x)), u))

    def room(self, x: Numbers, tried: Numbers) -> Numbers:
        """From 0 to 1: the distance of these configurations from any pending one that has not reported yet."""
        if not len(tried):
            return np.ones(len(x))
        lengths = self._shape.lengths
        apart = (((x[:, None] - tried[None]) / lengths) ** 2).sum(axis=2).min(axis=1)
        room: Numbers = 1.0 - np.exp(-apart / CROWDED**2)
        return room

    def sharpened(self) -> FreezeThawParameters:
        return self._model.sharpened()

    def _gaps(self, values: Numbers) -> Numbers:
        gaps = np.where(np.isfinite(values), (self._top - values) / self._unit, WIDEST_GAP)
        logs: Numbers = -np.log(NEAREST_GAP + np.clip(gaps, 0.0, WIDEST_GAP))
        return logs

    def _points(self, trials: Whole, steps: Numbers) -> CurvePoints:
        return CurvePoints(self._curves.x[trials], trials, np.log(np.maximum(1.0, steps)) / self._log_steps)


def _training_points(latest: Numbers, steps: Numbers, since: int) -> tuple[Whole, Whole]:
    """The trials, and the points of their curves, that the model is fitted to."""
    order = np.flatnonzero(steps[:, 0] >= since)
    order = order[np.argsort(-latest[order], kind="stable")]
    rest = order[BEST:]
    if len(rest) > OTHERS:
        rest = rest[np.linspace(0, len(rest) - 1, OTHERS).astype(int)]
    ends = np.concatenate([order[:BEST], rest])
    earlier = np.repeat(order[:WHOLE_CURVES], POINTS - 1)
    points = np.tile(np.arange(1, POINTS), len(order[:WHOLE_CURVES]))
    there = steps[earlier, points] >= since
    return np.concatenate([ends, earlier[there]]), np.concatenate([np.zeros(len(ends), dtype=int), points[there]])


def posterior_now(state: RunView, shape: FreezeThawParameters | None, since: int) -> CurvePosterior | None:
    """The current posterior; None with too few trials. Equal curves give an equal posterior, cached or not."""
    curves = curve_arrays(state)
    if np.isfinite(curves.latest(since)).sum() < LEAST_TRIALS:
        return None
    logs = None if shape is None else tuple(shape.logs.tolist())
    now = (curves.state_of_curves, logs, since)
    kept: dict[str, object] = state.memo(CurvePosterior, dict)
    if kept.get("of") != now:
        spec = state.spec
        kept["belief"] = CurvePosterior(
            curves, spec.max_steps, shape or FreezeThawParameters.usual(spec.space.dimensions), since
        )
        kept["of"] = now
    posterior = kept["belief"]
    assert isinstance(posterior, CurvePosterior)
    return posterior


def curve_arrays(state: RunView) -> CurveArrays:
    curves = state.memo(CurveArrays, lambda: CurveArrays(state))
    curves.catch_up(state)
    return curves
