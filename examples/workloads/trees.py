"""Gradient-boosted regression trees, from histograms: each tree is fitted to what those before it left over.

    python examples/workloads/trees.py

Like the third row of SpotTune's Table II, on made-up data as there: Friedman's function of five of ten features, with
noise. The trees themselves are the checkpoint. A trial that goes on adds their guesses up again, in the same order.
"""

from dataclasses import dataclass

import numpy as np

import shoestring as ss

SPACE = {
    "rows": ss.choice(16_000, 8_000),  # that each tree gets to see
    "lr": ss.choice(1e-1, 3e-2),
    "trees": ss.choice(6, 4),  # in a step
    "depth": ss.choice(5, 3),
}
METRIC, MAX_STEPS = "mse", 40
FEATURES, BINS = 10, 32
LEAST_ROWS = 20
"""A leaf of fewer is drawn towards zero."""


@dataclass(frozen=True)
class Tree:
    """Node n has the children 2n + 1 and 2n + 2; rows whose bin is above the cut go to the second."""

    features: np.ndarray
    cuts: np.ndarray
    leaves: np.ndarray

    def guess(self, x: np.ndarray) -> np.ndarray:
        node, rows = np.zeros(len(x), int), np.arange(len(x))
        while node[0] < len(self.cuts):
            node = 2 * node + 1 + (x[rows, self.features[node]] > self.cuts[node])
        return self.leaves[node - len(self.cuts)]


def train(trial: ss.Trial) -> None:
    train_x, train_y = friedman(32_000, seed=1)
    test_x, test_y = friedman(4_000, seed=2)
    trees: list[Tree] = []
    if trial.checkpoint:
        with np.load(trial.checkpoint / "trees.npz") as saved:
            trees = [Tree(*parts) for parts in zip(saved["features"], saved["cuts"], saved["leaves"], strict=True)]
    train_guess, test_guess = np.zeros(len(train_x)), np.zeros(len(test_x))
    for tree in trees:
        train_guess += trial["lr"] * tree.guess(train_x)
        test_guess += trial["lr"] * tree.guess(test_x)
    for step in trial.steps():
        rng = np.random.default_rng(step)
        for _ in range(trial["trees"]):
            rows = rng.choice(len(train_x), trial["rows"], replace=False)
            tree = grown(train_x[rows], (train_y - train_guess)[rows], trial["depth"])
            trees.append(tree)
            train_guess += trial["lr"] * tree.guess(train_x)
            test_guess += trial["lr"] * tree.guess(test_x)
        trial.report(mse=np.square(test_y - test_guess).mean())
        with trial.save() as folder:
            if folder:
                parts = ("features", "cuts", "leaves")
                np.savez(folder / "trees.npz", **{part: [getattr(tree, part) for tree in trees] for part in parts})


def grown(x: np.ndarray, y: np.ndarray, depth: int) -> Tree:
    """Level by level; every node is cut where that leaves the least squared error."""
    features, cuts = np.zeros(2**depth - 1, int), np.zeros(2**depth - 1, int)
    node, rows = np.zeros(len(x), int), np.arange(len(x))
    for level in range(depth):
        first, width = 2**level - 1, 2**level
        cell = ((node - first)[:, None] * FEATURES + np.arange(FEATURES)) * BINS + x
        shape = (width, FEATURES, BINS)
        sums = np.bincount(cell.ravel(), y.repeat(FEATURES), width * FEATURES * BINS).reshape(shape).cumsum(axis=2)
        counts = np.bincount(cell.ravel(), minlength=width * FEATURES * BINS).reshape(shape).cumsum(axis=2)
        gain = explained(sums, counts) + explained(sums[..., -1:] - sums, counts[..., -1:] - counts)
        feature, cut = np.divmod(gain.reshape(width, -1).argmax(1), BINS)
        features[first : first + width], cuts[first : first + width] = feature, cut
        node = 2 * node + 1 + (x[rows, features[node]] > cuts[node])
    leaf = node - len(cuts)
    sums, counts = np.bincount(leaf, y, 2**depth), np.bincount(leaf, minlength=2**depth)
    return Tree(features, cuts, sums / (counts + LEAST_ROWS))


def explained(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return sums**2 / (counts + LEAST_ROWS)


def friedman(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features as bins, from 0 to 31, and a function of the first five."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(count, FEATURES))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return (x * BINS).astype(int), y - y.mean() + rng.normal(size=count)


if __name__ == "__main__":
    ss.tune(train, name="trees", space=SPACE, recipe="grid", minimize=METRIC, max_steps=MAX_STEPS)
