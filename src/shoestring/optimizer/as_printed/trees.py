"""The trees of the paper: values as they are, and the mean and the variance of what trees say of each run by itself.

Two faults come with that. Trees cannot follow a trend, so they take all of the data for no better than the most they
were shown. And without covariances a run tells of nothing but itself: runs on parts of the data then never add to what
is known about the best on all of it, and the acquisition is left with chance and cost.
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


class PrintedTreeBelief:
    """A normal distribution for each run by itself.  Paper: TrimTuner section III-A, trees

    Differs from the paper: a least deviation and a least noise are left, as nothing can be divided by 0; runs under way
    count as if they had measured what was predicted.
    """

    def __init__(self, measured: OutcomeData, scale: Transform, candidates: Candidates, seed: Sequence[int]) -> None:
        self.scale = scale
        self._candidates, self._seed = candidates, seed
        self._x = _columns(candidates.x[measured.rows], np.exp(measured.log_s))
        self._levels = measured.levels
        self._grow()

    def _grow(self) -> None:
        self._forest = grown(self._x, self._levels, TREES, np.random.default_rng(self._seed))
        self._least = LEAST_DEVIATION * max(1.0, float(np.abs(self._levels).max()))
        self._said: dict[float, Prediction] = {}

    def at(self, fraction: float, rows: Rows | None = None) -> Prediction:
        if fraction not in self._said:
            x = self._candidates.x
            said = self._forest.predict(_columns(x, np.full(len(x), fraction)))
            self._said[fraction] = Prediction(said.mean(axis=1), np.maximum(said.std(axis=1), self._least), self._least)
        whole = self._said[fraction]
        return whole if rows is None else Prediction(whole.mean[rows], whole.deviation[rows], whole.noise)

    def mean_at(self, fraction: float) -> Numbers:
        return self.at(fraction).mean

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """None at all, but of a run with itself."""
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
