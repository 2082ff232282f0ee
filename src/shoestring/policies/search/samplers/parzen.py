"""A Parzen (kernel density) estimator over configurations, to evaluate and to sample from.

    p(x) = (1 + sum_i k(x, x_i)) / (n + 1), relative to the uniform density of the space

Every observed configuration carries one multivariate kernel over all its parameters, so that values that work well
together stay together; one more of the same weight is uniform, so that no configuration has density 0.

Configurations are rows of numbers: the position on the unit interval for a range, so log and linear ranges are alike
here; the index of the option for a choice; NaN for a parameter that was not active. Where one of two rows lacks a
parameter, the kernel is uniform in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from shoestring.space.parameters import Choice, Int, Parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

Row = tuple[float, ...]

WIDTH = 0.1
"""Kernel width with a single observation, as a fraction of the range; more observations have narrower kernels."""


class Parzen:
    def __init__(self, params: Sequence[Parameter], rows: Sequence[Row]) -> None:
        self._rows = rows
        self._options = [len(param.options) if isinstance(param, Choice) else 0 for param in params]
        count, dimensions = max(1, len(rows)), sum(param.width > 0 for param in params)
        width = WIDTH * count ** (-1.0 / (4 + dimensions))
        # a kernel on whole numbers reaches the neighbours
        self._widths = [max(width, 0.5 / param.size) if isinstance(param, Int) else width for param in params]
        self._stray = [options / (options + count) for options in self._options]
        """The probability that a kernel leaves its option and takes any."""

    def draw_near(self, chosen: int, column: int, rng: Random) -> float:
        """Sample one parameter from the kernel of one row, or uniformly if the row lacks it. The kernel after the last
        row is the uniform one."""
        options = self._options[column]
        centre = self._rows[chosen][column] if chosen < len(self._rows) else math.nan
        if math.isnan(centre) or (options and rng.random() < self._stray[column]):
            return float(int(rng.random() * options)) if options else rng.random()
        if options:
            return centre
        while not 0.0 <= (place := rng.gauss(centre, self._widths[column])) <= 1.0:
            pass
        return place

    def draw_kernel(self, rng: Random) -> int:
        return int(rng.random() * (len(self._rows) + 1))

    def log_density(self, at: Numbers) -> Numbers:
        """The log density at each row, relative to the uniform density of the space."""
        import numpy as np

        if not self._rows:
            return np.zeros(len(at))
        rows = np.array(self._rows)
        ranges = [column for column, options in enumerate(self._options) if not options]
        kernels = self._bells(at[:, ranges], rows[:, ranges], np.array([self._widths[column] for column in ranges]))
        for column, options in enumerate(self._options):
            if options:
                here, there, stray = at[:, column, None], rows[None, :, column], self._stray[column]
                logs = np.where(here == there, math.log(stray + (1.0 - stray) * options), math.log(stray))
                kernels += np.where(np.isnan(here + there), 0.0, logs)
        highest = np.maximum(kernels.max(axis=1), 0.0)
        total = np.exp(kernels - highest[:, None]).sum(axis=1) + np.exp(-highest)
        logs_of_density: Numbers = np.log(total / (len(rows) + 1)) + highest
        return logs_of_density

    @staticmethod
    def _bells(at: Numbers, rows: Numbers, widths: Numbers) -> Numbers:
        """The log of every row's truncated normal at every point, summed over the ranges that both have. The square of
        the difference is expanded, so that matrix products do the work."""
        import numpy as np

        here, there = ~np.isnan(at), ~np.isnan(rows)
        x, y = np.where(here, at, 0.0) / widths, np.where(there, rows, 0.0) / widths
        heights = np.where(there, np.log(widths * _inside(np.where(there, rows, 0.0), widths)), 0.0) + y * y / 2.0
        bells: Numbers = x @ y.T - (x * x / 2.0) @ there.T - here @ heights.T
        return bells


def _inside(centres: Numbers, widths: Numbers) -> Numbers:
    """sqrt(2 pi) times the mass of each normal between 0 and 1. The cdf is approximated by a tanh, to 0.0002: numpy has
    no erf."""
    import numpy as np

    def from_the_middle(z: Numbers) -> Numbers:
        part: Numbers = np.tanh(z * (0.7988 + 0.035283 * z * z)) / 2.0
        return part

    return math.sqrt(2.0 * math.pi) * (from_the_middle((1.0 - centres) / widths) + from_the_middle(centres / widths))
