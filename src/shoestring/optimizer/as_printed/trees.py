"""The trees of the paper: plain values, and the mean and the variance of the trees' predictions for each run alone.

That has two faults. Trees cannot extrapolate a trend, so they predict full size to be no better than the largest
fraction in the data. And without covariances a run is evidence of itself only: runs on data fractions then never add
information about the best at full size, and the acquisition is left with chance and cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shoestring.optimizer.candidates import Candidates, Numbers, Rows
from shoestring.optimizer.gp.draws import GaussianDraws
from shoestring.optimizer.joint_model import Prediction
from shoestring.optimizer.outcome_model import OutcomeData
from shoestring.optimizer.transforms import Transform
from shoestring.optimizer.trees.ensemble import grown
from shoestring.optimizer.trees.posterior import LEAST_DEVIATION, TREES


class PrintedTreePosterior:
    """f(x, s) ~ N(mean of trees, variance of trees), independent for each run.  Paper: TrimTuner section III-A, trees

    Differs from the paper: deviation and noise have a minimum, so that nothing is divided by 0; pending runs count as
    if they had measured what was predicted.
    """

    def __init__(
        self, measured: OutcomeData, transform: Transform, candidates: Candidates, seed: Sequence[int]
    ) -> None:
        self.transform = transform
        self._candidates, self._seed = candidates, seed
        self._x = _columns(candidates.x[measured.rows], np.exp(measured.log_s))
        self._levels = measured.levels
        self._grow()

    def _grow(self) -> None:
        self._forest = grown(self._x, self._levels, TREES, np.random.default_rng(self._seed))
        self._least = LEAST_DEVIATION * max(1.0, float(np.abs(self._levels).max()))
        self._predictions: dict[float, Prediction] = {}

    def at(self, fraction: float, rows: Rows | None = None) -> Prediction:
        if fraction not in self._predictions:
            x = self._candidates.x
            predicted = self._forest.predict(_columns(x, np.full(len(x), fraction)))
            self._predictions[fraction] = Prediction(
                predicted.mean(axis=1), np.maximum(predicted.std(axis=1), self._least), self._least
            )
        whole = self._predictions[fraction]
        return whole if rows is None else Prediction(whole.mean[rows], whole.deviation[rows], whole.noise)

    def mean_at(self, fraction: float) -> Numbers:
        return self.at(fraction).mean

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """0, but for a run with itself."""
        if not math.isclose(fraction, other_fraction):
            return np.zeros((len(rows), len(others)))
        variance = self.at(fraction, rows).deviation[:, None] ** 2
        return np.where(rows[:, None] == others, variance, 0.0)

    def draws(self, targets: Rows, count: int, seed: Sequence[int]) -> GaussianDraws:
        return GaussianDraws(self, targets, count, seed)

    def expecting(self, row: int, fraction: float) -> None:
        self._levels = np.append(self._levels, self.at(fraction).mean[row])
        self._x = np.vstack([self._x, _columns(self._candidates.x[[row]], np.array([fraction]))])
        self._grow()


def _columns(x: Numbers, fractions: Numbers) -> Numbers:
    return np.column_stack([x, fractions])
