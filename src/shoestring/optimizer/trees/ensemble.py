"""Bagged extra-trees: many small trees, each grown on its own draw of the data with splits drawn by lot.

All trees of a forest are grown together, level by level, and asked together, so that the work is that of a few dozen
operations on arrays. Why not scikit-learn: it is no core dependency, grows and asks one tree after the other, and keeps
to itself which points share a leaf, which is what joint predictions need. In tests it is the standard to be met.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.history import Flags

NodeNumbers = NDArray[np.int32]

ROUNDING = 1e-12
"""Targets that differ by less, as a share of the largest, are one: nothing is to be gained by telling them apart."""
_MOST_LED_ON = 0.9
"""As long as more than this share of all points are on their way, it costs less to lead the others on the spot."""


@dataclass(frozen=True)
class Forest:
    """Trees as one list of nodes: the first ones are the roots, and those split later come after those split before.

    Who has at most `threshold` in `column` goes on to the node `below`, all others to the one after that. A leaf sends
    everybody back to itself, so that all points can be led on for as many steps as the deepest tree has.
    """

    trees: int
    depth: int
    column: Rows
    threshold: Numbers
    below: Rows
    value: Numbers
    """The mean of the targets that arrived here."""
    weight: Numbers
    """How many they are; one that was drawn twice counts twice."""
    bags: Rows
    """How often each tree (a line) saw each of the data."""

    def leaves(self, x: Numbers) -> NodeNumbers:
        """Where each point ends up: a row for each point, a column for each tree.

        This is where most of the time goes, so numbers are short ones and whoever has arrived is left behind.
        """
        points, columns = x.shape
        flat = np.ascontiguousarray(x).ravel()
        column, below = self.column.astype(np.int32), self.below.astype(np.int32)
        arrived = np.tile(np.arange(self.trees, dtype=np.int32), points)
        node, place = arrived, np.arange(len(arrived), dtype=np.int32)
        first = np.repeat(columns * np.arange(points, dtype=np.int32), self.trees)
        for _ in range(self.depth):
            onward = below.take(node)
            moving = np.flatnonzero(onward != node)
            if len(moving) < _MOST_LED_ON * len(node):
                node, place = node.take(moving), place.take(moving)
                first, onward = first.take(moving), onward.take(moving)
            node = onward + (flat.take(first + column.take(node)) > self.threshold.take(node))
            arrived[place] = node
        return arrived.reshape(points, self.trees)

    def predict(self, x: Numbers) -> Numbers:
        """What each tree says of each point: a row for each point, a column for each tree."""
        said: Numbers = self.value[self.leaves(x)]
        return said


def grown(x: Numbers, targets: Numbers, trees: int, rng: np.random.Generator) -> Forest:
    """A forest for these points and targets. Every node splits where, of one threshold by lot for each column, most
    variance is gained; a node whose points or targets are all alike is a leaf. Each tree sees as many points as there
    are, drawn with replacement.

    Targets are the same for all trees, or a line for each.
    """
    n = len(x)
    drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=trees)
    node, point = np.nonzero(drawn)
    level = _Level(
        x[point], np.broadcast_to(targets, drawn.shape)[node, point], drawn[node, point].astype(np.float64), node, trees
    )
    alike = ROUNDING * float(np.abs(targets).max(initial=0.0))
    columns, belows = list[Rows](), list[Rows]()
    thresholds, values, weights = list[Numbers](), list[Numbers](), list[Numbers]()
    begun = 0
    while level.nodes:
        value, weight = level.means()
        column, threshold, parting = level.splits(alike, rng)
        here = begun + np.arange(level.nodes)
        begun += level.nodes
        columns.append(column)
        thresholds.append(threshold)
        belows.append(np.where(parting, begun + 2 * (np.cumsum(parting) - 1), here))
        values.append(value)
        weights.append(weight)
        level = level.below(column, threshold, parting)
    return Forest(
        trees,
        len(columns) - 1,
        np.concatenate(columns),
        np.concatenate(thresholds),
        np.concatenate(belows),
        np.concatenate(values),
        np.concatenate(weights),
        drawn,
    )


@dataclass(frozen=True)
class _Level:
    """The nodes of one depth, of all trees, and the data that arrived there, in the order of the nodes."""

    x: Numbers
    targets: Numbers
    weight: Numbers
    node: Rows
    """Where each has arrived, counted within the level."""
    nodes: int

    @cached_property
    def starts(self) -> Rows:
        return np.flatnonzero(np.diff(self.node, prepend=-1))

    def means(self) -> tuple[Numbers, Numbers]:
        """Of the targets at each node, and their number."""
        weight = np.add.reduceat(self.weight, self.starts)
        return np.add.reduceat(self.weight * self.targets, self.starts) / weight, weight

    def splits(self, alike: float, rng: np.random.Generator) -> tuple[Rows, Numbers, Flags]:
        """The column and the threshold of each node, and whether it splits at all."""
        low, high = np.minimum.reduceat(self.x, self.starts), np.maximum.reduceat(self.x, self.starts)
        apart = np.maximum.reduceat(self.targets, self.starts) - np.minimum.reduceat(self.targets, self.starts)
        parting = (high > low).any(axis=1) & (apart > alike)
        threshold = low + rng.random(low.shape) * (high - low)
        # rounding may put a threshold on the highest value, and then nobody would be above it
        threshold = np.where(threshold < high, threshold, low)

        below = self.weight[:, None] * (self.x <= threshold[self.node])
        there, whole = np.add.reduceat(below, self.starts), np.add.reduceat(self.weight, self.starts)[:, None]
        below *= self.targets[:, None]
        sums = np.add.reduceat(below, self.starts)
        total = np.add.reduceat(self.weight * self.targets, self.starts)[:, None]
        # the variance between the two sides, up to what is the same for every column
        gained = np.full(low.shape, -np.inf)
        np.divide(sums**2, there, out=gained, where=high > low)
        np.add(gained, (total - sums) ** 2 / np.maximum(whole - there, 1.0), out=gained)
        column = gained.argmax(axis=1)
        chosen = threshold[np.arange(self.nodes), column]
        return np.where(parting, column, 0), np.where(parting, chosen, np.inf), parting

    def below(self, column: Rows, threshold: Numbers, parting: Flags) -> _Level:
        """The next level: what arrived at a node that splits goes to one of its two children."""
        goes_on = parting[self.node]
        x, node = self.x[goes_on], self.node[goes_on]
        above = x[np.arange(len(x)), column[node]] > threshold[node]
        child = 2 * (np.cumsum(parting) - 1)[node] + above
        order = np.argsort(child, kind="stable")
        return _Level(
            x[order],
            self.targets[goes_on][order],
            self.weight[goes_on][order],
            child[order],
            2 * int(parting.sum()),
        )
