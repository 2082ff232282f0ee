"""A lifetime model on a grid of ages: what running times and checkpoint plans are worked out from.

They ask for the same two numbers over and over: how many machines live to an age, and how long they lived on the way
there. Looked up in a table, thousands of questions take one line, whatever the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from shoestring.models.lifetimes.model import Floats, LifetimeModel

STEP_S = 60.0


@dataclass(frozen=True, eq=False)
class SurvivalTable:
    """Ages 0, step, 2 step ... up to the provider's limit, or as far as was asked for."""

    step_s: float
    alive: Floats
    """The share that lives to each age. At the last one that is everybody who is left just before it."""
    lived_s: Floats
    """Expected seconds lived up to each age: the integral of `alive`."""

    @staticmethod
    def of(model: LifetimeModel, *, until_s: float, step_s: float = STEP_S) -> SurvivalTable:
        """`until_s`: the oldest age anybody will ask about. Nothing lives beyond the limit, if there is one."""
        end_s = until_s + step_s  # who asks about the last age may ask whether anybody lives longer
        if model.limit_s is not None and end_s >= model.limit_s:
            end_s = model.limit_s
            step_s = end_s / ceil(end_s / step_s)  # the limit is one of the ages
        ages = np.arange(int(np.ceil(end_s / step_s - 1e-9)) + 1) * step_s
        # Values half way: at the limit a whole group dies at once, which no value at an end of the cell would show.
        middles = model.survival(ages[:-1] + step_s / 2)
        lived_s = np.concatenate(([0.0], np.cumsum(middles) * step_s))
        alive = np.append(model.survival(ages[:-1]), model.survival(np.nextafter(ages[-1], 0.0)))
        return SurvivalTable(step_s, alive, lived_s)

    @property
    def end_s(self) -> float:
        """Nobody lives so long, or nobody asks."""
        return (len(self.alive) - 1) * self.step_s

    def together(self, machines: int) -> SurvivalTable:
        """A gang of such machines, started together, that ends with the first of them to go.

        Differs from the paper, which counts the machines of a job but lets them fail as one machine would.
        """
        middles = np.diff(self.lived_s) / self.step_s
        lived_s = np.concatenate(([0.0], np.cumsum(middles**machines) * self.step_s))
        return SurvivalTable(self.step_s, self.alive**machines, lived_s)

    def alive_at(self, age_s: ArrayLike) -> Floats:
        """The share that lives longer than that."""
        return np.where(np.asarray(age_s) < self.end_s, self._between(self.alive, age_s), 0.0)

    def lived_until(self, age_s: ArrayLike) -> Floats:
        return self._between(self.lived_s, age_s)

    def reaches(self, work_s: ArrayLike, age_s: ArrayLike = 0.0) -> Floats:
        """The chance that a machine of this age stays for so long."""
        age = np.asarray(age_s, dtype=np.float64)
        now, then = self.alive_at(age), self.alive_at(age + np.asarray(work_s, dtype=np.float64))
        return np.divide(then, now, out=np.zeros(np.broadcast(now, then).shape), where=now > 0)

    def stays_s(self, work_s: ArrayLike, age_s: ArrayLike = 0.0) -> Floats:
        """How long a machine of this age stays on average, if it is given back after so long."""
        age = np.asarray(age_s, dtype=np.float64)
        now = self.alive_at(age)
        lived = self.lived_until(age + np.asarray(work_s, dtype=np.float64)) - self.lived_until(age)
        return np.divide(lived, now, out=np.zeros(np.broadcast(now, lived).shape), where=now > 0)

    def _between(self, values: Floats, age_s: ArrayLike) -> Floats:
        found: Floats = np.interp(np.asarray(age_s, dtype=np.float64) / self.step_s, np.arange(len(values)), values)
        return found
