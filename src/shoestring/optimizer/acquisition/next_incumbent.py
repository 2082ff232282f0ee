"""What would be recommended after one more run, and the chance that it satisfies all constraints."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from shoestring.optimizer.acquisition.cea import cea
from shoestring.optimizer.acquisition.quadrature import gauss_hermite
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.joint_model import Fantasy, JointPosteriors
from shoestring.optimizer.observations import FULL

SURE = 0.9
"""The chance to satisfy all constraints that a recommendation should have, in print."""
MOST_CONTENDERS = 300
"""Candidates for the next recommendation: those with the largest CEA."""
BLOCK = 256
"""Runs that are evaluated together."""


class NextIncumbent:
    """argmin of mean over candidates with P(feasible) >= SURE, else argmax of P(feasible), by the updated models."""

    def __init__(self, posteriors: JointPosteriors, roots: int, *, measured_first: bool) -> None:
        """`measured_first`: does a run at full size overrule the models' prediction of constraints?"""
        self._posteriors, self._roots = posteriors, roots
        self._constraints = posteriors.modelled_constraints()
        self._metrics = list(
            {id(constraint.posterior): constraint.posterior for constraint in self._constraints}.values()
        )
        self.contenders = largest_of(cea(posteriors, FULL), MOST_CONTENDERS)
        known = posteriors.history if measured_first else None
        self._proved = np.isin(self.contenders, list(known.feasible) if known else [])
        self._refuted = np.isin(self.contenders, known.infeasible if known else [])

    def chance(self, rows: Rows, fraction: float) -> Numbers:
        """E[P(next incumbent is feasible)] after a run of each of these rows, over what the run may measure.

        Paper: TrimTuner Eq. 5, its first factor
        Differs from the paper: hyper-parameters of Gaussian processes stay what they are, and of many candidates only
        those with the largest constrained expected accuracy are contenders.
        """
        if not self._constraints:
            return np.ones(len(rows))
        for posterior in self._metrics:  # cached for all candidates at once: blocks are parts of that
            posterior.at(fraction)
        blocks = [self._expected(rows[begin : begin + BLOCK], fraction) for begin in range(0, len(rows), BLOCK)]
        return np.concatenate([np.zeros(0), *blocks])

    def _expected(self, rows: Rows, fraction: float) -> Numbers:
        """A grid of nodes repeats the same surprises, so what follows from each is computed once."""
        level = self._posteriors.objective.fantasy(rows, fraction, self.contenders)
        metrics = [posterior.fantasy(rows, fraction, self.contenders) for posterior in self._metrics]
        nodes = gauss_hermite(self._roots, 1 + len(metrics))
        levels: dict[float, Numbers] = {}
        feasibility: dict[tuple[float, ...], _Feasibility] = {}
        expected = np.zeros(len(rows))
        for (of_level, *surprises), weight in zip(nodes.surprises.tolist(), nodes.weights, strict=True):
            if of_level not in levels:
                levels[of_level] = level.mean(of_level)
            if tuple(surprises) not in feasibility:
                feasibility[tuple(surprises)] = self._feasibility(metrics, surprises)
            expected += weight * feasibility[tuple(surprises)].chance_of_the_best(levels[of_level])
        return expected

    def _feasibility(self, metrics: list[Fantasy], surprises: list[float]) -> _Feasibility:
        chance: Numbers | float = 1.0
        for constraint in self._constraints:
            number = next(place for place, metric in enumerate(self._metrics) if metric is constraint.posterior)
            later, surprise = metrics[number], surprises[number]
            room = (constraint.level[self.contenders] - later.mean(surprise)) / later.measured_deviation(surprise)
            chance = chance * ndtr(room if constraint.at_most else -room)
        chance = np.asarray(chance)
        chance[:, self._proved], chance[:, self._refuted] = 1.0, 0.0
        return _Feasibility(chance)


class _Feasibility:
    """The chance of each contender to satisfy all constraints, after a run of each row: rows x contenders."""

    def __init__(self, chance: Numbers) -> None:
        self._chance = chance
        self._barred = np.where(chance >= SURE, 0.0, np.inf)
        self._surest = chance.max(axis=1)

    def chance_of_the_best(self, levels: Numbers) -> Numbers:
        best = (levels + self._barred).argmin(axis=1)
        chance: Numbers = self._chance[np.arange(len(best)), best]
        return np.where(chance >= SURE, chance, self._surest)


def largest_of(worth: Numbers, most: int) -> Rows:
    """The rows of the `most` largest values, ascending."""
    return np.sort(np.argsort(-worth, kind="stable")[:most])
