"""p_opt: the chance of each target to be the best at full size, and the information in it."""

from __future__ import annotations

import numpy as np

from shoestring.optimizer.acquisition.quadrature import QuadratureNodes
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.joint_model import Draws, Values

BLOCK = 16
"""Runs that are evaluated together: their draws should fit into the cache of the processor."""


def p_opt(values: Values) -> Numbers:
    """p_opt(x) = P(f(x) <= f(x') for all targets x'): the share of joint draws in which its value is least.

    `values` is ... x draws x targets, and the result ... x targets. Where several are least, the first counts.
    """
    draws, targets = values.shape[-2:]
    # The least of each draw, then who has it: a third of the time of `argmin` if the targets are far apart in memory.
    least = values == values.min(axis=-1)[..., None]
    counts = np.ascontiguousarray(least.sum(axis=-2, dtype=np.min_scalar_type(draws)), dtype=np.float64)
    tied = counts.sum(axis=-1) != draws
    if tied.any():
        first = values[tied].argmin(axis=-1) + targets * np.arange(tied.sum())[:, None]
        counts[tied] = np.bincount(first.ravel(), minlength=targets * len(first)).reshape(-1, targets)
    chance: Numbers = counts / draws
    return chance


def information(chance: Numbers) -> Numbers:
    """I(p) = sum over x of p(x) ln(n p(x)), the relative entropy of p_opt to the uniform distribution over n targets: 0
    if nothing is known of the best, ln n if it is known for sure.  Paper: TrimTuner Eq. 2, its integral"""
    logarithm = np.log(np.where(chance > 0.0, chance, 1.0))
    known: Numbers = np.log(chance.shape[-1]) + (chance * logarithm).sum(axis=-1)
    return known


def information_after(draws: Draws, rows: Rows, fraction: float, nodes: QuadratureNodes) -> Numbers:
    """E[I(p_opt after (x, s))] of a run of each of these rows, about the best at full size.  Paper: TrimTuner Eq. 2

    Differs from the paper: the run may be one on a data fraction. `nodes` are those of one outcome, the objective.
    """
    expected = np.zeros(len(rows))
    for begin in range(0, len(rows), BLOCK):
        block = slice(begin, begin + BLOCK)
        for values, weight in zip(
            draws.conditioned(rows[block], fraction, nodes.surprises[:, 0]), nodes.weights, strict=True
        ):
            expected[block] += weight * information(p_opt(values))
    return expected
