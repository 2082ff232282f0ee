"""DIRECT as a filter: the unit cube of runs is cut into boxes, and boxes that may hold the optimum are cut further."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.filters.filters import BETA, Worth, allowance
from shoestring.optimizer.initial_design import encoded


class Cube:
    """Every point stands for the nearest run that was not tried yet."""

    def __init__(self, worth: Worth) -> None:
        self._candidates = worth.beliefs.history.candidates
        self._untried = worth.untried
        self.dimensions = self._candidates.parameters + 1
        sizes = np.linspace(0.0, 1.0, len(worth.fractions))
        self._row, place = np.divmod(worth.untried, len(worth.fractions))
        self._size = sizes[place]

    def run(self, point: Numbers) -> int:
        x = encoded(np.clip(point[:-1], 0.0, 1.0), self._candidates)
        apart = ((self._candidates.x - x) ** 2).sum(axis=1)[self._row] + (self._size - point[-1]) ** 2
        return int(self._untried[apart.argmin()])


_MOST_POINTS = 5
"""Points of the cube for each run that may be looked at: close points stand for the same run."""
_LEAST, _UNKNOWN = 1e-300, 1e3
"""The least acquisition, so that it has a logarithm, and what stands for those that may no longer be looked at: more
than the loss of any."""


@dataclass(frozen=True)
class ByDirect:
    """As many runs as the allowance lets it look at; SciPy does the cutting.  Paper: TrimTuner Table IV, Direct"""

    beta: float = BETA

    def best(self, worth: Worth) -> int:
        from scipy.optimize import direct  # takes a while to load, and few need it

        cube, most = Cube(worth), allowance(worth, self.beta)

        def loss(point: Numbers) -> float:
            run = np.array([cube.run(point)])
            if worth.looked_at >= most and not worth.knows(run):
                return _UNKNOWN
            return -float(np.log(np.maximum(worth(run)[0], _LEAST)))

        direct(loss, [(0.0, 1.0)] * cube.dimensions, maxfun=_MOST_POINTS * most)
        return worth.best_known()
