"""Runs as points of a cube, for optimisers that know nothing but numbers: one for each parameter, one for the size."""

from __future__ import annotations

import numpy as np

from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.filters.filters import Worth
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
