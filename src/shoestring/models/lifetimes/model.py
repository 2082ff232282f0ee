"""LifetimeModel: how long until a machine is preempted? One interface for all families, and their shared arithmetic.

Times are seconds, ages count from the launch. All methods but `mean_s` and `sample` take numbers or arrays, and return
arrays of that shape.

A provider may preempt every machine at a certain age (`limit_s`). A family gives the distribution before that; all
machines that are left end at the limit: the cdf has a step there, and the density, which cannot show it, ends.
"""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoestring.errors import SpecError
from shoestring.kernel.types import Fact

Floats = NDArray[np.float64]

HOUR_S = 3600.0
_NEGLIGIBLE = 1e-12
"""The share of the longest lifetimes that an integral to infinity may leave out."""
_DOUBLINGS, _HALVINGS = 200, 64
_PANELS, _NODES_EACH = 16, 12


class LifetimeModel(Fact, frozen=True, kw_only=True, tag_field="family"):
    """Base of all families. Frozen and hashable, so that tables made from a model can be cached by it."""

    limit_s: float | None = None
    """Maximum lifetime: machines that reach this age are preempted. None: there is no limit."""

    # -- what a family defines: for ages from 0 on, as if there were no limit ----------------------------------------
    def _survival(self, t: Floats) -> Floats:
        raise NotImplementedError

    def _density(self, t: Floats) -> Floats:
        raise NotImplementedError

    def _lived_s(self, begin: Floats, end: Floats) -> Floats:
        """The integral of the survival function between two ages. Families with a closed form override it."""
        far = self._age_when(np.array(_NEGLIGIBLE)) if np.any(np.isinf(end)) else np.inf
        return _integral(self, np.minimum(begin, far), np.minimum(end, far))

    def _age_when(self, alive: Floats) -> Floats:
        """The age at which only this share is left. Families with a closed form override it."""
        return _bisected(self, alive)

    # -- the public interface ----------------------------------------------------------------------------------------
    def survival(self, age_s: ArrayLike) -> Floats:
        """S(t) = P(T > t): the chance that a machine is still there at this age."""
        t = np.asarray(age_s, dtype=np.float64)
        alive = self._survival(np.maximum(t, 0.0))
        return alive if self.limit_s is None else np.where(t < self.limit_s, alive, 0.0)

    def cdf(self, age_s: ArrayLike) -> Floats:
        """F(t) = 1 - S(t): the chance that a machine is gone by this age."""
        return 1.0 - self.survival(age_s)

    def reached(self, age_s: ArrayLike) -> Floats:
        """P(T >= t): the chance that a machine reaches this age. Those that end at the limit have reached it."""
        t = np.asarray(age_s, dtype=np.float64)
        alive = self._survival(np.maximum(t, 0.0))
        return alive if self.limit_s is None else np.where(t <= self.limit_s, alive, 0.0)

    def density(self, age_s: ArrayLike) -> Floats:
        """f(t) = -S'(t): deaths per second among all that were launched, without the step at the limit."""
        t = np.asarray(age_s, dtype=np.float64)
        known = t >= 0.0 if self.limit_s is None else (t >= 0.0) & (t < self.limit_s)
        return np.where(known, self._density(np.maximum(t, 0.0)), 0.0)

    def hazard(self, age_s: ArrayLike) -> Floats:
        """h(t) = f(t) / S(t): deaths per second among those left; infinite once none is.  Paper: SciSpot Eq. 4"""
        alive, dying = self.survival(age_s), self.density(age_s)
        return _over(dying, alive, np.inf)

    def cumulative_hazard(self, age_s: ArrayLike) -> Floats:
        """H(t) = -ln S(t), without the step at the limit.

        Summed over machines it is the expected number of deaths before the limit.
        """
        t = np.maximum(np.asarray(age_s, dtype=np.float64), 0.0)
        with np.errstate(divide="ignore"):
            gathered: Floats = -np.log(self._survival(t if self.limit_s is None else np.minimum(t, self.limit_s)))
        return gathered

    def failure_within(self, work_s: ArrayLike, age_s: ArrayLike = 0.0) -> Floats:
        """1 - S(age + work) / S(age): the chance of preemption before the work is done; 1 where S(age) = 0."""
        return 1.0 - self._chance_to_last(work_s, age_s)

    def expected_stay_s(self, work_s: ArrayLike, age_s: ArrayLike = 0.0) -> Floats:
        """E[min(T - age, work) | T > age]: how much of the next `work_s` a machine of this age is there for.

        With `work_s` infinite that is the mean residual life.
        """
        t = np.maximum(np.asarray(age_s, dtype=np.float64), 0.0)
        begin, end = np.broadcast_arrays(t, t + np.asarray(work_s, dtype=np.float64))
        if self.limit_s is not None:
            begin, end = np.minimum(begin, self.limit_s), np.minimum(end, self.limit_s)
        alive = np.broadcast_to(self.survival(t), begin.shape)
        return _over(np.maximum(self._lived_s(begin, end), 0.0), alive, 0.0)

    def expected_loss_s(self, work_s: ArrayLike, age_s: ArrayLike = 0.0) -> Floats:
        """Expected time lost if work that needs `work_s` in one piece is begun at this age, once.

        The mean over all outcomes, with 0 where the machine stays; over `failure_within` it is the mean of a failure.
        """
        work = np.asarray(work_s, dtype=np.float64)
        loss = self.expected_stay_s(work, age_s) - work * self._chance_to_last(work, age_s)
        return np.maximum(loss, 0.0)

    def mean_s(self) -> float:
        """E[T] = integral of S(t) from 0 to limit_s.  Paper: SciSpot Eq. 3, corrected

        Differs from the paper: the integral of the survival function. The printed one weighs ages by a density that
        does not integrate to 1.
        """
        return float(self._lived_s(np.array(0.0), np.array(np.inf if self.limit_s is None else self.limit_s)))

    def quantile(self, share: ArrayLike) -> Floats:
        """F^-1(share): the age by which this share of machines is gone."""
        age = self._age_when(1.0 - np.asarray(share, dtype=np.float64))
        return age if self.limit_s is None else np.minimum(age, self.limit_s)

    def sample(self, rng: Random) -> float:
        """A lifetime sampled at random: a model is a `market.simulated.lifetimes.Lifetime`."""
        return float(self.quantile(rng.random()))

    def _chance_to_last(self, work_s: ArrayLike, age_s: ArrayLike) -> Floats:
        t = np.maximum(np.asarray(age_s, dtype=np.float64), 0.0)
        alive, after = np.broadcast_arrays(self.survival(t), self.survival(t + np.asarray(work_s, dtype=np.float64)))
        return _over(after, alive, 0.0)


