"""DIRECT as a filter: the cube of all runs is cut into boxes, and those that may hold the best are cut on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.filters.direct import Cube
from shoestring.optimizer.filters.filters import BETA, Worth, allowance

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
