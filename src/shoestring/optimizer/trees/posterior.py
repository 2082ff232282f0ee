"""The posterior of an outcome by an ensemble of trees, jointly of all candidates at every data fraction.

Each tree is one sample of the outcome as a function. So joint statistics of several runs are computed over the trees:
two runs that fall into the same leaf of many trees are correlated.

Trees cannot extrapolate a trend. So the trend in the fraction s is subtracted from the values before trees are grown.
As the exponent is uncertain, each tree has its own, drawn from the prior: near a run with such a data fraction the
exponents cancel; far from any, the trees disagree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from shoestring.optimizer.candidates import Candidates, Numbers, Rows
from shoestring.optimizer.joint_model import Prediction, RankOneFantasy
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.outcome_model import OutcomeData, Trend
from shoestring.optimizer.transforms import Transform
from shoestring.optimizer.trees.ensemble import Forest, NodeNumbers, grown

JITTER = 1e-6
"""Candidates of one leaf are equal to its tree. Random jitter of this size decides which is the best in a draw."""


class TreeDraws:
    """Each draw is the prediction of one tree for all targets.

    A run that falls into a leaf moves the value of this leaf, and with it all targets that are there; no tree is grown
    again. A new tree would often split the leaf between old and new: on average over such splits the targets move by
    about as much.
    """

    def __init__(self, posterior: TreePosterior, targets: Rows, count: int, seed: Sequence[int]) -> None:
        rng = np.random.default_rng(seed)
        self._posterior = posterior
        samples = posterior.samples(FULL, targets)
        self._trees = np.arange(count) % samples.shape[1]
        self._leaves = posterior.leaves(FULL, targets)[:, self._trees]
        self._noise = posterior.noise * rng.standard_normal(count)
        """Of a measurement, independent in each draw: so draws do not all move to the same value."""
        jitter = JITTER * float(samples.std()) * rng.standard_normal((count, len(targets)))
        self.values: Numbers = samples[:, self._trees].T + jitter

    def conditioned(self, rows: Rows, fraction: float, surprises: Iterable[float]) -> Iterator[Numbers]:
        posterior = self._posterior
        leaves = posterior.leaves(fraction, rows)[:, self._trees]
        # By target, then run, then draw: the least of many draws are found at once if a target's values are together.
        # Floats, not booleans: these would be converted at every product, which takes ten times as long.
        together = (leaves == self._leaves[:, None, :]).astype(np.float64)
        ahead = posterior.at(fraction, rows)
        off = ahead.mean[:, None] + self._noise - posterior.samples(fraction, rows)[:, self._trees]
        gain = posterior.gain(leaves)
        for surprise in surprises:
            moved = gain * (off + surprise * ahead.measured_deviation[:, None])
            by_target = together * moved
            by_target += self.values.T[:, None, :]
            yield by_target.transpose(1, 2, 0)


TREES = 64
USUAL_NOISE, USUAL_RUNS = 0.1, 4
"""Prior deviation of a measurement, for values of unit variance, and its weight in runs."""
LEAST_NOISE = 0.03
LEAST_DEVIATION = 1e-6
"""Of values of unit variance: below this only rounding is left."""


class TreePosterior:
    """A posterior by bagged extra-trees.  Paper: TrimTuner section III-A, trees, corrected

    Differs from the paper: trees are joint samples, and not only the mean and the variance of each candidate; the trend
    in s is subtracted first; measurements have noise, so that what the trees agree on is not certain.
    """

    def __init__(
        self,
        measured: OutcomeData,
        transform: Transform,
        trend: Trend,
        candidates: Candidates,
        smallest: float,
        seed: Sequence[int],
    ) -> None:
        self.transform = transform
        self._candidates, self._smallest = candidates, smallest
        rng = np.random.default_rng(seed)
        trend = trend.on(transform, measured)
        power, spread = trend.power, trend.spread if transform.logarithmic else 0.0
        self._exponents: Numbers = power + spread * rng.standard_normal(TREES)
        known = measured.at_least if measured.at_least.all() else ~measured.at_least
        flat = (measured.levels - power * measured.log_s)[known]
        self._centre, self._unit = float(np.mean(flat)), transform.deviation(flat)
        x, log_s, levels = self._columns(candidates.x[measured.rows], measured.log_s), measured.log_s, measured.levels
        if not known.all():
            # censored runs: what they reached, or what the others predict if that is more
            others = grown(x[known], self._targets(levels, log_s)[:, known], TREES, rng)
            levels = np.where(known, levels, np.maximum(levels, self._levels(others.predict(x), log_s).mean(axis=1)))
        targets = self._targets(levels, log_s)
        forest = grown(x, targets, TREES, rng)
        noise = _unexplained(forest, targets - forest.predict(x).T)
        self.noise = self._unit * noise
        self._forest = _resampled(forest, noise, rng)
        self._leaves: dict[float, NodeNumbers] = {}
        self._samples: dict[float, Numbers] = {}
        self._predictions: dict[float, Prediction] = {}

    def at(self, fraction: float, rows: Rows | None = None) -> Prediction:
        """Marginals of transformed values; of all candidates or of some."""
        if fraction not in self._predictions:
            samples = self.samples(fraction)
            deviation = np.maximum(samples.std(axis=1), LEAST_DEVIATION * self._unit)
            self._predictions[fraction] = Prediction(samples.mean(axis=1), deviation, self.noise)
        whole = self._predictions[fraction]
        return whole if rows is None else Prediction(whole.mean[rows], whole.deviation[rows], whole.noise)

    def mean_at(self, fraction: float) -> Numbers:
        return self.at(fraction).mean

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """Of the values of all rows at one fraction with those of all others at another: rows x others."""
        here, there = self.samples(fraction, rows), self.samples(other_fraction, others)
        centred = there - there.mean(axis=1, keepdims=True)
        covariance: Numbers = (here - here.mean(axis=1, keepdims=True)) @ centred.T / TREES
        return covariance

    def fantasy(self, rows: Rows, fraction: float, targets: Rows) -> RankOneFantasy:
        """The full-size values of the targets after a run of each of these rows."""
        return RankOneFantasy(self, rows, fraction, targets)

    def draws(self, targets: Rows, count: int, seed: Sequence[int]) -> TreeDraws:
        """Joint draws of the full-size values of the targets, which can be conditioned on one more run."""
        return TreeDraws(self, targets, count, seed)

    def expecting(self, row: int, fraction: float) -> None:
        """Assume that a pending run will measure what is predicted: the leaves it falls into move there."""
        leaves = self.leaves(fraction, np.array([row]))[0]
        expected = np.array([float(self.at(fraction).mean[row])])
        value, weight = self._forest.value.copy(), self._forest.weight.copy()
        value[leaves] += self.gain(leaves) * (self._targets(expected, np.log([fraction]))[:, 0] - value[leaves])
        weight[leaves] += 1.0
        self._forest = replace(self._forest, value=value, weight=weight)
        self._samples, self._predictions = {}, {}

    def samples(self, fraction: float, rows: Rows | None = None) -> Numbers:
        """The prediction of each tree (a column) for these rows or for all candidates, transformed."""
        if fraction not in self._samples:
            log_s = np.full(len(self._candidates), math.log(fraction))
            self._samples[fraction] = self._levels(self._forest.value[self.leaves(fraction)], log_s)
        whole = self._samples[fraction]
        return whole if rows is None else whole[rows]

    def leaves(self, fraction: float, rows: Rows | None = None) -> NodeNumbers:
        """Where a run of these rows or of all candidates ends up in each tree (a column)."""
        if fraction not in self._leaves:
            x = self._candidates.x
            self._leaves[fraction] = self._forest.leaves(self._columns(x, np.full(len(x), math.log(fraction))))
        whole = self._leaves[fraction]
        return whole if rows is None else whole[rows]

    def gain(self, leaves: NodeNumbers) -> Numbers:
        """1 / (1 + weight + noise^2): the share of a surprise by which a leaf moves when one more run falls into it.
        Its runs and the prior hold it back."""
        gain: Numbers = 1.0 / (1.0 + self._forest.weight[leaves] + (self.noise / self._unit) ** 2)
        return gain

    def _columns(self, x: Numbers, log_s: Numbers) -> Numbers:
        """The features of the trees: the columns of the candidates, and the logarithm of the fraction, from 0 to 1."""
        p = log_s / math.log(self._smallest) if self._smallest < 1.0 else log_s
        return np.column_stack([x, p])

    def _targets(self, levels: Numbers, log_s: Numbers) -> Numbers:
        """Without centre, unit and trend: a line for each tree."""
        targets: Numbers = (levels - self._centre - np.multiply.outer(self._exponents, log_s)) / self._unit
        return targets

    def _levels(self, targets: Numbers, log_s: Numbers) -> Numbers:
        """The inverse: a column for each tree."""
        levels: Numbers = self._centre + self._unit * targets + np.multiply.outer(log_s, self._exponents)
        return levels


def _unexplained(forest: Forest, residuals: Numbers) -> float:
    """The deviation of a measurement: out-of-bag squared errors less the disagreement of those trees. `residuals` has a
    line for each tree and a column for each run."""
    unseen = forest.bags == 0
    judged = unseen.sum(axis=0) > 1
    trees = unseen[:, judged].sum(axis=0)
    error = (residuals * unseen)[:, judged].sum(axis=0) / trees
    disagreement = (residuals**2 * unseen)[:, judged].sum(axis=0) / trees - error**2
    excess = float((error**2 - disagreement).sum())
    variance = (excess + USUAL_RUNS * USUAL_NOISE**2) / (int(judged.sum()) + USUAL_RUNS)
    return max(math.sqrt(max(variance, 0.0)), LEAST_NOISE)


def _resampled(forest: Forest, noise: float, rng: np.random.Generator) -> Forest:
    """Leaves sampled from their posteriors: a prior of unit variance, and `weight` measurements with this noise."""
    pull = noise**2 / (forest.weight + noise**2)
    value = (1.0 - pull) * forest.value + np.sqrt(pull) * rng.standard_normal(len(forest.value))
    return replace(forest, value=value)
