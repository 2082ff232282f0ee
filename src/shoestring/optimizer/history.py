"""What a method knows when it chooses: the problem, the candidates, the observations and the pending runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoestring.optimizer.candidates import Candidates, Numbers, Rows
from shoestring.optimizer.observations import FULL, Observation
from shoestring.space.constraints import COST, SECONDS, Constraint
from shoestring.space.early_end import PastRun, ends
from shoestring.values import Config

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Problem:
    """min (or max) of objective(x, 1) subject to all constraints at full size, s = 1.

    Paper: TrimTuner Eq. 4
    Differs from the paper: the objective may be minimised too, and constraints may be upper or lower bounds.
    """

    objective: str
    minimize: bool
    constraints: tuple[Constraint, ...]
    fractions: tuple[float, ...]
    """Ascending; the last is the full data."""
    usd_per_hour: Callable[[Config], float] | None
    """What an hour of this configuration costs; None if prices are not known beforehand."""
    seed: int

    @property
    def smallest(self) -> float:
        return self.fractions[0]


@dataclass(frozen=True)
class History:
    """All observations, by the rows of the candidates."""

    problem: Problem
    candidates: Candidates
    observations: Sequence[Observation]
    rows: Sequence[int]
    """Of the observations."""
    pending: Sequence[tuple[int, float]]
    """Rows and fractions of pending runs: asked and not told yet."""
    usd_per_hour: Numbers | None
    """Of each candidate."""
    last: bool = False
    """Is the next run the last one, as far as is known?"""

    @cached_property
    def untried(self) -> Flags:
        """For each candidate and fraction: neither observed nor pending?"""
        left = np.ones((len(self.candidates), len(self.problem.fractions)), dtype=bool)
        place = {fraction: column for column, fraction in enumerate(self.problem.fractions)}
        for row, observation in zip(self.rows, self.observations, strict=True):
            if observation.fraction in place:
                left[row, place[observation.fraction]] = False
        for row, fraction in self.pending:
            if fraction in place:
                left[row, place[fraction]] = False
        return left

    @cached_property
    def measured(self) -> dict[int, Observation]:
        """The last full-data run of each candidate that had one."""
        return {
            row: observation
            for row, observation in zip(self.rows, self.observations, strict=True)
            if observation.fraction == FULL
        }

    @cached_property
    def feasible(self) -> dict[int, Observation]:
        """Those measured that ran to the end, have an objective and violate no constraint."""
        return {
            row: observation
            for row, observation in self.measured.items()
            if not observation.killed
            and not math.isnan(observation.objective)
            and all(map(observation.satisfies, self.problem.constraints))
        }

    @cached_property
    def infeasible(self) -> Rows:
        """The others of those measured."""
        return np.array([row for row in self.measured if row not in self.feasible], dtype=np.intp)

    def ends(self, fraction: float) -> dict[str, float]:
        """Seconds and cost, by these names, at which a run on this data fraction may be ended."""
        return ends(self.problem.constraints, fraction, self._past)

    @cached_property
    def _past(self) -> list[PastRun]:
        return [
            PastRun(
                seen.fraction, {name: seen.metrics[name] for name in (SECONDS, COST) if _known(seen, name)}, seen.killed
            )
            for seen in self.observations
            if seen.killed or math.isfinite(seen.objective)
        ]

    def best_measured(self) -> int | None:
        """The row of the best measured objective that is feasible."""
        if not self.feasible:
            return None
        sign = 1.0 if self.problem.minimize else -1.0
        return min(self.feasible, key=lambda row: sign * self.feasible[row].objective)


def _known(seen: Observation, name: str) -> bool:
    return math.isfinite(seen.metrics.get(name, math.nan))
