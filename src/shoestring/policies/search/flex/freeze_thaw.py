"""A freeze-thaw model: one Gaussian process over (configuration, how far it was trained), for all curves together.

It answers what a trial would be worth at a later step, whether it was started or not: curves of similar configurations
rise together, a trial keeps its own distance from its neighbours, and what has been trained further says more about
the end. How far is u = ln(step) / ln(last step), so that early steps, where most happens, take as much room as late.

    k = same place (Matern 5/2, one length per number of the configuration) x (base + what grows with u)
      + same trial x (base + what grows with u) + what all curves share + noise

Lengths and amplitudes (`FreezeThawParameters`) have priors. `sharpened` moves them a small step up the gradient of
their posterior, so that a model refitted with a little more data each time learns which parameters matter without a
search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

Numbers = NDArray[np.float64]

USUAL_LENGTH = 1.2
"""Of a number of a configuration, which runs from 0 to 1: smooth unless the data say otherwise."""
USUAL_AMPLITUDES = np.array([0.5, 0.5, 0.3, 0.1, 0.15, 0.1, 0.02])
"""Same place: base, min(u, u'), u u'. Same trial: base, min(u, u'), u u'. Noise. For values of unit variance."""
SPREAD = 0.7
"""Standard deviation of the prior of each logarithm in a shape."""
STEP, LONGEST_STEP = 0.04, 0.2
"""What part of the slope a logarithm moves by, and the most it moves at once."""
SQRT5 = math.sqrt(5.0)


@dataclass(frozen=True)
class CurvePoints:
    """Where curves were or might be looked at, one row each."""

    x: Numbers
    """Configurations as numbers from 0 to 1."""
    trial: NDArray[np.intp]
    """Rows with the same number are of the same trial."""
    u: Numbers


@dataclass(frozen=True)
class FreezeThawParameters:
    """Logarithms of lengths and amplitudes, relative to the usual ones."""

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

    def log_posterior(self, values: Numbers) -> float:
        """Of the shape, up to a constant."""
        fit = -0.5 * values @ self._weights - np.log(np.diag(self._factor)).sum()
        return float(fit - 0.5 * (self._shape.logs**2).sum() / SPREAD**2)

    def sharpened(self) -> FreezeThawParameters:
        """The shape, a small step further up the slope of its posterior density."""
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
    """Multiplied out, so that a matrix product does the work."""
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
    distance: Numbers = np.sqrt(np.maximum(squares, 0.0))
    return distance


def _matern(distance: Numbers) -> Numbers:
    near: Numbers = (1.0 + SQRT5 * distance + 5.0 / 3.0 * distance**2) * np.exp(-SQRT5 * distance)
    return near


def _steepness(distance: Numbers) -> Numbers:
    """How a Matern of 5/2 grows with the logarithm of one length, over the square of the distance along it."""
    steepness: Numbers = 5.0 / 3.0 * (1.0 + SQRT5 * distance) * np.exp(-SQRT5 * distance)
    return steepness


def _growths(u: Numbers, v: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    return np.ones((len(u), len(v))), np.minimum.outer(u, v), np.multiply.outer(u, v)


def _grown(amplitudes: Numbers, growths: tuple[Numbers, Numbers, Numbers]) -> Numbers:
    grown: Numbers = amplitudes[0] + amplitudes[1] * growths[1] + amplitudes[2] * growths[2]
    return grown


def _common(u: Numbers) -> Numbers:
    """What all curves do alike: a level, a slope, and a rise at the beginning."""
    return np.stack([np.ones_like(u), u, (1.0 - u) ** 3])
