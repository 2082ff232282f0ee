"""Expectations over what a run may measure: a few surprises, in deviations from what is expected, and their weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from shoestring.optimizer.candidates import Numbers

MOST_NODES = 27
"""Of a grid over several quantities; of more, a star is used instead."""


@dataclass(frozen=True)
class QuadratureNodes:
    """Standard normal surprises: one line for each node, a column for each quantity; the weights add up to 1."""

    surprises: Numbers
    weights: Numbers


@cache
def gauss_hermite(roots: int, quantities: int = 1) -> QuadratureNodes:
    """Exact for polynomials up to degree 2 `roots` - 1. One root is the mean, and sees nothing of what may surprise.

    Paper: TrimTuner section III, quadrature
    Differs from the paper: any number of roots, of which the paper takes one. A grid over many quantities would have
    too many nodes; then two to each quantity, far out on its axis, which is exact up to degree 3 (a star).
    """
    if roots > 1 and roots**quantities > MOST_NODES:
        far = math.sqrt(quantities) * np.eye(quantities)
        return QuadratureNodes(np.vstack([far, -far]), np.full(2 * quantities, 0.5 / quantities))
    points, weights = np.polynomial.hermite_e.hermegauss(roots)
    weights = weights / weights.sum()
    places = list(product(range(roots), repeat=quantities))
    surprises = np.array([points[list(place)] for place in places]).reshape(len(places), quantities)
    return QuadratureNodes(surprises, np.array([math.prod(weights[list(place)]) for place in places]))
