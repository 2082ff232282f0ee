"""SciSpot's lifetime model as printed: Eq. 1, 2, 3 and 5, for comparison.

`families.Bathtub` is the proper distribution.

F is not a cdf: with the typical values that the paper prints (A = 0.45, tau2 = 0.8 h, b = 24 h) it is 0.90 at 24 h and
passes 1 ten minutes later.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shoestring.kernel.types import Fact
from shoestring.models.lifetimes.model import Floats, LifetimeModel, positive


class PrintedParameters(Fact, frozen=True, kw_only=True):
    """The paper's four parameters, times in seconds; `A` is the share preempted in the first phase."""

    A: float
    tau1_s: float
    tau2_s: float
    b_s: float

    def __post_init__(self) -> None:
        positive(A=self.A, tau1_s=self.tau1_s, tau2_s=self.tau2_s, b_s=self.b_s)


def printed_cdf(age_s: ArrayLike, fit: PrintedParameters) -> Floats:
    """F(t) = A (1 - exp(-t / tau1) + exp((t - b) / tau2)); exceeds 1, as in print.  Paper: SciSpot Eq. 1"""
    t = np.asarray(age_s, dtype=np.float64)
    with np.errstate(over="ignore"):
        return fit.A * (1.0 - np.exp(-t / fit.tau1_s) + np.exp((t - fit.b_s) / fit.tau2_s))


def printed_density(age_s: ArrayLike, fit: PrintedParameters) -> Floats:
    """f(t) = A (exp(-t / tau1) / tau1 + exp((t - b) / tau2) / tau2), per second.  Paper: SciSpot Eq. 2"""
    t = np.asarray(age_s, dtype=np.float64)
    with np.errstate(over="ignore"):
        return fit.A * (np.exp(-t / fit.tau1_s) / fit.tau1_s + np.exp((t - fit.b_s) / fit.tau2_s) / fit.tau2_s)


def printed_expected_lifetime_s(limit_s: float, fit: PrintedParameters) -> float:
    """E = integral of t f(t) from 0 to L = limit_s: too short, for F(L) is well below 1.  Paper: SciSpot Eq. 3"""
    L, A, tau1, tau2, b = limit_s, fit.A, fit.tau1_s, fit.tau2_s, fit.b_s
    upper = -A * (L + tau1) * np.exp(-L / tau1) + A * (L - tau2) * np.exp((L - b) / tau2)
    lower = -A * tau1 - A * tau2 * np.exp(-b / tau2)
    return float(upper - lower)


def printed_hazard(age_s: ArrayLike, fit: PrintedParameters) -> Floats:
    """h(t) = f(t) / (1 - F(t)), per second; negative where F is beyond 1.  Paper: SciSpot Eq. 5"""
    t, r1, r2 = np.asarray(age_s, dtype=np.float64), 1.0 / fit.tau1_s, 1.0 / fit.tau2_s
    rising = np.exp(r2 * (t - fit.b_s))
    return (r1 * np.exp(-r1 * t) + r2 * rising) / (1.0 / fit.A - 1.0 + np.exp(-r1 * t) - rising)


class PrintedBathtub(LifetimeModel, frozen=True, kw_only=True, tag="bathtub_printed"):
    """S(t) = 1 - clip(F(t), 0, 1), F(t) = A (1 - exp(-t / tau1) + exp((t - b) / tau2)): `printed_cdf`.

    Clipped to [0, 1], so that it can be evaluated at any age and sampled from.
    """

    fit: PrintedParameters

    def _survival(self, t: Floats) -> Floats:
        return 1.0 - np.clip(printed_cdf(t, self.fit), 0.0, 1.0)

    def _density(self, t: Floats) -> Floats:
        return np.where(printed_cdf(t, self.fit) < 1.0, printed_density(t, self.fit), 0.0)

    def _lived_s(self, begin: Floats, end: Floats) -> Floats:
        """The integral of S in closed form, up to the age at which F reaches 1."""
        A, tau1, tau2, b = self.fit.A, self.fit.tau1_s, self.fit.tau2_s, self.fit.b_s
        last = self._age_when(np.array(0.0))
        low, high = np.minimum(begin, last), np.minimum(end, last)
        early = (high - low) - tau1 * (np.exp(-low / tau1) - np.exp(-high / tau1))
        late = tau2 * (np.exp((high - b) / tau2) - np.exp((low - b) / tau2))
        lived: Floats = (high - low) - A * (early + late)
        return lived
