"""Bagged extra-trees: many small trees, each grown on its own bootstrap sample with random splits.

All trees of a forest are grown together, level by level, and evaluated together, in a few dozen array operations. Why
not scikit-learn: it is no core dependency, grows and evaluates one tree after the other, and does not say which points
share a leaf, which joint predictions need. In tests it is the standard to be met.
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
"""Targets that differ by less, as a share of the largest, count as equal: splitting them gains nothing."""
_MOST_MOVING = 0.9
"""As long as more than this share of all points still move, it is cheaper to keep the others in the arrays."""


@dataclass(frozen=True)
class Forest:
    """Trees as one list of nodes: the first ones are the roots, and those split later come after those split before.

    A point with at most `threshold` in `column` moves to the node `below`, all others to the one after that. A leaf is
    its own child, so that all points can take as many steps as the deepest tree has.
    """

    trees: int
    depth: int
    column: Rows
    threshold: Numbers
    below: Rows
    value: Numbers
    """The mean of the targets that arrived here."""
    weight: Numbers
    """How many they are, with their multiplicity in the bootstrap sample."""
    bags: Rows
    """How often each data point is in the sample of each tree (a line)."""

    def leaves(self, x: Numbers) -> NodeNumbers:
        """Where each point ends up: a row for each point, a column for each tree.

        Most of the time is spent here, so integers are short and points that have arrived are dropped.
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
            if len(moving) < _MOST_MOVING * len(node):
                node, place = node.take(moving), place.take(moving)
                first, onward = first.take(moving), onward.take(moving)
            node = onward + (flat.take(first + column.take(node)) > self.threshold.take(node))
            arrived[place] = node
        return arrived.reshape(points, self.trees)

    def predict(self, x: Numbers) -> Numbers:
        """The prediction of each tree for each point: a row for each point, a column for each tree."""
        predicted: Numbers = self.value[self.leaves(x)]
        return predicted


def grown(x: Numbers, targets: Numbers, trees: int, rng: np.random.Generator) -> Forest:
    """A forest for these points and targets. Every node has one random threshold per column, and splits by the one that
    explains most variance; a node whose points or targets are all alike is a leaf. Each tree has a bootstrap sample of
    the points.

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
    """The nodes of one depth, of all trees, and the data in them, in the order of the nodes."""

    x: Numbers
    targets: Numbers
    weight: Numbers
    node: Rows
    """The node of each, counted within the level."""
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
        # rounding may put a threshold on the highest value, and then no point would be above it
        threshold = np.where(threshold < high, threshold, low)

        below = self.weight[:, None] * (self.x <= threshold[self.node])
        there, whole = np.add.reduceat(below, self.starts), np.add.reduceat(self.weight, self.starts)[:, None]
        below *= self.targets[:, None]
        sums = np.add.reduceat(below, self.starts)
        total = np.add.reduceat(self.weight * self.targets, self.starts)[:, None]
        # the variance between the two sides, up to a constant
        gained = np.full(low.shape, -np.inf)
        np.divide(sums**2, there, out=gained, where=high > low)
        np.add(gained, (total - sums) ** 2 / np.maximum(whole - there, 1.0), out=gained)
        column = gained.argmax(axis=1)
        chosen = threshold[np.arange(self.nodes), column]
        return np.where(parting, column, 0), np.where(parting, chosen, np.inf), parting

    def below(self, column: Rows, threshold: Numbers, parting: Flags) -> _Level:
        """The next level: the data of a node that splits move to its two children."""
        splitting = parting[self.node]
        x, node = self.x[splitting], self.node[splitting]
        above = x[np.arange(len(x)), column[node]] > threshold[node]
        child = 2 * (np.cumsum(parting) - 1)[node] + above
        order = np.argsort(child, kind="stable")
        return _Level(
            x[order],
            self.targets[splitting][order],
            self.weight[splitting][order],
            child[order],
            2 * int(parting.sum()),
        )
