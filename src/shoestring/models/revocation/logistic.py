"""Logistic regression over all markets: linear in the features of `summary`, fitted in a second."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from shoestring.kernel.types import Fact
from shoestring.models.revocation.examples import Examples
from shoestring.models.revocation.features import summary
from shoestring.models.revocation.model import Queries, certain_above_maximum
from shoestring.models.revocation.price_arrays import Floats

FARTHEST = 8.0
"""Features are clipped to so many standard deviations from the mean."""


class Logistic(Fact, frozen=True, kw_only=True, tag="logistic"):
    """chance = 1 / (1 + exp(-(weights . z + intercept))), z = clip((features - mean) / scale, -8, 8)."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float

    def chance(self, queries: Queries, /) -> Floats:
        z = _standard(summary(queries), np.array(self.mean), np.array(self.scale))
        return certain_above_maximum(queries, expit(z @ np.array(self.weights) + self.intercept))


def fit_logistic(examples: Examples, *, penalty: float = 1.0) -> Logistic:
    """Maximum likelihood, with a ridge penalty on all weights but the intercept."""
    features = summary(examples.queries)
    mean, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-9)
    z, sign = _standard(features, mean, scale), np.where(examples.revoked, 1.0, -1.0)

    def loss(theta: Floats) -> tuple[float, Floats]:
        margin = sign * (z @ theta[:-1] + theta[-1])
        slope = -sign * expit(-margin)
        value = np.logaddexp(0.0, -margin).sum() + 0.5 * penalty * theta[:-1] @ theta[:-1]
        return float(value), np.append(z.T @ slope + penalty * theta[:-1], slope.sum())

    found = minimize(loss, np.zeros(z.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    return Logistic(
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
        weights=tuple(found[:-1].tolist()),
        intercept=float(found[-1]),
    )


def _standard(features: Floats, mean: Floats, scale: Floats) -> Floats:
    standard: Floats = np.clip((features - mean) / scale, -FARTHEST, FARTHEST)
    return standard
