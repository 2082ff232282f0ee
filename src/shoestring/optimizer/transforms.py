"""Outcome transforms: logarithms where values allow it, because errors, costs and times differ by factors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoestring.optimizer.candidates import Numbers

LEAST_ERROR = 1e-4
"""Errors below this share of the largest (of 1, for shares) count as equal."""
LEAST_DEVIATION = 1.0
"""Logarithms are divided by their standard deviation, or by this if that is less: a few values that happen to lie close
together are little evidence of how far apart others lie."""
LEAST_DEVIATION_OF_LOSSES = 0.1
"""The same for losses that are no shares. Their zero may be far away: good and bad then differ by a few per cent."""


@dataclass(frozen=True)
class Transform:
    """y -> ln(max(v, floor)) if logarithmic, else v; v = top - y if there is a top, else sign * y.

    `of` transforms values for a model, `value` inverts it. A maximised outcome is mirrored, so that less is better in
    either case."""

    logarithmic: bool
    top: float | None = None
    """Values are modelled by their gap to this: 1 for an accuracy."""
    sign: float = 1.0
    floor: float = 0.0
    least_deviation: float = LEAST_DEVIATION

    def of(self, values: Numbers) -> Numbers:
        plain = self.sign * values if self.top is None else self.top - values
        return np.log(np.maximum(plain, self.floor)) if self.logarithmic else plain

    def value(self, level: float) -> float:
        plain = math.exp(level) if self.logarithmic else level
        return self.sign * plain if self.top is None else self.top - plain

    def deviation(self, targets: Numbers) -> float:
        """What targets are divided by."""
        spread = float(np.std(targets))
        return max(spread, self.least_deviation) if self.logarithmic else spread or 1.0


def objective_transform(values: Numbers, minimize: bool) -> Transform:
    """For an objective with these values: the logarithm of an error or a loss, or of 1 - accuracy; other values are not
    transformed."""
    shares = bool(((values >= 0.0) & (values <= 1.0)).all())
    if not minimize:
        return Transform(True, top=1.0, floor=LEAST_ERROR) if shares else Transform(False, sign=-1.0)
    largest = float(values.max(initial=0.0))
    if shares and largest > 0.0:
        return Transform(True, floor=LEAST_ERROR)
    if values.min(initial=0.0) >= 0.0 < largest:
        return Transform(True, floor=LEAST_ERROR * largest, least_deviation=LEAST_DEVIATION_OF_LOSSES)
    return Transform(False)


def metric_transform(values: Numbers, limit: float) -> Transform:
    """For the metric of a constraint: its logarithm, if values and limit have one."""
    positive = limit > 0.0 and bool((values > 0.0).all())
    return Transform(positive)
