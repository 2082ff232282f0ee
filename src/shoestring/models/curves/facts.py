"""Basic properties of a curve of a metric to minimize: has it diverged or levelled off, what is its level?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

EXPLODED = 1e4
"""A curve that is worse than its best by so many times its first value does not recover in time. Large, because a
metric may begin close to zero and get worse at first."""
RECENT = 5
"""The level of a curve is the median of so many last points: single ones jump."""
MOST_POINTS = 100
"""A fit uses at most this many points: ten thousand are no better and cost more."""


def diverged(first: float, best: float, last: float) -> bool:
    """Is the latest value not finite, or far worse than the best: |last - best| > EXPLODED * max(|best|, |first|)?"""
    if not math.isfinite(last):
        return True
    if not math.isfinite(best):
        return False  # an infinitely good value is an error of the metric, and no evidence about this one
    usual = max(abs(best), abs(first) if math.isfinite(first) else 0.0)
    return usual > 0.0 and abs(last - best) > EXPLODED * usual


def recent_movement(values: Sequence[float], window: int) -> float:
    """|newer - older| / |newer|, medians of the two halves of the last `window` points; infinite with fewer points.

    Near 0 on a plateau, where more training is no longer meaningful.  Paper: SpotTune section III-C

    Differs from the paper: it names no measure. Ours compares the medians of the older and the newer half of the
    window, so that noise around a level is no movement, in the units of Eq. 7: relative to the level.
    """
    if len(values) < window or window < 2:
        return math.inf
    tail = np.asarray(values[-window:], dtype=float)
    older, newer = float(np.median(tail[: window // 2])), float(np.median(tail[window // 2 :]))
    if not math.isfinite(newer):
        return math.inf
    return abs(newer - older) / max(abs(newer), 1e-12)


@dataclass(frozen=True, eq=False)
class CurveStage:
    """One stage of a curve, its steps counted from the start of the stage: the first is 1."""

    x: Numbers
    y: Numbers

    @classmethod
    def since(cls, began: float, x: Numbers, y: Numbers) -> CurveStage:
        first = int(np.searchsorted(x, began))
        return cls(x[first:] - began + 1.0, y[first:])

    @property
    def level(self) -> float:
        """The median of the last points."""
        return float(np.median(self.y[-RECENT:]))

    @property
    def noise(self) -> float:
        """Standard deviation of a value around the line through its neighbours: what no model can predict."""
        if len(self.y) < 3:
            return 0.0
        bends = self.y[2:] - 2.0 * self.y[1:-1] + self.y[:-2]
        # the second difference of independent values has six times the variance of one
        return float(np.median(np.abs(bends[-4 * RECENT :]))) / (0.6745 * math.sqrt(6.0))

    def points_as_far_back(self, at: float) -> int:
        """How many points there were at the step that lies as far back, as a ratio, as `at` lies ahead.

        Curves move by ratios of steps: between steps 50 and 100 about as far as between 100 and 200.
        """
        return int(np.searchsorted(self.x, self.x[-1] ** 2 / at, side="right"))

    def drift(self, at: float) -> float:
        """How far the level has moved since then."""
        back = self.points_as_far_back(at)
        return abs(self.level - float(np.median(self.y[max(0, back - RECENT) : max(1, back)])))

    def thinned(self) -> CurveStage:
        """The same with `MOST_POINTS` at most: means of neighbours."""
        count = len(self.x)
        if count <= MOST_POINTS:
            return self
        edges = np.linspace(0, count, MOST_POINTS + 1).astype(int)
        sizes = np.diff(edges)
        return CurveStage(np.add.reduceat(self.x, edges[:-1]) / sizes, np.add.reduceat(self.y, edges[:-1]) / sizes)
