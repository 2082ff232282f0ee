"""What a method may know when it chooses: the problem, the candidates, what was told and what is still under way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoestring.optimizer.candidates import Candidates, Numbers, Rows
from shoestring.optimizer.observations import FULL, Observation
from shoestring.space.constraints import Constraint
from shoestring.values import Config

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Problem:
    """What is sought, once and for all: the best objective of a full-size run that keeps all limits.

    Paper: TrimTuner Eq. 4
    Differs from the paper: the objective may as well be minimised, and limits are of either kind.
    """

    objective: str
    minimize: bool
    constraints: tuple[Constraint, ...]
    fractions: tuple[float, ...]
    """Ascending; the last is all of the data."""
    usd_per_hour: Callable[[Config], float] | None
    """What a run of this configuration costs an hour; None if prices are not known beforehand."""
    seed: int

    @property
    def smallest(self) -> float:
        return self.fractions[0]


@dataclass(frozen=True)
class History:
    """All that was told, by the rows of the candidates."""

    problem: Problem
    candidates: Candidates
    observations: Sequence[Observation]
    rows: Sequence[int]
    """Of the observations."""
    pending: Sequence[tuple[int, float]]
    """Rows and fractions that were asked and not told yet."""
    usd_per_hour: Numbers | None
    """Of each candidate."""

    @cached_property
    def untried(self) -> Flags:
        """For each candidate and fraction: has it neither been told nor asked?"""
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
        """The last run on all of the data, of each candidate that had one."""
        return {
            row: observation
            for row, observation in zip(self.rows, self.observations, strict=True)
            if observation.fraction == FULL
        }

    @cached_property
    def feasible(self) -> dict[int, Observation]:
        """Those measured that ran to their end, have an objective and break no constraint."""
        return {
            row: observation
            for row, observation in self.measured.items()
            if not observation.killed
            and not math.isnan(observation.objective)
            and all(map(observation.keeps, self.problem.constraints))
        }

    @cached_property
    def infeasible(self) -> Rows:
        """Those measured that did not."""
        return np.array([row for row in self.measured if row not in self.feasible], dtype=np.intp)

    def best_measured(self) -> int | None:
        """The row of the best that was measured to be feasible."""
        if not self.feasible:
            return None
        sign = 1.0 if self.problem.minimize else -1.0
        return min(self.feasible, key=lambda row: sign * self.feasible[row].objective)
