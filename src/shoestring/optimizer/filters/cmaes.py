"""CMA-ES as a filter: points drawn from a normal distribution that moves to where the acquisition is larger.

Written here because little of it is needed, a few dozen generations in a cube with a handful of dimensions: not worth a
dependency that only a comparison would use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.filters.direct import Cube
from shoestring.optimizer.filters.filters import BETA, LazyAcquisition, allowance

FIRST_STEP = 0.3
"""Deviation of the first draws, in widths of the cube."""
LEAST_STEP = 1e-3
"""Closer together than this, all points map to the same run."""
_MOST_GENERATIONS = 200


@dataclass(frozen=True)
class ByCmaes:
    """Evaluates as many runs as the allowance permits; where a search ends earlier, another begins.

    Paper: TrimTuner Table IV, CMAES
    """

    beta: float = BETA

    def best(self, acquisition: LazyAcquisition) -> int:
        history = acquisition.posteriors.history
        rng = np.random.default_rng([history.problem.seed, 7, len(history.observations), len(history.pending)])
        cube, most = Cube(acquisition), allowance(acquisition, self.beta)
        search = Cmaes(cube.dimensions, rng)
        for _ in range(_MOST_GENERATIONS):
            points = search.ask()
            runs = np.array([cube.run(point) for point in points])
            search.tell(points, -acquisition(runs))
            if acquisition.evaluated >= most:
                break
            if search.step < LEAST_STEP:
                search = Cmaes(cube.dimensions, rng)
        return acquisition.best_known()


class Cmaes:
    """x ~ mean + step * N(0, C): the (mu/mu_w, lambda) evolution strategy with covariance matrix adaptation, after
    Hansen's tutorial and with its constants. Points outside of the unit cube are clipped to it."""

    def __init__(self, dimensions: int, rng: np.random.Generator) -> None:
        n = dimensions
        self._rng, self._n = rng, n
        self._offspring = 4 + int(3 * math.log(n))
        parents = self._offspring // 2
        weights = math.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
        self._weights = weights / weights.sum()
        self._mass = mass = 1.0 / float((self._weights**2).sum())
        self._c_sigma = (mass + 2.0) / (n + mass + 5.0)
        self._damping = 1.0 + 2.0 * max(0.0, math.sqrt((mass - 1.0) / (n + 1.0)) - 1.0) + self._c_sigma
        self._c_c = (4.0 + mass / n) / (n + 4.0 + 2.0 * mass / n)
        self._c_1 = 2.0 / ((n + 1.3) ** 2 + mass)
        self._c_mu = min(1.0 - self._c_1, 2.0 * (mass - 2.0 + 1.0 / mass) / ((n + 2.0) ** 2 + mass))
        self._usual_length = math.sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n))
        self._mean = rng.random(n)
        self._covariance = np.eye(n)
        self._path_sigma, self._path_c = np.zeros(n), np.zeros(n)
        self.step = FIRST_STEP

    def ask(self) -> Numbers:
        """The points of the next generation, one in each line."""
        variances, axes = np.linalg.eigh(self._covariance)
        self._axes, self._lengths = axes, np.sqrt(np.maximum(variances, 1e-16))
        normals = self._rng.standard_normal((self._offspring, self._n))
        points: Numbers = self._mean + self.step * (normals * self._lengths) @ self._axes.T
        return np.clip(points, 0.0, 1.0)

    def tell(self, points: Numbers, losses: Numbers) -> None:
        """Move towards the better half of them, and stretch along where they lie."""
        best = points[np.argsort(losses, kind="stable")[: len(self._weights)]]
        steps = (best - self._mean) / self.step
        step = self._weights @ steps
        self._mean = self._mean + self.step * step
        level = self._axes @ ((self._axes.T @ step) / self._lengths)
        keep, add = 1.0 - self._c_sigma, math.sqrt(self._c_sigma * (2.0 - self._c_sigma) * self._mass)
        self._path_sigma = keep * self._path_sigma + add * level
        length = float(np.linalg.norm(self._path_sigma))
        going = length < (1.4 + 2.0 / (self._n + 1.0)) * self._usual_length
        self._path_c = (1.0 - self._c_c) * self._path_c
        if going:
            self._path_c = self._path_c + math.sqrt(self._c_c * (2.0 - self._c_c) * self._mass) * step
        spread = steps.T @ (steps * self._weights[:, None])
        along = np.multiply.outer(self._path_c, self._path_c)
        self._covariance = (1.0 - self._c_1 - self._c_mu) * self._covariance + self._c_1 * along + self._c_mu * spread
        self.step *= math.exp(min(1.0, self._c_sigma / self._damping * (length / self._usual_length - 1.0)))