def positive(**parameters: float) -> None:
    for name, value in parameters.items():
        if not 0.0 < value < np.inf:
            raise SpecError(f"{name}={value!r} of a lifetime model must be a positive number")


def _over(some: Floats, alive: Floats, if_none: float) -> Floats:
    found = np.full(np.shape(alive), if_none)
    np.divide(some, alive, out=found, where=alive > 0.0)
    return found


def _integral(model: LifetimeModel, begin: Floats, end: Floats) -> Floats:
    """Gauss-Legendre over panels that lie denser towards the beginning, where survival is steepest."""
    x, w = np.polynomial.legendre.leggauss(_NODES_EACH)
    place = ((x + 1.0) / 2.0 + np.arange(_PANELS)[:, None]).ravel() / _PANELS
    weight = np.tile(w / 2.0, _PANELS) / _PANELS
    width = end - begin
    at = begin[..., None] + width[..., None] * place**4
    total: Floats = width * (model._survival(at) * (4.0 * place**3 * weight)).sum(axis=-1)
    return total


def _bisected(model: LifetimeModel, alive: Floats) -> Floats:
    """Doubles an age until no more than this share is left, then bisects. Infinite if the share is never reached."""
    high = np.full(np.shape(alive), 1.0)
    for _ in range(_DOUBLINGS):
        young = model._survival(high) > alive
        if not np.any(young):
            break
        high = np.where(young, high * 2.0, high)
    never = model._survival(high) > alive
    low = np.zeros(np.shape(alive))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        old = model._survival(middle) <= alive
        low, high = np.where(old, low, middle), np.where(old, middle, high)
    return np.where(never, np.inf, high)
