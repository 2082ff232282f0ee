"""Parametric families of lifetime models. Each may have a limit; without one it has no end (`limit_s` None)."""

from __future__ import annotations

import numpy as np
from scipy import special

from shoestring.errors import SpecError
from shoestring.models.lifetimes.model import Floats, LifetimeModel, positive

_TINY, _LARGE = 1e-12, 700.0
"""Below the first, exp(x) - 1 is x; beyond the second, exp(x) overflows."""


def _log(x: Floats) -> Floats:
    """Finite also at 0."""
    return np.log(np.maximum(x, 1e-300))


class Exponential(LifetimeModel, frozen=True, kw_only=True, tag="exponential"):
    """S(t) = exp(-t / scale_s). No memory: an old machine is as likely to be preempted as a young one."""

    scale_s: float

    def __post_init__(self) -> None:
        positive(scale_s=self.scale_s)

    def _survival(self, t: Floats) -> Floats:
        return np.exp(-t / self.scale_s)

    def _density(self, t: Floats) -> Floats:
        return np.exp(-t / self.scale_s) / self.scale_s

    def _lived_s(self, begin: Floats, end: Floats) -> Floats:
        return self.scale_s * (self._survival(begin) - self._survival(end))

    def _age_when(self, alive: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return -self.scale_s * np.log(alive)


class Weibull(LifetimeModel, frozen=True, kw_only=True, tag="weibull"):
    """S(t) = exp(-(t / scale_s)^shape).

    With a shape below 1 young machines are preempted first, above 1 old ones. With a limit it is our default.
    """

    scale_s: float
    shape: float

    def __post_init__(self) -> None:
        positive(scale_s=self.scale_s, shape=self.shape)

    def _survival(self, t: Floats) -> Floats:
        return np.exp(-((t / self.scale_s) ** self.shape))

    def _density(self, t: Floats) -> Floats:
        x = t / self.scale_s
        with np.errstate(divide="ignore"):
            return self.shape / self.scale_s * x ** (self.shape - 1.0) * np.exp(-(x**self.shape))

    def _lived_s(self, begin: Floats, end: Floats) -> Floats:
        inverse, x, y = 1.0 / self.shape, begin / self.scale_s, end / self.scale_s
        whole: float = self.scale_s * float(special.gamma(1.0 + inverse))
        share: Floats = special.gammaincc(inverse, x**self.shape) - special.gammaincc(inverse, y**self.shape)
        return whole * share

    def _age_when(self, alive: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return self.scale_s * (-np.log(alive)) ** (1.0 / self.shape)


class ExponentiatedWeibull(LifetimeModel, frozen=True, kw_only=True, tag="exponentiated_weibull"):
    """S(t) = 1 - (1 - exp(-(t / scale_s)^shape))^power: the usual family for hazards that fall and then rise."""

    scale_s: float
    shape: float
    power: float

    def __post_init__(self) -> None:
        positive(scale_s=self.scale_s, shape=self.shape, power=self.power)

    def _log_gone(self, log_x: Floats) -> Floats:
        """The logarithm of the Weibull's cdf: the cdf itself may underflow where its power does not."""
        z = np.exp(np.minimum(self.shape * log_x, _LARGE))
        return np.where(z < _TINY, self.shape * log_x, np.log(-np.expm1(-np.maximum(z, _TINY))))

    def _survival(self, t: Floats) -> Floats:
        # 1 - gone^power without the cancellation that would cut the tail off at 1e-16
        return -np.expm1(self.power * self._log_gone(_log(t / self.scale_s)))

    def _density(self, t: Floats) -> Floats:
        log_x = _log(t / self.scale_s)
        inner = (self.shape - 1.0) * log_x - np.exp(np.minimum(self.shape * log_x, _LARGE))
        log_density = (
            np.log(self.power * self.shape / self.scale_s) + (self.power - 1.0) * self._log_gone(log_x) + inner
        )
        density: Floats = np.exp(np.minimum(log_density, _LARGE))
        return density

    def _age_when(self, alive: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            weibull_alive = -np.expm1(np.log1p(-alive) / self.power)
            return self.scale_s * (-np.log(weibull_alive)) ** (1.0 / self.shape)


class GompertzMakeham(LifetimeModel, frozen=True, kw_only=True, tag="gompertz_makeham"):
    """S(t) = exp(-t / chance_s - growth_s / ageing_s * (exp(t / growth_s) - 1)).

    Chance at a constant rate, and ageing at one that grows: the hazard is 1/chance_s + exp(t/growth_s)/ageing_s.
    """

    chance_s: float
    ageing_s: float
    growth_s: float

    def __post_init__(self) -> None:
        positive(chance_s=self.chance_s, ageing_s=self.ageing_s, growth_s=self.growth_s)

    def _survival(self, t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(-t / self.chance_s - self.growth_s / self.ageing_s * np.expm1(t / self.growth_s))

    def _density(self, t: Floats) -> Floats:
        alive = self._survival(t)
        with np.errstate(over="ignore", invalid="ignore"):
            dying: Floats = (1.0 / self.chance_s + np.exp(t / self.growth_s) / self.ageing_s) * alive
        return np.where(alive > 0.0, dying, 0.0)


class Uniform(LifetimeModel, frozen=True, kw_only=True, tag="uniform"):
    """S(t) = max(0, 1 - t / high_s): every age up to the highest is equally likely."""

    high_s: float

    def __post_init__(self) -> None:
        positive(high_s=self.high_s)

    def _survival(self, t: Floats) -> Floats:
        return np.maximum(1.0 - t / self.high_s, 0.0)

    def _density(self, t: Floats) -> Floats:
        return np.where(t < self.high_s, 1.0 / self.high_s, 0.0)

    def _lived_s(self, begin: Floats, end: Floats) -> Floats:
        low, high = np.minimum(begin, self.high_s), np.minimum(end, self.high_s)
        return (high - low) * (1.0 - (low + high) / (2.0 * self.high_s))

    def _age_when(self, alive: Floats) -> Floats:
        return self.high_s * (1.0 - alive)


class TwoPhase(LifetimeModel, frozen=True, kw_only=True, tag="two_phase"):
    """S(t) = early_share * exp(-t / early_s) + (1 - early_share) * exp(-t / late_s).

    Two kinds of machines, each without memory: a share is preempted early, the others late.
    """

    early_share: float
    early_s: float
    late_s: float

    def __post_init__(self) -> None:
        positive(early_s=self.early_s, late_s=self.late_s)
        if not 0.0 <= self.early_share <= 1.0:
            raise SpecError(f"early_share={self.early_share!r} of a lifetime model must be from 0 to 1")

    def _survival(self, t: Floats) -> Floats:
        early = self.early_share * np.exp(-t / self.early_s)
        return early + (1.0 - self.early_share) * np.exp(-t / self.late_s)

    def _density(self, t: Floats) -> Floats:
        early = self.early_share / self.early_s * np.exp(-t / self.early_s)
        return early + (1.0 - self.early_share) / self.late_s * np.exp(-t / self.late_s)

    def _lived_s(self, begin: Floats, end: Floats) -> Floats:
        early = self.early_s * (np.exp(-begin / self.early_s) - np.exp(-end / self.early_s))
        late = self.late_s * (np.exp(-begin / self.late_s) - np.exp(-end / self.late_s))
        return self.early_share * early + (1.0 - self.early_share) * late


class Bathtub(LifetimeModel, frozen=True, kw_only=True, tag="bathtub"):
    """S(t) = 1 - G(t) / G(end_s), G(t) = exp((t - b_s) / tau2_s) - exp(-b_s / tau2_s) + 1 - exp(-t / tau1_s).

    The paper's two processes, early deaths and a rise towards the end.  Paper: SciSpot Eq. 1, made proper

    Differs from the paper: truncated to ages from 0 to `end_s` and normalised there, so that F = G / G(end_s) is a
    cdf. The scaling constant A cancels.
    """

    tau1_s: float
    tau2_s: float
    b_s: float
    end_s: float

    def __post_init__(self) -> None:
        positive(tau1_s=self.tau1_s, tau2_s=self.tau2_s, b_s=self.b_s, end_s=self.end_s)

    def _whole(self) -> float:
        return float(self._gathered(np.array(self.end_s)))

    def _gathered(self, t: Floats) -> Floats:
        """G(t): Eq. 1 over A, less its value at 0."""
        before = np.exp(-self.b_s / self.tau2_s)
        gathered: Floats = np.exp((t - self.b_s) / self.tau2_s) - before - np.expm1(-t / self.tau1_s)
        return gathered

    def _survival(self, t: Floats) -> Floats:
        return np.maximum(1.0 - self._gathered(np.minimum(t, self.end_s)) / self._whole(), 0.0)

    def _density(self, t: Floats) -> Floats:
        until = np.minimum(t, self.end_s)
        rate = np.exp(-until / self.tau1_s) / self.tau1_s + np.exp((until - self.b_s) / self.tau2_s) / self.tau2_s
        return np.where(t < self.end_s, rate / self._whole(), 0.0)

    def _lived_s(self, begin: Floats, end: Floats) -> Floats:
        low, high = np.minimum(begin, self.end_s), np.minimum(end, self.end_s)
        before, after = np.exp((low - self.b_s) / self.tau2_s), np.exp((high - self.b_s) / self.tau2_s)
        early = self.tau1_s * (np.exp(-low / self.tau1_s) - np.exp(-high / self.tau1_s))
        gathered = (high - low) * (1.0 - np.exp(-self.b_s / self.tau2_s)) - early + self.tau2_s * (after - before)
        lived: Floats = (high - low) - gathered / self._whole()
        return lived
