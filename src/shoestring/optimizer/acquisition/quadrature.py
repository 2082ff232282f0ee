"""Expectations over what a run may measure: a few surprises, in deviations from the mean, and their weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from shoestring.optimizer.candidates import Numbers

MOST_NODES = 27
"""Of a grid over several outcomes; of more, a star is used instead."""


@dataclass(frozen=True)
class QuadratureNodes:
    """Standard normal surprises: one line for each node, a column for each outcome; the weights add up to 1."""

    surprises: Numbers
    weights: Numbers


@cache
def gauss_hermite(roots: int, outcomes: int = 1) -> QuadratureNodes:
    """E[g(z)] ~ sum over nodes j of weights_j g(surprises_j), z standard normal.

    Exact for polynomials up to degree 2 `roots` - 1. One root is the mean alone, without any surprise.

    Paper: TrimTuner section III, quadrature
    Differs from the paper: any number of roots, of which the paper takes one. A grid over many outcomes would have too
    many nodes; then two for each outcome, far out on its axis, which is exact up to degree 3 (a star).
    """
    if roots > 1 and roots**outcomes > MOST_NODES:
        far = math.sqrt(outcomes) * np.eye(outcomes)
        return QuadratureNodes(np.vstack([far, -far]), np.full(2 * outcomes, 0.5 / outcomes))
    points, weights = np.polynomial.hermite_e.hermegauss(roots)
    weights = weights / weights.sum()
    places = list(product(range(roots), repeat=outcomes))
    surprises = np.array([points[list(place)] for place in places]).reshape(len(places), outcomes)
    return QuadratureNodes(surprises, np.array([math.prod(weights[list(place)]) for place in places]))
