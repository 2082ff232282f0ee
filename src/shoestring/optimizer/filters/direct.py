"""DIRECT as a filter: the unit cube of runs is divided into boxes, those that may hold the optimum ever further."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.filters.filters import BETA, LazyAcquisition, allowance
from shoestring.optimizer.initial_design import encoded


class Cube:
    """Every point maps to the nearest run that was not tried yet."""

    def __init__(self, acquisition: LazyAcquisition) -> None:
        self._candidates = acquisition.posteriors.history.candidates
        self._untried = acquisition.untried
        self.dimensions = self._candidates.parameters + 1
        sizes = np.linspace(0.0, 1.0, len(acquisition.fractions))
        self._row, place = np.divmod(acquisition.untried, len(acquisition.fractions))
        self._size = sizes[place]

    def run(self, point: Numbers) -> int:
        x = encoded(np.clip(point[:-1], 0.0, 1.0), self._candidates)
        apart = ((self._candidates.x - x) ** 2).sum(axis=1)[self._row] + (self._size - point[-1]) ** 2
        return int(self._untried[apart.argmin()])


_MOST_POINTS = 5
"""Points of the cube for each run that may be evaluated: close points map to the same run."""
_LEAST, _UNKNOWN = 1e-300, 1e3
"""The least acquisition, so that it has a logarithm, and the loss of runs beyond the allowance: more than that of
any."""


@dataclass(frozen=True)
class ByDirect:
    """Evaluates as many runs as the allowance permits, with SciPy's DIRECT.  Paper: TrimTuner Table IV, Direct"""

    beta: float = BETA

    def best(self, acquisition: LazyAcquisition) -> int:
        from scipy.optimize import direct  # slow to import, and few need it

        cube, most = Cube(acquisition), allowance(acquisition, self.beta)

        def loss(point: Numbers) -> float:
            run = np.array([cube.run(point)])
            if acquisition.evaluated >= most and not acquisition.knows(run):
                return _UNKNOWN
            return -float(np.log(np.maximum(acquisition(run)[0], _LEAST)))

        direct(loss, [(0.0, 1.0)] * cube.dimensions, maxfun=_MOST_POINTS * most)
        return acquisition.best_known()
