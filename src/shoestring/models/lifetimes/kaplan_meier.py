"""The Kaplan-Meier estimate: no parameters, and released machines are censored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoestring.errors import DataError
from shoestring.models.lifetimes.model import Floats, LifetimeModel

Flags = NDArray[np.bool_]


def product_limit(seconds: Floats, revoked: Flags) -> tuple[Floats, Floats]:
    """S(t) = product over ages t_i <= t of (1 - deaths_i / at_risk_i): the ages, ascending, and S right after each.

    A machine that was released at an age (`revoked` false) is at risk up to that age, inclusive.
    """
    ages, deaths = np.unique(seconds[revoked], return_counts=True)
    at_risk = len(seconds) - np.searchsorted(np.sort(seconds), ages, side="left")
    return ages, np.cumprod(1.0 - deaths / at_risk, dtype=np.float64)


class KaplanMeier(LifetimeModel, frozen=True, kw_only=True, tag="kaplan_meier"):
    """S(t) = product over t_i <= t of (1 - deaths_i / at_risk_i) at the ages of deaths, linear in between.

    Straight lines give it a density, and lifetimes sampled from it are not only the observed ones. From the last death
    to the oldest machine it is level. After that S falls at the rate `later_per_s`, the deaths per second of all
    machines together: nothing else is known.
    """

    ages_s: tuple[float, ...]
    survivals: tuple[float, ...]
    """Right after each of the ages."""
    later_per_s: float

    def __post_init__(self) -> None:
        ages, alive = self._knots()
        if not 2 <= len(ages) == len(alive) or np.any(np.diff(ages) < 0) or np.any(np.diff(alive) > 0):
            raise DataError("a Kaplan-Meier model needs ages that ascend and survivals that descend, one for each")
        if not np.all((alive >= 0.0) & (alive <= 1.0)) or not 0.0 < self.later_per_s < np.inf:
            raise DataError("a Kaplan-Meier model needs survivals from 0 to 1 and a positive rate for later")

    @staticmethod
    def of(seconds: Floats, revoked: Flags, limit_s: float | None) -> KaplanMeier:
        """From lifetimes; deaths at the limit or later are left to the limit."""
        by_chance = revoked if limit_s is None else revoked & (seconds < limit_s)
        ages, alive = product_limit(seconds, by_chance)
        lived = seconds if limit_s is None else np.minimum(seconds, limit_s)
        oldest_s = float(lived.max())
        if not len(ages) or oldest_s > ages[-1]:
            ages, alive = np.append(ages, oldest_s), np.append(alive, alive[-1] if len(alive) else 1.0)
        return KaplanMeier(
            limit_s=limit_s,
            ages_s=tuple(ages.tolist()),
            survivals=tuple(alive.tolist()),
            # half a death where there was none: no machine lasts for ever
            later_per_s=max(float(by_chance.sum()), 0.5) / max(float(lived.sum()), 1.0),
        )

    def _knots(self) -> tuple[Floats, Floats]:
        return np.array((0.0, *self.ages_s)), np.array((1.0, *self.survivals))

    def _survival(self, t: Floats) -> Floats:
        ages, alive = self._knots()
        later = alive[-1] * np.exp(-np.maximum(t - ages[-1], 0.0) * self.later_per_s)
        between: Floats = np.interp(t, ages, alive)
        return np.where(t <= ages[-1], between, later)

    def _density(self, t: Floats) -> Floats:
        ages, alive = self._knots()
        width = np.diff(ages)
        slopes = np.divide(-np.diff(alive), width, out=np.zeros(len(width)), where=width > 0.0)
        between = np.clip(np.searchsorted(ages, t, side="right") - 1, 0, len(slopes) - 1)
        return np.where(t < ages[-1], slopes[between], self.later_per_s * self._survival(t))

    def _age_when(self, left: Floats) -> Floats:
        ages, alive = self._knots()
        with np.errstate(divide="ignore", invalid="ignore"):
            later = ages[-1] - np.log(left / alive[-1]) / self.later_per_s
        between: Floats = np.interp(-left, -alive, ages)
        return np.where(left < alive[-1], later, between)

    def _lived_s(self, begin: Floats, end: Floats) -> Floats:
        return self._lived_until(end) - self._lived_until(begin)

    def _lived_until(self, t: Floats) -> Floats:
        ages, alive = self._knots()
        areas = np.concatenate(([0.0], np.cumsum(np.diff(ages) * (alive[1:] + alive[:-1]) / 2.0)))
        left = np.clip(np.searchsorted(ages, t, side="right") - 1, 0, len(ages) - 1)
        inside = np.minimum(t, ages[-1])
        partly = areas[left] + (inside - ages[left]) * (alive[left] + np.interp(inside, ages, alive)) / 2.0
        later = -alive[-1] / self.later_per_s * np.expm1(-np.maximum(t - ages[-1], 0.0) * self.later_per_s)
        survived: Floats = partly + later
        return survived
