"""A lifetime model on a grid of ages: running times and checkpoint schedules are computed from it.

They need the same two numbers over and over: the share of machines that reach an age, and the expected lifetime up to
it. Looked up in a table, thousands of values take one line, whatever the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from shoestring.models.lifetimes.model import Floats, LifetimeModel

STEP_S = 60.0


@dataclass(frozen=True, eq=False)
class SurvivalTable:
    """Ages 0, step, 2 step ... up to the provider's limit, or `until_s`."""

    step_s: float
    alive: Floats
    """S at each age. At the last one: S just before it."""
    lived_s: Floats
    """Expected lifetime up to each age, in seconds: the integral of `alive`."""

    @staticmethod
    def of(model: LifetimeModel, *, until_s: float, step_s: float = STEP_S) -> SurvivalTable:
        """`until_s`: the oldest age that will be looked up. No machine outlives the limit, if there is one."""
        end_s = until_s + step_s  # the share that outlives the last age may be looked up too
        if model.limit_s is not None and end_s >= model.limit_s:
            end_s = model.limit_s
            step_s = end_s / ceil(end_s / step_s)  # the limit is one of the ages
        ages = np.arange(int(np.ceil(end_s / step_s - 1e-9)) + 1) * step_s
        # Values half way: at the limit S has a step, which no value at an end of the cell would show.
        middles = model.survival(ages[:-1] + step_s / 2)
        lived_s = np.concatenate(([0.0], np.cumsum(middles) * step_s))
        alive = np.append(model.survival(ages[:-1]), model.survival(np.nextafter(ages[-1], 0.0)))
        return SurvivalTable(step_s, alive, lived_s)

    @staticmethod
    def of_gang(model: LifetimeModel, older_s: Sequence[float], *, until_s: float, step_s: float) -> SurvivalTable:
        """S(t) = prod over i of S(t + older_i): machines that work together, by the age t of the youngest. Its end is
        the limit of the oldest."""
        end_s = until_s + step_s
        if model.limit_s is not None:
            end_s = max(step_s, min(end_s, model.limit_s - max(older_s)))
            step_s = end_s / ceil(end_s / step_s)
        ages = np.arange(int(np.ceil(end_s / step_s - 1e-9)) + 1) * step_s
        ages[-1] = np.nextafter(ages[-1], 0.0)  # at the limit S has a step
        alive, middles = np.ones(len(ages)), np.ones(len(ages) - 1)
        for older in older_s:
            alive *= model.survival(np.nextafter(ages + older, 0.0))
            middles *= model.survival(ages[:-1] + step_s / 2 + older)
        return SurvivalTable(step_s, alive, np.concatenate(([0.0], np.cumsum(middles) * step_s)))

    @property
    def end_s(self) -> float:
        """The oldest age of the table."""
        return (len(self.alive) - 1) * self.step_s

    def together(self, machines: int) -> SurvivalTable:
        """S(t)^machines: a gang of such machines, started together, that ends with the first preemption.

        Differs from the paper: it counts the machines of a job but lets them fail as one machine would.
        """
        middles = np.diff(self.lived_s) / self.step_s
        lived_s = np.concatenate(([0.0], np.cumsum(middles**machines) * self.step_s))
        return SurvivalTable(self.step_s, self.alive**machines, lived_s)

    def alive_at(self, age_s: ArrayLike) -> Floats:
        """The share that outlives this age."""
        return np.where(np.asarray(age_s) < self.end_s, self._between(self.alive, age_s), 0.0)

    def lived_until(self, age_s: ArrayLike) -> Floats:
        return self._between(self.lived_s, age_s)

    def reaches(self, work_s: ArrayLike, age_s: ArrayLike = 0.0) -> Floats:
        """S(age + work) / S(age): the chance that a machine of this age stays for `work_s`."""
        age = np.asarray(age_s, dtype=np.float64)
        now, then = self.alive_at(age), self.alive_at(age + np.asarray(work_s, dtype=np.float64))
        return np.divide(then, now, out=np.zeros(np.broadcast(now, then).shape), where=now > 0)

    def stays_s(self, work_s: ArrayLike, age_s: ArrayLike = 0.0) -> Floats:
        """How long a machine of this age stays on average, if it is released after `work_s`."""
        age = np.asarray(age_s, dtype=np.float64)
        now = self.alive_at(age)
        lived = self.lived_until(age + np.asarray(work_s, dtype=np.float64)) - self.lived_until(age)
        return np.divide(lived, now, out=np.zeros(np.broadcast(now, lived).shape), where=now > 0)

    def _between(self, values: Floats, age_s: ArrayLike) -> Floats:
        found: Floats = np.interp(np.asarray(age_s, dtype=np.float64) / self.step_s, np.arange(len(values)), values)
        return found
