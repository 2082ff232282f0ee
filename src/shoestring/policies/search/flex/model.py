"""What flex believes of a study: a freeze-thaw model of its curves, in terms in which good trials differ most.

Values are measured as the gap to the best, in units of the gap between best and median, and their logarithm is taken:
halving the gap to the best is worth the same everywhere, and how bad the bad ones are hardly matters.
"""

from __future__ import annotations

import math

import numpy as np

from shoestring.kernel.view import RunView
from shoestring.policies.search.flex.curve_arrays import POINTS, Ledger, Numbers, Whole
from shoestring.policies.search.flex.freeze_thaw import CurvePoints, FreezeThaw, FreezeThawParameters

NEAREST_GAP, WIDEST_GAP = 0.17, 4.0
"""Gaps below the one and above the other look alike."""
BEST, OTHERS, WHOLE_CURVES = 48, 28, 8
"""Trials that the model is told of: so many of the best, so many of the rest, evenly; whole curves of the very best.
Every trial that may still be chosen must be among them, or its own value would not count."""
LEAST_TRIALS = 3
"""With fewer there is nothing to compare."""
CROWDED = 0.3
"""A place closer than this to one that is being tried, in lengths of the model, has hardly anything new to tell."""
NEW = 1 << 40
"""Trials that do not exist are numbered from here."""


class CurvePosterior:
    """A fitted model of all curves as they are now. Numbers that it gives are gaps as above: larger is better."""

    def __init__(self, ledger: Ledger, max_steps: int, shape: FreezeThawParameters, since: int) -> None:
        """What was reported before the step `since` is not told: it says nothing about the end."""
        self._ledger, self.since = ledger, since
        self._log_steps = math.log(max(2, max_steps))
        self._shape = shape
        latest = ledger.latest(since)
        self._top = float(ledger.best[: ledger.count].max())
        self._unit = max(self._top - float(np.median(latest[np.isfinite(latest)])), 1e-12)
        trials, points = _told(latest, ledger.steps[: ledger.count], since)
        gaps = self._gaps(ledger.values[trials, points])
        spread = float(gaps.std()) or 1.0
        seen = self._points(trials, ledger.steps[trials, points])
        self._model = FreezeThaw(seen, (gaps - gaps.mean()) / spread, shape)

    def contenders(self, trials: list[int]) -> Whole:
        """Of these trials the best of those whose own values the model knows, and all that were judged too early to
        tell it: those it knows by their neighbours."""
        order = np.array(trials, dtype=np.intp)
        latest = self._ledger.latest(self.since)[order]
        told = order[np.argsort(-latest, kind="stable")][: min(BEST, int(np.isfinite(latest).sum()))]
        reached = self._ledger.reached()[order]
        return np.concatenate([told, order[(reached > 0) & (reached < self.since)]])

    def outlook(self, trials: Whole, steps: Numbers) -> tuple[Numbers, Numbers]:
        """Mean and deviation of what these trials come to at these steps."""
        return self._model.mean_and_deviation(self._points(trials, steps))

    def outlook_of_new(self, x: Numbers, step: float) -> tuple[Numbers, Numbers]:
        """The same of trials that do not exist yet."""
        u = np.full(len(x), math.log(max(1.0, step)) / self._log_steps)
        return self._model.mean_and_deviation(CurvePoints(x, NEW + np.arange(len(x)), u))

    def room(self, x: Numbers, tried: Numbers) -> Numbers:
        """From 0 to 1: how far these places are from any that is being tried and has not told anything yet."""
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
        return CurvePoints(self._ledger.x[trials], trials, np.log(np.maximum(1.0, steps)) / self._log_steps)


def _told(latest: Numbers, steps: Numbers, since: int) -> tuple[Whole, Whole]:
    """Which trials, and which points of their curves, the model is fitted to."""
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


def believed(state: RunView, shape: FreezeThawParameters | None, since: int) -> CurvePosterior | None:
    """The belief of now; None while there is nothing to compare. Equal curves give an equal belief, kept or not."""
    ledger = ledger_of(state)
    if np.isfinite(ledger.latest(since)).sum() < LEAST_TRIALS:
        return None
    logs = None if shape is None else tuple(shape.logs.tolist())
    now = (ledger.state_of_curves, logs, since)
    kept: dict[str, object] = state.memo(CurvePosterior, dict)
    if kept.get("of") != now:
        spec = state.spec
        kept["belief"] = CurvePosterior(
            ledger, spec.max_steps, shape or FreezeThawParameters.usual(spec.space.dimensions), since
        )
        kept["of"] = now
    belief = kept["belief"]
    assert isinstance(belief, CurvePosterior)
    return belief


def ledger_of(state: RunView) -> Ledger:
    ledger = state.memo(Ledger, lambda: Ledger(state))
    ledger.catch_up(state)
    return ledger
