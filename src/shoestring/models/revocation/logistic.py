"""Logistic regression over all markets: a straight line through the figures of `summary`, fitted in a second."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from shoestring.kernel.types import Fact
from shoestring.models.revocation.examples import Examples
from shoestring.models.revocation.features import summary
from shoestring.models.revocation.model import Questions, certain_above_maximum
from shoestring.models.revocation.price_arrays import Floats

FARTHEST = 8.0
"""Figures further from the mean than so many standard deviations say no more than that they are far."""


class Logistic(Fact, frozen=True, kw_only=True, tag="logistic"):
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float

    def chance(self, asked: Questions, /) -> Floats:
        told = _standard(summary(asked), np.array(self.mean), np.array(self.scale))
        return certain_above_maximum(asked, expit(told @ np.array(self.weights) + self.intercept))


def fit_logistic(examples: Examples, *, penalty: float = 1.0) -> Logistic:
    """The weights under which the answers were most likely, with a ridge penalty on all but the intercept."""
    figures = summary(examples.asked)
    mean, scale = figures.mean(axis=0), np.maximum(figures.std(axis=0), 1e-9)
    told, sign = _standard(figures, mean, scale), np.where(examples.revoked, 1.0, -1.0)

    def loss(theta: Floats) -> tuple[float, Floats]:
        margin = sign * (told @ theta[:-1] + theta[-1])
        slope = -sign * expit(-margin)
        value = np.logaddexp(0.0, -margin).sum() + 0.5 * penalty * theta[:-1] @ theta[:-1]
        return float(value), np.append(told.T @ slope + penalty * theta[:-1], slope.sum())

    found = minimize(loss, np.zeros(told.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    return Logistic(
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
        weights=tuple(found[:-1].tolist()),
        intercept=float(found[-1]),
    )


def _standard(figures: Floats, mean: Floats, scale: Floats) -> Floats:
    standard: Floats = np.clip((figures - mean) / scale, -FARTHEST, FARTHEST)
    return standard
