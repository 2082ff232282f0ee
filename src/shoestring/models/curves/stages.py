"""Where the current stage of a curve began: after a lowered learning rate a curve falls again, by another law.

Stages are half-open, [l, r): the step at which a learning rate is lowered is the first of the new stage. (The paper's
Eq. 5 closes the interval on the right, its Eq. 6 does not, and at r both stages would count.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shoestring.models.curves.facts import Numbers

XI = 0.5
"""A value that differs from the one before by more than this part of it begins a stage,"""
EPSILON = 0.01
"""if the changes before were smaller than this part,"""
STEADY = 5
"""so many in a row."""

StageRule = Callable[[Numbers, Numbers, Sequence[int]], float]
"""(steps, values, declared boundaries) -> the first step of the stage in which the curve is now."""


def one_stage(x: Numbers, y: Numbers, boundaries: Sequence[int]) -> float:  # noqa: ARG001
    """The whole curve."""
    return min(1.0, float(x[0]))


def declared(x: Numbers, y: Numbers, boundaries: Sequence[int]) -> float:
    """The last boundary that the curve has passed.  Paper: SpotTune Eq. 5-6

    Differs from the paper: half-open on the right, as Eq. 6 has it and Eq. 5 has not. A boundary that is still ahead
    changes nothing: its effect on this curve is not known yet.
    """
    return float(max((step for step in boundaries if step <= x[-1]), default=one_stage(x, y, boundaries)))


def detected(x: Numbers, y: Numbers, boundaries: Sequence[int]) -> float:
    """The last jump after a steady phase, unless boundaries were declared.  Paper: SpotTune Eq. 7

    Differs from the paper: changes are relative to the size of the value, for values may be negative.
    """
    if boundaries:
        return declared(x, y, boundaries)
    if len(y) < STEADY + 2:
        return one_stage(x, y, boundaries)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        zeta = np.abs(np.diff(y)) / np.abs(y[:-1])
    steady_before = np.lib.stride_tricks.sliding_window_view(zeta < EPSILON, STEADY)[:-1].all(axis=1)
    jumps = np.flatnonzero(steady_before & (zeta[STEADY:] > XI))
    return float(x[jumps[-1] + STEADY + 1]) if len(jumps) else one_stage(x, y, boundaries)
