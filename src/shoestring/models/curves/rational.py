"""The law that SLAQ and EarlyCurve fit: y(k) = 1 / (a0 k^2 + a1 k + a2) + a3, with a0, a1, a2 >= 0."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from shoestring.models.curves.facts import CurveStage, Numbers
from shoestring.models.curves.model import CurveForecast

FLOORS = np.geomspace(1e-3, 10.0, 12)
"""How far below the lowest value a3 may lie, in ranges (max - min) of the curve."""
CLOSER = 3
"""How often the grid is refined around its best point."""
SUPPORTS = np.array([support for support in product((False, True), repeat=3) if any(support)])
"""Which of a0, a1, a2 are above zero: all cases."""


def extrapolate(stage: CurveStage, at: float) -> CurveForecast:
    """y(k) = 1 / (a0 k^2 + a1 k + a2) + a3, fitted to one stage.  Paper: SpotTune Eq. 4

    Differs from the paper: k counts from the start of the stage, for a stage that starts late would need a negative
    a2; and a3 is searched on a grid, because only with a3 fixed is 1 / (L - a3) linear in the other three, which is
    what a "linear regression solver" can solve.
    """
    thin = stage.thinned()
    height = float(np.ptp(thin.y))
    if height == 0.0:
        return CurveForecast(float(thin.y[-1]), 0.0)
    k = thin.x / thin.x[-1]
    y = (thin.y - thin.y.min()) / height
    last = at / thin.x[-1]
    floors = FLOORS
    for _ in range(1 + CLOSER):
        error, end, best = _best(k, y, -floors, last)
        floors = np.geomspace(floors[max(0, best - 1)], floors[min(len(floors) - 1, best + 1)], len(floors))
    mean = float(thin.y.min()) + height * end
    return CurveForecast(mean, math.hypot(height * math.sqrt(error), stage.drift(at) / 2.0))


def _best(k: Numbers, y: Numbers, a3: Numbers, last: float) -> tuple[float, float, int]:
    """Mean squared error, value at `last`, and index of the best a3."""
    powers = np.stack([k**2, k, np.ones_like(k)])
    gap = y - a3[:, None]
    coefficients = _not_negative(powers, 1.0 / gap, gap**4)
    with np.errstate(divide="ignore", over="ignore"):
        fitted = 1.0 / (coefficients @ powers) + a3[:, None]
    errors = np.mean((fitted - y) ** 2, axis=1)
    best = int(np.argmin(errors))
    end = float(1.0 / (coefficients[best] @ np.array([last**2, last, 1.0])) + a3[best])
    return float(errors[best]), end, best


def _not_negative(rows: Numbers, targets: Numbers, weights: Numbers) -> Numbers:
    """Weighted non-negative least squares, for many targets at once: every set of non-zero coefficients is solved
    without bounds, and the best solution without a negative coefficient wins.

    An error of 1 / gap counts as gap^2 times as much in the value itself: hence the weights, gap^4.
    """
    gram = np.einsum("in,mn,jn->mij", rows, weights, rows)
    moments = np.einsum("in,mn->mi", rows, weights * targets)
    free = SUPPORTS[:, None, :]
    both = free[..., :, None] & free[..., None, :]
    ridge = 1e-12 * np.trace(gram, axis1=1, axis2=2)[None, :, None, None] * np.eye(3)
    systems = np.where(both, gram + ridge, np.eye(3))
    solved: Numbers = np.linalg.solve(systems, np.where(free, moments, 0.0)[..., None])[..., 0]
    cost = np.einsum("smi,mij,smj->sm", solved, gram, solved) - 2.0 * np.einsum("smi,mi->sm", solved, moments)
    allowed = (solved >= 0.0).all(axis=2)
    winner = np.argmin(np.where(allowed, cost, np.inf), axis=0)
    chosen: Numbers = solved[winner, np.arange(len(winner))]
    return chosen
