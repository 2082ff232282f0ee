"""Bagged extra-trees: they are grown as they should be, and as good as those of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.optimizer.trees.ensemble import Forest, grown


def walked(forest: Forest, tree: int, point: np.ndarray) -> int:
    """Down one tree, a step at a time."""
    node = tree
    while forest.below[node] != node:
        node = int(forest.below[node]) + int(point[forest.column[node]] > forest.threshold[node])
    return node


@given(seed=st.integers(0, 10_000), count=st.integers(1, 25), columns=st.integers(1, 4), steps=st.integers(2, 20))
@settings(max_examples=40, deadline=None)
def test_every_point_of_a_bag_is_in_one_leaf_and_the_leaf_has_their_mean(
    seed: int, count: int, columns: int, steps: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, steps, (count, columns)) / steps
    targets = rng.standard_normal(count)
    forest = grown(x, targets, 7, rng)
    leaves = forest.leaves(x)
    assert (forest.bags.sum(axis=1) == count).all()
    for tree in range(7):
        for leaf in np.unique(leaves[:, tree]):
            weight = forest.bags[tree] * (leaves[:, tree] == leaf)
            assert forest.weight[leaf] == weight.sum()
            if weight.any():
                assert forest.value[leaf] == pytest.approx(weight @ targets / weight.sum())
        assert forest.weight[np.unique([walked(forest, tree, point) for point in x])].sum() == count


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_points_evaluated_together_reach_the_leaves_of_single_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forest = grown(rng.random((30, 3)), rng.standard_normal(30), 5, rng)
    asked = rng.random((40, 3))
    leaves = forest.leaves(asked)
    for tree in range(5):
        assert [walked(forest, tree, point) for point in asked] == leaves[:, tree].tolist()
    assert (forest.predict(asked) == forest.value[leaves]).all()


def test_a_tree_that_has_a_point_in_its_bag_predicts_its_target() -> None:
    rng = np.random.default_rng(0)
    x, targets = rng.random((40, 4)), rng.standard_normal(40)
    forest = grown(x, targets, 20, rng)
    seen = forest.bags.T > 0
    assert np.abs(forest.predict(x) - targets[:, None])[seen] == pytest.approx(0.0)
    assert 0.55 < seen.mean() < 0.72  # 1 - 1/e of the points are in a bag


def test_identical_points_share_a_leaf_and_equal_targets_need_no_split() -> None:
    rng = np.random.default_rng(1)
    alike = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.5]])
    forest = grown(alike, np.array([1.0, 3.0, 7.0]), 60, rng)
    once_each = int(np.flatnonzero((forest.bags == 1).all(axis=1))[0])
    assert forest.predict(alike)[:, once_each].tolist() == [2.0, 2.0, 7.0]
    assert grown(rng.random((9, 2)), np.full(9, 0.3), 4, rng).depth == 0
    assert grown(alike[:1], np.array([5.0]), 3, rng).predict(alike).tolist() == [[5.0] * 3] * 3


def test_the_same_seed_grows_the_same_trees_and_another_seed_others() -> None:
    x, targets = np.random.default_rng(2).random((30, 3)), np.arange(30.0)
    one, same, other = (grown(x, targets, 8, np.random.default_rng(seed)).predict(x) for seed in (3, 3, 4))
    assert (one == same).all()
    assert (one != other).any()


def test_each_tree_may_have_targets_of_its_own() -> None:
    x, targets = np.random.default_rng(5).random((30, 3)), np.arange(30.0)
    own = np.stack([targets, targets + 100.0, -targets])
    one, lifted, mirrored = grown(x, own, 3, np.random.default_rng(6)).predict(x).T
    assert 0.0 <= one.min() <= one.max() <= 29.0
    assert 100.0 <= lifted.min() <= lifted.max() <= 129.0
    assert -29.0 <= mirrored.min() <= mirrored.max() <= 0.0


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "smooth": lambda x: np.sin(4 * x[:, 0]) + 2 * (x[:, 1] - 0.4) ** 2,
    "steps": lambda x: (x[:, 0] > 0.3) + 2.0 * (x[:, 1] > 0.7) * (x[:, 2] > 0.5),
    "one option": lambda x: np.where(x[:, 4] > x[:, 5], 1.0, x[:, 0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_biases_and_spreads_are_those_of_scikit_learn(name: str) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng, function = np.random.default_rng(7), FUNCTIONS[name]
    x, asked = rng.random((60, 6)), rng.random((400, 6))
    targets, truth = function(x) + 0.1 * rng.standard_normal(60), function(asked)
    ours = grown(x, targets, 300, rng).predict(asked)
    oracle = ensemble.ExtraTreesRegressor(300, bootstrap=True, random_state=0).fit(x, targets)
    theirs = np.stack([tree.predict(asked) for tree in oracle.estimators_], axis=1)

    def summary(said: np.ndarray) -> list[float]:
        off = said.mean(axis=1) - truth
        return [float(np.sqrt((off**2).mean())), float(said.std(axis=1).mean())]

    assert summary(ours) == pytest.approx(summary(theirs), rel=0.1)
    assert (ours.mean() - truth.mean()) == pytest.approx(theirs.mean() - truth.mean(), abs=0.04)
    assert np.corrcoef(ours.mean(axis=1), theirs.mean(axis=1))[0, 1] > 0.95
