"""The kernel of the models: which runs, of which configurations on how much of the data, resemble each other.

With p = ln(s) / ln(smallest s), which is 0 for all of the data and 1 for the smallest fraction:

    k = Matern52(x, x') a^2 [(1 + b p)(1 + b p') + c^2 p p' + e^2 min(p, p')]  what configurations have of their own
      + c0^2 + trend^2 ln s ln s' + kappa^2 min(p, p')                         what all of them share
      + noise^2 exp(2 slope p)                                                 on the diagonal

The shared terms integrate out a level, an exponent in s and a wandering from it. That the wandering is shared lets one
run on all of the data lift every prediction made from small fractions.

All that configurations have of their own is measured in a, at every fraction. If they differ by little at small ones,
they are expected to differ by little at full size as well, and not to have nothing to do with each other.

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
"""Of the hyper-parameters that come after the lengths."""
_PRIOR_MEAN = np.array([-1.0, 0.0, -0.5, math.log(0.2), math.log(0.3), -0.5, math.log(0.05), 0.5])
_PRIOR_DEVIATION = np.array([1.0, 0.7, 0.7, 0.7, 0.7, 0.5, 0.8, 0.5])
_LENGTH_DEVIATION = 0.9
"""Of the logarithm of a length, whose prior is centred at the width of the range. These priors are for coordinates from
0 to 1 and for values of unit variance or less: logarithms are divided by 1 at least, so a may well be a tenth."""


@dataclass(frozen=True)
class RunPoints:
    """Runs: rows of candidates, and how much of the data they saw."""

    x: Numbers
    p: Numbers
    log_s: Numbers
    doubt: Numbers | float = 0.0
    """Variance beyond the noise: of values that were not measured."""

    def __len__(self) -> int:
        return len(self.p)

    @property
    def doubts(self) -> Numbers:
        """Of each run."""
        return np.broadcast_to(self.doubt, len(self))

    def some(self, which: Rows) -> RunPoints:
        return RunPoints(self.x[which], self.p[which], self.log_s[which], self.doubts[which])


@dataclass(frozen=True)
class Frame:
    """What is fixed before anything is fitted."""

    parameter: Rows
    """Of each column of x, the parameter whose length it shares."""
    trend: float
    """Deviation of the exponent in s from the one expected, for values of unit variance."""
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
    """The hyper-parameters: one length for each parameter, then those of `NAMES`, as the vector that is searched."""

    def __init__(self, theta: Numbers) -> None:
        self.theta = theta
        own = theta[-len(NAMES) :]
        self.lengths: Numbers = np.exp(theta[: -len(NAMES)])
        self.a, self.b = math.exp(own[0]), float(own[1])
        self.c2, self.e2, self.kappa2, self.c02 = (math.exp(2.0 * value) for value in own[2:6])
        self.noise2, self.slope = math.exp(2.0 * own[6]), float(own[7])

    def noise(self, p: Numbers) -> Numbers:
        """The variance of one measurement."""
        noise: Numbers = self.noise2 * np.exp(2.0 * self.slope * p)
        return noise

    def own(self, p: Numbers, q: Numbers) -> Numbers:
        """The factor a^2 [...], for all p with all q."""
        line = np.multiply.outer(1.0 + self.b * p, 1.0 + self.b * q)
        own: Numbers = line + self.c2 * np.multiply.outer(p, q) + self.e2 * np.minimum.outer(p, q)
        return self.a**2 * own

    def shared(self, a: RunPoints, b: RunPoints, trend: float) -> Numbers:
        along = trend**2 * np.multiply.outer(a.log_s, b.log_s)
        shared: Numbers = self.c02 + along + self.kappa2 * np.minimum.outer(a.p, b.p)
        return shared


def prior(parameters: int) -> tuple[Numbers, Numbers]:
    """Means and deviations of the normal prior of `KernelParameters.theta`."""
    means = np.concatenate([np.zeros(parameters), _PRIOR_MEAN])
    return means, np.concatenate([np.full(parameters, _LENGTH_DEVIATION), _PRIOR_DEVIATION])


def matern(a: Numbers, b: Numbers, lengths: Numbers, parameter: Rows) -> Numbers:
    """Matern 5/2 between all rows of both, each column divided by the length of its parameter."""
    scale = SQRT5 / lengths[parameter]
    a, b = a * scale, b * scale
    # multiplied out, so that a matrix product does the work; the arrays are reused, as most of the time goes by here
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
