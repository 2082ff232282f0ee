"""Joint draws from an ensemble of trees, and what becomes of them after one more run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.observations import FULL

if TYPE_CHECKING:
    from shoestring.optimizer.trees.posterior import TreeBelief

LOT = 1e-6
"""Candidates of one leaf are alike to its tree. Which of them is the best in a draw is decided by so little, by lot."""


class TreeDraws:
    """Each draw is what one tree says of all targets.

    A run that falls into a leaf moves the value of this leaf, and with it all targets that are there; no tree is grown
    again. A new tree would often split the leaf between old and new: on average over such splits the targets move by
    about as much.
    """

    def __init__(self, belief: TreeBelief, targets: Rows, count: int, seed: Sequence[int]) -> None:
        rng = np.random.default_rng(seed)
        self._belief = belief
        samples = belief.samples(FULL, targets)
        self._trees = np.arange(count) % samples.shape[1]
        self._leaves = belief.leaves(FULL, targets)[:, self._trees].T
        self._noise = belief.noise * rng.standard_normal(count)
        """Of a measurement, another one in each draw: so draws do not all move to the same value."""
        lot = LOT * float(samples.std()) * rng.standard_normal((count, len(targets)))
        self.values: Numbers = samples[:, self._trees].T + lot

    def told(self, rows: Rows, fraction: float, surprises: Iterable[float]) -> Iterator[Numbers]:
        belief = self._belief
        leaves = belief.leaves(fraction, rows)[:, self._trees]
        # numbers, not flags: these would be turned into numbers at every product, which takes ten times as long
        together = (leaves[:, :, None] == self._leaves).astype(np.float64)
        ahead = belief.at(fraction, rows)
        off = ahead.mean[:, None] + self._noise - belief.samples(fraction, rows)[:, self._trees]
        gain = belief.gain(leaves)
        for surprise in surprises:
            moved = gain * (off + surprise * ahead.measured_deviation[:, None])
            values = together * moved[:, :, None]
            values += self.values
            yield values
