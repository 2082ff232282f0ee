"""Three laws of learning curves, weighted by how well each fits: a power, an exponential, and the MMF law.

Each is y(k) = c + a g(k), with k = step / last step, and a shape g of one or two parameters:

    power:        g(k) = k^-p                   p of POWERS
    exponential:  g(k) = exp(-r k)              r of RATES
    MMF:          g(k) = 1 / (1 + (k / h)^s)    h of HALFWAYS, s of STEEPNESSES

The parameters are a fixed grid, and c and a are solved for all shapes of the grid at once. That takes no iterations,
never fails to converge and shows how far apart the shapes are that fit about equally well: that is the uncertainty.
"""

from __future__ import annotations

import math

import numpy as np

from shoestring.models.curves.facts import CurveStage, Numbers
from shoestring.models.curves.model import CurveForecast

POWERS = np.geomspace(0.1, 3.0, 16)
RATES = np.geomspace(0.3, 30.0, 16)
"""Of the exponential, in lengths of the curve so far."""
HALFWAYS = np.geomspace(0.03, 1.5, 8)
"""Where an MMF curve is half way down, in lengths of the curve so far."""
STEEPNESSES = np.array([0.7, 1.0, 1.5, 2.2, 3.3, 5.0])
LAWS = (slice(0, 16), slice(16, 32), slice(32, 80))
"""Which rows of `_shapes` belong to which law."""

RECENCY = 3.0
"""Points are weighted by this power of their index: the first ones are little evidence of how a curve ends."""
EVIDENCE = 0.2
"""Each point counts as this share of an independent one: errors of neighbours are correlated, no law is exact."""


def extrapolate(stage: CurveStage, at: float) -> CurveForecast:
    """The laws may also rise: a model that overfits gets worse by the same shapes."""
    mean, spread = weighted_laws(stage, at)
    return CurveForecast(mean, math.hypot(spread, stage.drift(at) / 2.0))


def weighted_laws(stage: CurveStage, at: float) -> tuple[float, float]:
    """Weighted mean of the laws at `at`, and their standard deviation, noise included."""
    thin = stage.thinned()
    y, count = thin.y, len(thin.y)
    weights = (np.arange(1, count + 1) / count) ** RECENCY
    weights /= weights.sum()
    shapes = _shapes(np.append(thin.x, at) / thin.x[-1])
    ends = shapes[:, -1]
    middle, middles = float(weights @ y), shapes[:, :-1] @ weights
    off, bends = y - middle, shapes[:, :-1] - middles[:, None]
    width = np.maximum((bends**2) @ weights, np.finfo(float).tiny)
    slopes = bends @ (weights * off) / width
    errors = ((off - slopes[:, None] * bends) ** 2) @ weights
    arrivals = middle + slopes * (ends - middles)
    return _mixture(arrivals, errors, EVIDENCE * count, float(weights @ off**2))


def _shapes(k: Numbers) -> Numbers:
    """g(k): a row for each shape of each law; k = 1 is the present."""
    power = k ** -POWERS[:, None]
    exponential = np.exp(-RATES[:, None] * k)
    mmf = 1.0 / (1.0 + (k / HALFWAYS[:, None]) ** STEEPNESSES[:, None, None])
    return np.concatenate([power, exponential, mmf.reshape(-1, len(k))])


def _mixture(arrivals: Numbers, errors: Numbers, evidence: float, variance: float) -> tuple[float, float]:
    """Shapes within a law are weighted by likelihood, laws by the inverse of their error."""
    errors = errors + 1e-9 * variance + np.finfo(float).tiny  # a law that fits to the last digit is not certain
    least = float(errors.min())
    likelihood = (errors / least) ** (-evidence / 2.0)
    total = mean = square = 0.0
    for law in LAWS:
        within = likelihood[law] / likelihood[law].sum()
        weight = least / float(within @ errors[law])
        total += weight
        mean += weight * float(within @ arrivals[law])
        square += weight * float(within @ (arrivals[law] - arrivals[0]) ** 2)
    mean /= total
    between = square / total - (mean - float(arrivals[0])) ** 2
    return mean, math.sqrt(max(0.0, between) + least)
