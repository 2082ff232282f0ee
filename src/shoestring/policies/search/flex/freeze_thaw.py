"""A freeze-thaw model: one Gaussian process over (configuration, training progress), for all curves together.

It predicts the value of a trial at a later step, whether it was started or not: curves of similar configurations are
correlated, a trial keeps its own offset from its neighbours, and longer curves say more about the end. Progress is
u = ln(step) / ln(last step), so that early steps, where most happens, take as much room as late ones.

    k((x, t, u), (x', t', u')) = Matern-5/2(x, x') (a0 + a1 min(u, u') + a2 u u')
                               + [t = t'] (a3 + a4 min(u, u') + a5 u u') + c(u).c(u') + a6 [same point]

with one length scale per coordinate of x, t the trial, and c(u) = (1, u, (1 - u)^3) shared by all curves. Length scales
and amplitudes (`FreezeThawParameters`) have priors. `sharpened` moves them a small step up the gradient of their
posterior, so that a model refitted with a little more data each time learns which parameters matter without a search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

Numbers = NDArray[np.float64]

USUAL_LENGTH = 1.2
"""Length scale of a coordinate, which runs from 0 to 1: smooth unless the data say otherwise."""
USUAL_AMPLITUDES = np.array([0.5, 0.5, 0.3, 0.1, 0.15, 0.1, 0.02])
"""a0 to a6: configuration (constant, min(u, u'), u u'), trial (the same), noise. For values of unit variance."""
SPREAD = 0.7
"""Standard deviation of the prior of each log parameter."""
STEP, LONGEST_STEP = 0.04, 0.2
"""Learning rate of the log parameters, and the largest change at once."""
SQRT5 = math.sqrt(5.0)


@dataclass(frozen=True)
class CurvePoints:
    """Points on curves, observed or not, one row each."""

    x: Numbers
    """Configurations as numbers from 0 to 1."""
    trial: NDArray[np.intp]
    """Rows with the same number are of the same trial."""
    u: Numbers


@dataclass(frozen=True)
class FreezeThawParameters:
    """Logarithms of length scales and amplitudes, relative to the usual ones."""

    logs: Numbers

    @classmethod
    def usual(cls, dimensions: int) -> FreezeThawParameters:
        return cls(np.zeros(dimensions + len(USUAL_AMPLITUDES)))

    @property
    def lengths(self) -> Numbers:
        lengths: Numbers = USUAL_LENGTH * np.exp(self.logs[: -len(USUAL_AMPLITUDES)])
        return lengths

    @property
    def amplitudes(self) -> Numbers:
        amplitudes: Numbers = USUAL_AMPLITUDES * np.exp(self.logs[-len(USUAL_AMPLITUDES) :])
        return amplitudes


class FreezeThaw:
    """The posterior, given values of unit variance around zero at some points."""

    def __init__(self, seen: CurvePoints, values: Numbers, shape: FreezeThawParameters) -> None:
        self._seen, self._shape = seen, shape
        self._amplitudes = shape.amplitudes
        covariance = self._between(seen, seen)
        covariance[np.diag_indices_from(covariance)] += self._amplitudes[-1]
        self._factor: Numbers = cholesky(covariance, lower=True, check_finite=False)
        self._weights: Numbers = cho_solve((self._factor, True), values, check_finite=False)

    def mean_and_deviation(self, at: CurvePoints) -> tuple[Numbers, Numbers]:
        """Of the curve itself, without the noise of a report."""
        across = self._between(self._seen, at)
        explained = solve_triangular(self._factor, across, lower=True, check_finite=False)
        grown = np.stack([np.ones_like(at.u), at.u, at.u * at.u])
        before = (self._amplitudes[:3] + self._amplitudes[3:6]) @ grown + (_common(at.u) ** 2).sum(axis=0)
        variance = before - np.einsum("ij,ij->j", explained, explained)
        return across.T @ self._weights, np.sqrt(np.maximum(variance, 1e-9))

    def sharpened(self) -> FreezeThawParameters:
        """The parameters after one small gradient step on their log posterior."""
        shape, seen, amplitudes = self._shape, self._seen, self._amplitudes
        inverse = cho_solve((self._factor, True), np.eye(len(seen.u)), check_finite=False)
        pull = np.outer(self._weights, self._weights) - inverse
        x = seen.x / shape.lengths
        distance = _distance(x, x)
        growths = _growths(seen.u, seen.u)
        nearer = pull * _grown(amplitudes[:3], growths) * _steepness(distance)
        lengths = (x * x).T @ nearer.sum(axis=1) - np.einsum("ij,ij->j", x, nearer @ x)
        at_place, at_trial = pull * _matern(distance), pull * (seen.trial[:, None] == seen.trial)
        heights = [(part * growth).sum() for part in (at_place, at_trial) for growth in growths]
        upwards = np.concatenate([lengths, 0.5 * amplitudes * np.array([*heights, np.trace(pull)])])
        slope = upwards - shape.logs / SPREAD**2
        return FreezeThawParameters(shape.logs + np.clip(STEP * slope, -LONGEST_STEP, LONGEST_STEP))

    def _between(self, a: CurvePoints, b: CurvePoints) -> Numbers:
        lengths = self._shape.lengths
        growths = _growths(a.u, b.u)
        covariance = _matern(_distance(a.x / lengths, b.x / lengths)) * _grown(self._amplitudes[:3], growths)
        own = _grown(self._amplitudes[3:6], growths)
        covariance += np.where(a.trial[:, None] == b.trial, own, 0.0)
        covariance += _common(a.u).T @ _common(b.u)
        return covariance


def _distance(a: Numbers, b: Numbers) -> Numbers:
    """The square is expanded, so that a matrix product does the work."""
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
    distance: Numbers = np.sqrt(np.maximum(squares, 0.0))
    return distance


def _matern(distance: Numbers) -> Numbers:
    near: Numbers = (1.0 + SQRT5 * distance + 5.0 / 3.0 * distance**2) * np.exp(-SQRT5 * distance)
    return near


def _steepness(distance: Numbers) -> Numbers:
    """The derivative of Matern-5/2 by the log of one length scale, divided by the squared distance along it."""
    steepness: Numbers = 5.0 / 3.0 * (1.0 + SQRT5 * distance) * np.exp(-SQRT5 * distance)
    return steepness


def _growths(u: Numbers, v: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    return np.ones((len(u), len(v))), np.minimum.outer(u, v), np.multiply.outer(u, v)


def _grown(amplitudes: Numbers, growths: tuple[Numbers, Numbers, Numbers]) -> Numbers:
    grown: Numbers = amplitudes[0] + amplitudes[1] * growths[1] + amplitudes[2] * growths[2]
    return grown


def _common(u: Numbers) -> Numbers:
    """The shared component of all curves: a level, a slope, and an initial rise."""
    return np.stack([np.ones_like(u), u, (1.0 - u) ** 3])
