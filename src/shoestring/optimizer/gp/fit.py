"""Hyper-parameters: maximum a posteriori, by the log posterior density and its exact gradient."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.optimize import minimize

from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.gp.kernel import Frame, KernelParameters, RunPoints

FIRST_STEPS, LATER_STEPS, LATE_STEPS = 60, 12, 5
"""Of L-BFGS: from the mean of the prior, from the hyper-parameters of one observation ago, and from there with so many
observations that one more hardly moves them."""
MOST_POINTS = 128
"""More points than this hardly improve a dozen hyper-parameters, and take the cube of the time."""
_FAR = 6.0
"""Bounds of a hyper-parameter in prior deviations from its mean: further out are only overflows."""
_HOPELESS = 1e10


class LogPosterior:
    """ln p(theta | y) = -1/2 y' K^-1 y - 1/2 ln|K| - 1/2 sum ((theta - mean) / deviation)^2 + constant.

    y are values of unit variance around 0, K their covariance under theta. What does not depend on theta is computed
    once.
    """

    def __init__(self, points: RunPoints, values: Numbers, frame: Frame) -> None:
        n = len(points)
        self._values, self._p = values, points.p
        self._mean, self._deviation = frame.prior()
        self._apart = np.zeros((frame.parameters, n * n))
        for column, number in enumerate(frame.parameter):
            self._apart[number] += (np.subtract.outer(points.x[:, column], points.x[:, column]) ** 2).ravel()
        self._least = np.minimum.outer(points.p, points.p)
        self._along = frame.trend**2 * np.multiply.outer(points.log_s, points.log_s)
        self._diagonal, self._variance = np.diag_indices(n), points.variance

    def __call__(self, theta: Numbers) -> tuple[float, Numbers]:
        """The log density, up to a constant, and its gradient."""
        shape, p, n = KernelParameters(theta), self._p, len(self._values)
        scales = 5.0 / shape.lengths**2
        u = np.sqrt(scales @ self._apart).reshape(n, n)
        decay = np.exp(-u)
        near = (1.0 + u + u * u / 3.0) * decay
        a2, line = shape.a**2, 1.0 + shape.b * p
        own = np.multiply.outer(line, line) + shape.c2 * np.multiply.outer(p, p) + shape.e2 * self._least
        own *= a2
        noise = shape.noise(p)
        covariance = near * own + self._along + shape.kappa2 * self._least + shape.c02
        covariance[self._diagonal] += noise + self._variance
        factor, failed = dpotrf(covariance, lower=1, clean=1)
        if failed:
            return -_HOPELESS, np.zeros_like(theta)
        whitener, _ = dtrtri(factor, lower=1)
        inverse = whitener.T @ whitener
        weights = inverse @ self._values
        off = (theta - self._mean) / self._deviation
        fit = -0.5 * self._values @ weights - np.log(np.diag(factor)).sum() - 0.5 * off @ off

        pull = np.multiply.outer(weights, weights) - inverse
        at_place = pull * near
        steep = (pull * own * (1.0 + u) * decay).ravel()
        towards, along_p = at_place @ line, at_place @ p
        strength = np.diag(pull) * noise
        gradient = np.concatenate(
            [
                scales / 6.0 * (self._apart @ steep),
                [
                    (at_place * own).sum(),
                    a2 * (p @ towards),
                    a2 * shape.c2 * (p @ along_p),
                    a2 * shape.e2 * (at_place * self._least).sum(),
                    shape.kappa2 * (pull * self._least).sum(),
                    shape.c02 * pull.sum(),
                    strength.sum(),
                    strength @ p,
                ],
            ]
        )
        return float(fit), gradient - off / self._deviation


def most_likely(points: RunPoints, values: Numbers, frame: Frame, start: KernelParameters | None) -> KernelParameters:
    """The hyper-parameters of maximum posterior density near `start`, or near the prior's mean.

    Of very many points only some are used, evenly spaced in the order of observation, the last among them.
    """
    n = len(points)
    steps = FIRST_STEPS if start is None else LATER_STEPS if n <= MOST_POINTS else LATE_STEPS
    if n > MOST_POINTS:
        some = np.linspace(0, n - 1, MOST_POINTS).round().astype(np.intp)
        points, values = points.some(some), values[some]
    density = LogPosterior(points, values, frame)
    mean, deviation = frame.prior()

    def loss(theta: Numbers) -> tuple[float, Numbers]:
        value, gradient = density(theta)
        return -value, -gradient

    found = minimize(
        loss,
        mean if start is None else start.theta,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(mean - _FAR * deviation, mean + _FAR * deviation, strict=True)),
        options={"maxiter": steps, "gtol": 1e-3, "ftol": 1e-6},
    )
    return KernelParameters(found.x if math.isfinite(found.fun) else mean)
