"""Where the best full-size run is, as far as is known: the chance of each target to be it, and how much that tells."""

from __future__ import annotations

import numpy as np

from shoestring.optimizer.acquisition.quadrature import QuadratureNodes
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.joint_model import Draws, Values

BLOCK = 16
"""Runs that are looked at together: their draws should fit into the cache of the processor."""


def p_opt(values: Values) -> Numbers:
    """The chance of each target to be the best: the share of joint draws in which its value is least.

    `values` is ... x draws x targets, and the answer ... x targets.
    """
    *runs, draws, targets = values.shape
    first = values.argmin(axis=-1).reshape(-1, draws)
    first += targets * np.arange(len(first))[:, None]
    counts = np.bincount(first.ravel(), minlength=targets * len(first))
    chance: Numbers = (counts / draws).reshape(*runs, targets)
    return chance


def information(chance: Numbers) -> Numbers:
    """The relative entropy of a distribution over targets to the uniform one: 0 if nothing is known of the best, the
    logarithm of their number if it is known for sure.  Paper: TrimTuner Eq. 2, its integral"""
    logarithm = np.log(np.where(chance > 0.0, chance, 1.0))
    known: Numbers = np.log(chance.shape[-1]) + (chance * logarithm).sum(axis=-1)
    return known


def information_after(draws: Draws, rows: Rows, fraction: float, nodes: QuadratureNodes) -> Numbers:
    """What a run of each of these rows is expected to let know about the best at full size.  Paper: TrimTuner Eq. 2

    Differs from the paper: the run may be one on a part of the data. `nodes` are those of one quantity, the objective.
    """
    expected = np.zeros(len(rows))
    for begin in range(0, len(rows), BLOCK):
        block = slice(begin, begin + BLOCK)
        for values, weight in zip(draws.told(rows[block], fraction, nodes.surprises[:, 0]), nodes.weights, strict=True):
            expected[block] += weight * information(p_opt(values))
    return expected
