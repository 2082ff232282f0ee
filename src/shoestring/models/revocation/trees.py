"""Gradient-boosted trees over all markets: the default. Trained with scikit-learn, saved and evaluated without it.

A saved model is arrays of split points and leaves. It is read without pickle, loads no library, and gives the numbers
that scikit-learn would give.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from shoestring.errors import DataError, need
from shoestring.kernel.types import Fact
from shoestring.models.revocation.arrays import Array
from shoestring.models.revocation.examples import Examples
from shoestring.models.revocation.features import NAMES, summary
from shoestring.models.revocation.model import Queries, certain_above_maximum
from shoestring.models.revocation.price_arrays import Floats

CHUNK = 4096
"""Rows sent down all trees at once: what fits a cache."""
RISING = {"within": 1, "maximum": -1, "headroom": -1}
"""Monotonic constraints: the chance rises with the horizon and falls with the maximum price, whatever the sample."""


class Trees(Fact, frozen=True, kw_only=True, tag="trees"):
    """chance = 1 / (1 + exp(-(baseline + sum over trees of value[leaf]))).

    Nodes of all trees in one array. A leaf is its own child, so that all rows take as many steps as the deepest tree.
    """

    names: tuple[str, ...]
    baseline: float
    depth: int
    roots: Array
    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array

    def __post_init__(self) -> None:
        nodes = {array.shape for array in (self.feature, self.threshold, self.left, self.right, self.value)}
        if len(nodes) != 1 or len(nodes.pop()) != 1 or not 0 <= self.depth <= 64:
            raise DataError("the trees of a saved model do not fit together")
        count = self.feature.shape[0]
        for array, most in (
            (self.roots, count),
            (self.left, count),
            (self.right, count),
            (self.feature, len(self.names)),
        ):
            found = array.whole()
            if len(found) and not (0 <= found.min() and found.max() < most):
                raise DataError("the trees of a saved model point outside of it")

    def chance(self, queries: Queries, /) -> Floats:
        if self.names != NAMES:
            raise DataError(
                "this model was trained on other features than are computed now",
                hint="train it again with shoestring market fit",
            )
        return certain_above_maximum(queries, expit(self.raw(summary(queries))))

    def raw(self, features: Floats) -> Floats:
        """The log odds of each row of features."""
        parts = [self._raw(features[begin : begin + CHUNK]) for begin in range(0, len(features), CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _raw(self, features: Floats) -> Floats:
        feature, threshold, value = self.feature.whole(), self.threshold.floats(), self.value.floats()
        left, right = self.left.whole(), self.right.whole()
        row = np.arange(len(features))[:, None]
        node = np.broadcast_to(self.roots.whole(), (len(features), self.roots.shape[0]))
        for _ in range(self.depth):
            node = np.where(features[row, feature[node]] <= threshold[node], left[node], right[node])
        total: Floats = self.baseline + value[node].sum(axis=1)
        return total


def fit_trees(examples: Examples, *, seed: int = 0, rounds: int = 150) -> Trees:
    """Small steps, large leaves and no class weights: chances must be calibrated, not only ranked."""
    ensemble = need("sklearn.ensemble", extra="learn")
    learner = ensemble.HistGradientBoostingClassifier(
        learning_rate=0.06,
        max_iter=rounds,
        max_leaf_nodes=15,
        min_samples_leaf=80,
        l2_regularization=5.0,
        max_features=0.5,
        monotonic_cst=[RISING.get(name, 0) for name in NAMES],
        early_stopping=False,
        random_state=seed,
    )
    features = summary(examples.queries)
    if len(np.unique(examples.revoked)) < 2:
        always = bool(len(examples) and examples.revoked[0])
        raise DataError(
            f"{'all' if always else 'none'} of {len(examples)} examples were revoked: there is nothing to learn",
            hint="give a longer price history, or use the empirical frequency or an interruption prior",
        )
    # One thread: on a machine with other work the threads wait for each other, and take several times as long.
    with need("threadpoolctl", extra="learn").threadpool_limits(limits=1):
        learner.fit(features, examples.revoked)
    return exported(learner)


def exported(learner: object) -> Trees:
    """The trees of a fitted HistGradientBoostingClassifier of two classes, as plain arrays.

    scikit-learn has no public access to them; a test compares every prediction, so a release that moves them shows.
    """
    grown = [rounds[0].nodes for rounds in learner._predictors]  # type: ignore[attr-defined]
    roots = np.cumsum([0, *(len(nodes) for nodes in grown[:-1])])
    feature, threshold, left, right, value = [], [], [], [], []
    for root, nodes in zip(roots, grown, strict=True):
        leaf, itself = nodes["is_leaf"].astype(bool), np.arange(len(nodes)) + root
        feature.append(np.where(leaf, 0, nodes["feature_idx"]))
        threshold.append(np.where(leaf, 0.0, nodes["num_threshold"]))
        left.append(np.where(leaf, itself, nodes["left"].astype(np.int64) + root))
        right.append(np.where(leaf, itself, nodes["right"].astype(np.int64) + root))
        value.append(np.where(leaf, nodes["value"], 0.0))
    return Trees(
        names=NAMES,
        baseline=float(learner._baseline_prediction.ravel()[0]),  # type: ignore[attr-defined]
        depth=max(int(nodes["depth"].max()) for nodes in grown),
        roots=Array.of(roots, "<i4"),
        feature=Array.of(np.concatenate(feature), "<i4"),
        threshold=Array.of(np.concatenate(threshold)),
        left=Array.of(np.concatenate(left), "<i4"),
        right=Array.of(np.concatenate(right), "<i4"),
        value=Array.of(np.concatenate(value)),
    )
