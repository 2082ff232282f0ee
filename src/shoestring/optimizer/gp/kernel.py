"""The kernel of the Gaussian processes: the covariance of runs, by configuration x and data fraction s.

With p = ln(s) / ln(smallest s), which is 0 for the full data and 1 for the smallest fraction:

    k = Matern52(x, x') a^2 [(1 + b p)(1 + b p') + c^2 p p' + e^2 min(p, p')]  of each configuration
      + c0^2 + trend^2 ln s ln s' + kappa^2 min(p, p')                         shared by all
      + noise^2 exp(2 slope p)                                                 on the diagonal

The shared terms integrate out a level, an exponent in s and a Wiener process around it. As that is shared, one run at
full size corrects every prediction made from small fractions.

All terms of a configuration are scaled by a, at every fraction. If configurations differ by little at small fractions,
they are expected to differ by little at full size as well, and not to be unrelated.

Paper: TrimTuner section III-A
Differs from the paper: there the product of a Matern 5/2 and a linear kernel in the size of the data, after FABOLAS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoestring.optimizer.candidates import Numbers, Rows

SQRT5 = math.sqrt(5.0)
NAMES = ("log_a", "b", "log_c", "log_e", "log_kappa", "log_c0", "log_noise", "slope")
"""Of the hyper-parameters that come after the length-scales."""
_PRIOR_MEAN = np.array([-1.0, 0.0, -0.5, math.log(0.2), math.log(0.3), -0.5, math.log(0.05), 0.5])
_PRIOR_DEVIATION = np.array([1.0, 0.7, 0.7, 0.7, 0.7, 0.5, 0.8, 0.5])
_LENGTH_DEVIATION = 0.9
"""Of the logarithm of a length, whose prior is centred at the width of the range. These priors are for coordinates from
0 to 1 and for values of unit variance or less: logarithms are divided by 1 at least, so a may well be a tenth."""


@dataclass(frozen=True)
class RunPoints:
    """Runs: encoded configurations and their data fractions."""

    x: Numbers
    p: Numbers
    log_s: Numbers
    variance: Numbers | float = 0.0
    """Additional variance beyond the noise: of values that were not measured."""

    def __len__(self) -> int:
        return len(self.p)

    @property
    def variances(self) -> Numbers:
        """Of each run."""
        return np.broadcast_to(self.variance, len(self))

    def some(self, which: Rows) -> RunPoints:
        return RunPoints(self.x[which], self.p[which], self.log_s[which], self.variances[which])


@dataclass(frozen=True)
class Frame:
    """What is fixed before anything is fitted."""

    parameter: Rows
    """For each column of x, the parameter whose length-scale it shares."""
    trend: float
    """Standard deviation of the exponent in s around the expected one, for values of unit variance."""
    smallest: float
    """The fraction where p is 1."""

    @property
    def parameters(self) -> int:
        return int(self.parameter.max()) + 1 if len(self.parameter) else 0

    def prior(self) -> tuple[Numbers, Numbers]:
        """Of the hyper-parameters: means and deviations."""
        return prior(self.parameters)

    def points(self, x: Numbers, log_s: Numbers) -> RunPoints:
        p = log_s / math.log(self.smallest) if self.smallest < 1.0 else np.zeros_like(log_s)
        return RunPoints(x, p, log_s)


class KernelParameters:
    """The hyper-parameters: one length-scale per parameter, then those of `NAMES`, as the vector that is fitted."""

    def __init__(self, theta: Numbers) -> None:
        self.theta = theta
        own = theta[-len(NAMES) :]
        self.lengths: Numbers = np.exp(theta[: -len(NAMES)])
        self.a, self.b = math.exp(own[0]), float(own[1])
        self.c2, self.e2, self.kappa2, self.c02 = (math.exp(2.0 * value) for value in own[2:6])
        self.noise2, self.slope = math.exp(2.0 * own[6]), float(own[7])

    def noise(self, p: Numbers) -> Numbers:
        """noise^2 exp(2 slope p): the variance of one measurement."""
        noise: Numbers = self.noise2 * np.exp(2.0 * self.slope * p)
        return noise

    def own(self, p: Numbers, q: Numbers) -> Numbers:
        """a^2 [(1 + b p)(1 + b q) + c^2 p q + e^2 min(p, q)], for all p with all q."""
        line = np.multiply.outer(1.0 + self.b * p, 1.0 + self.b * q)
        own: Numbers = line + self.c2 * np.multiply.outer(p, q) + self.e2 * np.minimum.outer(p, q)
        return self.a**2 * own

    def shared(self, a: RunPoints, b: RunPoints, trend: float) -> Numbers:
        """c0^2 + trend^2 ln s ln s' + kappa^2 min(p, p'), for all runs of a with all of b."""
        along = trend**2 * np.multiply.outer(a.log_s, b.log_s)
        shared: Numbers = self.c02 + along + self.kappa2 * np.minimum.outer(a.p, b.p)
        return shared


def prior(parameters: int) -> tuple[Numbers, Numbers]:
    """Means and deviations of the normal prior of `KernelParameters.theta`."""
    means = np.concatenate([np.zeros(parameters), _PRIOR_MEAN])
    return means, np.concatenate([np.full(parameters, _LENGTH_DEVIATION), _PRIOR_DEVIATION])


def matern(a: Numbers, b: Numbers, lengths: Numbers, parameter: Rows) -> Numbers:
    """Matern52(x, x') = (1 + u + u^2 / 3) exp(-u), u^2 = 5 sum over columns of (x - x')^2 / length^2, for all rows."""
    scale = SQRT5 / lengths[parameter]
    a, b = a * scale, b * scale
    # multiplied out, so that a matrix product does the work; arrays are reused, as most of the time is spent here
    squares = a @ b.T
    squares *= -2.0
    squares += (a * a).sum(axis=1)[:, None]
    squares += (b * b).sum(axis=1)
    np.maximum(squares, 0.0, out=squares)
    u = np.sqrt(squares)
    squares *= 1.0 / 3.0
    squares += u
    squares += 1.0
    np.negative(u, out=u)
    np.exp(u, out=u)
    squares *= u
    return squares
