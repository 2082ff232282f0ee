"""A Gaussian process over configurations and data fractions: its joint posterior, and the same conditioned on one more
observation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dtrtri

from shoestring.errors import DataError
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.gp.kernel import Frame, KernelParameters, RunPoints, matern

LEAST_VARIANCE = 1e-10
"""Anything smaller is rounding."""


@dataclass(frozen=True)
class Slice:
    """The posterior at one fraction of the data, of many configurations."""

    mean: Numbers
    variance: Numbers
    """Of the value itself, without the noise of a measurement."""
    noise: float
    """The variance that one measurement adds."""
    explained: Numbers
    """L^-1 k(data, x) of each configuration (a column): for covariances with other slices."""
    point: RunPoints

    def some(self, which: Rows) -> Slice:
        """Of these configurations only."""
        return replace(self, mean=self.mean[which], variance=self.variance[which], explained=self.explained[:, which])


@dataclass(frozen=True)
class GP:
    """mean(x) = k(x, X) K^-1 y, cov(x, x') = k(x, x') - k(x, X) K^-1 k(X, x'): the posterior given values y.

    X are the runs (`points`), K = k(X, X) + noise. y has about unit variance around 0.
    """

    frame: Frame
    shape: KernelParameters
    points: RunPoints
    whitener: Numbers
    """L^-1, the inverse of the lower Cholesky factor of K."""
    whitened: Numbers
    """L^-1 y."""

    @classmethod
    def of(cls, points: RunPoints, values: Numbers, shape: KernelParameters, frame: Frame) -> GP:
        covariance = matern(points.x, points.x, shape.lengths, frame.parameter) * shape.own(points.p, points.p)
        covariance += shape.shared(points, points, frame.trend)
        covariance[np.diag_indices_from(covariance)] += shape.noise(points.p) + points.variance + LEAST_VARIANCE
        factor, failed = dpotrf(covariance, lower=1, clean=1)
        if failed:
            raise DataError("the observed runs cannot be distinguished from each other", hint="tell each run once")
        whitener: Numbers = dtrtri(factor, lower=1)[0]
        return cls(frame, shape, points, whitener, whitener @ values)

    def near(self, x: Numbers) -> Numbers:
        """Matern covariance of these configurations with the data's: most of the work, the same at every fraction."""
        return matern(x, self.points.x, self.shape.lengths, self.frame.parameter).T

    def slice(self, near: Numbers, fraction: float) -> Slice:
        """The posterior at this fraction, of the configurations that `near` is of.

        All of them have the same data fraction, so what depends on it is one number for each observed run.
        """
        at = self._at(fraction)
        own = self.shape.own(self.points.p, at.p)[:, 0]
        shared = self.shape.shared(self.points, at, self.frame.trend)
        explained: Numbers = dtrmm(1.0, self.whitener * own, near, lower=1)
        explained += self.whitener @ shared
        variance = self._before(at, at) - np.einsum("ij,ij->j", explained, explained)
        noise = float(self.shape.noise(at.p)[0])
        return Slice(self.whitened @ explained, np.maximum(variance, LEAST_VARIANCE), noise, explained, at)

    def mean(self, near: Numbers, fraction: float) -> Numbers:
        """The mean of `slice` alone, which is much faster."""
        at = self._at(fraction)
        weights = self.whitened @ self.whitener
        shared = self.shape.shared(self.points, at, self.frame.trend)[:, 0]
        mean: Numbers = (weights * self.shape.own(self.points.p, at.p)[:, 0]) @ near + weights @ shared
        return mean

    def covariance(self, a: Slice, b: Slice) -> Numbers:
        """Of the same configuration at two fractions, for each configuration."""
        covariance: Numbers = self._before(a.point, b.point) - np.einsum("ij,ij->j", a.explained, b.explained)
        return covariance

    def alike(self, a: Numbers, b: Numbers) -> Numbers:
        """Matern covariance of all of these configurations with all of those: for `cross_covariance`."""
        return matern(a, b, self.shape.lengths, self.frame.parameter)

    def cross_covariance(self, a: Slice, b: Slice, alike: Numbers) -> Numbers:
        """Of all configurations of one slice with all of another."""
        own = float(self.shape.own(a.point.p, b.point.p)[0, 0])
        shared = float(self.shape.shared(a.point, b.point, self.frame.trend)[0, 0])
        covariance: Numbers = alike * own
        covariance += shared
        covariance -= a.explained.T @ b.explained
        return covariance

    def condition_on(self, x: Numbers, fraction: float, value: float | None = None, variance: float = 0.0) -> GP:
        """The process with one more value, at the same hyper-parameters; without a value, with the one it predicts.
        `variance` is that of the value beyond the noise.

        One row is added to the whitener, so that nothing is factored again.
        """
        here = self.slice(self.near(x[None, :]), fraction)
        row, n = here.explained[:, 0], len(self.points)
        deviation = math.sqrt(float(here.variance[0]) + here.noise + variance + LEAST_VARIANCE)
        surprise = 0.0 if value is None else value - float(here.mean[0])
        whitener = np.zeros((n + 1, n + 1))
        whitener[:n, :n] = self.whitener
        whitener[n, :n] = -(row @ self.whitener) / deviation
        whitener[n, n] = 1.0 / deviation
        points = RunPoints(
            np.vstack([self.points.x, x]),
            np.append(self.points.p, here.point.p),
            np.append(self.points.log_s, here.point.log_s),
            np.append(self.points.variances, variance),
        )
        return replace(self, points=points, whitener=whitener, whitened=np.append(self.whitened, surprise / deviation))

    def _at(self, fraction: float) -> RunPoints:
        return self.frame.points(np.zeros((1, 0)), np.array([math.log(fraction)]))

    def _before(self, a: RunPoints, b: RunPoints) -> float:
        """The prior covariance of one configuration with itself, at two fractions."""
        return float((self.shape.own(a.p, b.p) + self.shape.shared(a, b, self.frame.trend))[0, 0])
