"""Gradient-boosted regression trees, from histograms: each tree is fitted to the residuals of those before it.

    python examples/workloads/trees.py

Like the third row of SpotTune's Table II, on synthetic data as there: Friedman's function of five of ten features, with
noise. The trees themselves are the checkpoint. A resumed trial sums their predictions again, in the same order.
"""

from dataclasses import dataclass

import numpy as np

import shoestring as ss

SPACE = {
    "rows": ss.choice(16_000, 8_000),  # row subsample of each tree
    "lr": ss.choice(1e-1, 3e-2),
    "trees": ss.choice(6, 4),  # per step
    "depth": ss.choice(5, 3),
}
METRIC, MAX_STEPS = "mse", 40
FEATURES, BINS = 10, 32
LEAST_ROWS = 20
"""Leaves are shrunk towards zero, as if they had so many more rows of zero."""


@dataclass(frozen=True)
class Tree:
    """Node n has the children 2n + 1 and 2n + 2; rows whose bin is above the cut go to the second."""

    features: np.ndarray
    cuts: np.ndarray
    leaves: np.ndarray

    def predict(self, x: np.ndarray) -> np.ndarray:
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
    train_prediction, test_prediction = np.zeros(len(train_x)), np.zeros(len(test_x))
    for tree in trees:
        train_prediction += trial["lr"] * tree.predict(train_x)
        test_prediction += trial["lr"] * tree.predict(test_x)
    for step in trial.steps():
        rng = np.random.default_rng(step)
        for _ in range(trial["trees"]):
            rows = rng.choice(len(train_x), trial["rows"], replace=False)
            tree = grow(train_x[rows], (train_y - train_prediction)[rows], trial["depth"])
            trees.append(tree)
            train_prediction += trial["lr"] * tree.predict(train_x)
            test_prediction += trial["lr"] * tree.predict(test_x)
        trial.report(mse=np.square(test_y - test_prediction).mean())
        with trial.save() as folder:
            if folder:
                parts = ("features", "cuts", "leaves")
                np.savez(folder / "trees.npz", **{part: [getattr(tree, part) for tree in trees] for part in parts})


def grow(x: np.ndarray, y: np.ndarray, depth: int) -> Tree:
    """Level by level; every node is split where that leaves the least squared error."""
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
