"""The trees of the paper: plain values, and the mean and the variance of the trees' predictions for each run alone.

That has two faults. Trees cannot extrapolate a trend, so they predict full size to be no better than the largest
fraction in the data. And without covariances a run is evidence of itself only: runs on data fractions then never add
information about the best at full size, and the acquisition is left with chance and cost.

For the chance, trees are trained again with what a run is expected to measure: steps 1 to 4 of section III, and so does
the published code. The information is as in FABOLAS, to which the paper refers: in the published code too, it is
computed from covariances and not by training again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shoestring.optimizer.candidates import Candidates, Numbers, Rows
from shoestring.optimizer.gp.draws import GaussianDraws
from shoestring.optimizer.joint_model import Prediction
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.outcome_model import OutcomeData
from shoestring.optimizer.transforms import Transform
from shoestring.optimizer.trees.ensemble import Forest, grown
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
            self._predictions[fraction] = self._marginals(self._forest, _columns(x, np.full(len(x), fraction)))
        whole = self._predictions[fraction]
        return whole if rows is None else Prediction(whole.mean[rows], whole.deviation[rows], whole.noise)

    def _marginals(self, forest: Forest, x: Numbers) -> Prediction:
        predicted = forest.predict(x)
        return Prediction(predicted.mean(axis=1), np.maximum(predicted.std(axis=1), self._least), self._least)

    def mean_at(self, fraction: float) -> Numbers:
        return self.at(fraction).mean

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """0, but for a run with itself."""
        if not math.isclose(fraction, other_fraction):
            return np.zeros((len(rows), len(others)))
        variance = self.at(fraction, rows).deviation[:, None] ** 2
        return np.where(rows[:, None] == others, variance, 0.0)

    def fantasy(self, rows: Rows, fraction: float, targets: Rows) -> RetrainedTrees:
        return RetrainedTrees(self, rows, fraction, targets)

    def retrained(self, row: int, fraction: float, surprise: float, targets: Rows) -> Prediction:
        """The full-size targets by trees that also know of this run.  Paper: TrimTuner section III, steps 1 and 2"""
        here = self.at(fraction, np.array([row]))
        level = here.mean + surprise * here.measured_deviation
        x = np.vstack([self._x, _columns(self._candidates.x[[row]], np.array([fraction]))])
        forest = grown(x, np.append(self._levels, level), TREES, np.random.default_rng(self._seed))
        return self._marginals(forest, _columns(self._candidates.x[targets], np.full(len(targets), FULL)))

    def draws(self, targets: Rows, count: int, seed: Sequence[int]) -> GaussianDraws:
        return GaussianDraws(self, targets, count, seed)

    def expecting(self, row: int, fraction: float) -> None:
        self._levels = np.append(self._levels, self.at(fraction).mean[row])
        self._x = np.vstack([self._x, _columns(self._candidates.x[[row]], np.array([fraction]))])
        self._grow()


class RetrainedTrees:
    """The targets after a run of each row, by trees trained again. All are grown from the same random numbers."""

    def __init__(self, posterior: PrintedTreePosterior, rows: Rows, fraction: float, targets: Rows) -> None:
        self._posterior, self._rows, self._fraction, self._targets = posterior, rows, fraction, targets
        self._after: dict[float, list[Prediction]] = {}

    def mean(self, surprise: float) -> Numbers:
        return np.array([after.mean for after in self._predictions(surprise)])

    def measured_deviation(self, surprise: float) -> Numbers:
        return np.array([after.measured_deviation for after in self._predictions(surprise)])

    def _predictions(self, surprise: float) -> list[Prediction]:
        if surprise not in self._after:
            self._after[surprise] = [
                self._posterior.retrained(row, self._fraction, surprise, self._targets) for row in self._rows.tolist()
            ]
        return self._after[surprise]


def _columns(x: Numbers, fractions: Numbers) -> Numbers:
    return np.column_stack([x, fractions])
