"""What would be recommended after one more run, and the chance that it keeps all limits."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import ndtr

from shoestring.optimizer.acquisition.cea import cea
from shoestring.optimizer.acquisition.quadrature import gauss_hermite
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.joint_model import JointBeliefs, JointPosterior, deviation_after, influence
from shoestring.optimizer.observations import FULL

SURE = 0.9
"""The chance to keep all limits that a recommendation should have, in print."""
MOST_CONTENDERS = 300
"""Candidates among which the next recommendation is looked for: those with the largest CEA."""
BLOCK = 256
"""Runs that are looked at together."""


class NextIncumbent:
    """The best of those sure to keep all limits, or the surest if none is sure, by the models as they would be then."""

    def __init__(self, beliefs: JointBeliefs, roots: int, *, measured_first: bool) -> None:
        """`measured_first`: does a run on all of the data overrule what the models say of limits?"""
        self._beliefs, self._roots = beliefs, roots
        self._limits = beliefs.limits()
        self._metrics = list({id(limit.posterior): limit.posterior for limit in self._limits}.values())
        self.contenders = largest_of(cea(beliefs, FULL), MOST_CONTENDERS)
        known = beliefs.history if measured_first else None
        self._proved = np.isin(self.contenders, list(known.feasible) if known else [])
        self._refuted = np.isin(self.contenders, known.infeasible if known else [])

    def chance(self, rows: Rows, fraction: float) -> Numbers:
        """That it keeps all limits after a run of each of these rows, expected over what the run may measure.

        Paper: TrimTuner Eq. 5, its first factor
        Differs from the paper: hyper-parameters stay what they are, and of many candidates only those with the largest
        constrained expected accuracy are contenders.
        """
        if not self._limits:
            return np.ones(len(rows))
        for posterior in self._metrics:  # which keep what they are asked of all candidates: blocks are parts of that
            posterior.at(fraction)
        blocks = [self._expected(rows[begin : begin + BLOCK], fraction) for begin in range(0, len(rows), BLOCK)]
        return np.concatenate([np.zeros(0), *blocks])

    def _expected(self, rows: Rows, fraction: float) -> Numbers:
        """A grid of nodes comes back to the same surprises, so what follows from these is computed once."""
        level = _Later(self._beliefs.objective, rows, fraction, self.contenders)
        metrics = [_Later(posterior, rows, fraction, self.contenders) for posterior in self._metrics]
        nodes = gauss_hermite(self._roots, 1 + len(metrics))
        levels: dict[float, Numbers] = {}
        kept: dict[tuple[float, ...], _Kept] = {}
        expected = np.zeros(len(rows))
        for (of_level, *surprises), weight in zip(nodes.surprises.tolist(), nodes.weights, strict=True):
            if of_level not in levels:
                levels[of_level] = level.mean(of_level)
            if tuple(surprises) not in kept:
                kept[tuple(surprises)] = self._kept(metrics, surprises)
            expected += weight * kept[tuple(surprises)].chance_of_the_best(levels[of_level])
        return expected

    def _kept(self, metrics: list[_Later], surprises: list[float]) -> _Kept:
        chance: Numbers | float = 1.0
        for limit in self._limits:
            number = next(place for place, metric in enumerate(self._metrics) if metric is limit.posterior)
            later = metrics[number]
            room = (limit.level[self.contenders] - later.mean(surprises[number])) / later.measured_deviation
            chance = chance * ndtr(room if limit.at_most else -room)
        chance = np.asarray(chance)
        chance[:, self._proved], chance[:, self._refuted] = 1.0, 0.0
        return _Kept(chance)


class _Later:
    """A quantity of the contenders after a run of each row, for any surprise of the run: rows x contenders."""

    def __init__(self, posterior: JointPosterior, rows: Rows, fraction: float, contenders: Rows) -> None:
        self._posterior, self._contenders = posterior, contenders
        self._now = posterior.at(FULL, contenders)
        self._moved = influence(posterior, rows, fraction, contenders)

    def mean(self, surprise: float) -> Numbers:
        return self._now.mean + surprise * self._moved

    @cached_property
    def measured_deviation(self) -> Numbers:
        return np.hypot(deviation_after(self._posterior, self._moved, self._contenders), self._now.noise)


class _Kept:
    """The chance of each contender to keep all limits, after a run of each row: rows x contenders."""

    def __init__(self, chance: Numbers) -> None:
        self._chance = chance
        self._barred = np.where(chance >= SURE, 0.0, np.inf)
        self._surest = chance.max(axis=1)

    def chance_of_the_best(self, levels: Numbers) -> Numbers:
        best = (levels + self._barred).argmin(axis=1)
        chance: Numbers = self._chance[np.arange(len(best)), best]
        return np.where(chance >= SURE, chance, self._surest)


def largest_of(worth: Numbers, most: int) -> Rows:
    """The rows of so many of the largest, ascending."""
    return np.sort(np.argsort(-worth, kind="stable")[:most])
