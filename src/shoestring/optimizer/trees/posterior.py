"""What an ensemble of trees believes of a quantity, jointly of all candidates at every fraction of the data.

Each tree is one sample of what the quantity may be. So whatever is to be known of several runs together is counted over
the trees: two runs that fall into the same leaf of many trees vary together.

Trees cannot follow a trend to where there are no data. So the trend in the fraction s is taken from the values before
trees are grown. As nobody knows the exponent for sure, each tree has its own, drawn from what is expected of the
quantity: where a run on as much of the data is near, the exponents cancel; where there is none, the trees disagree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from shoestring.optimizer.candidates import Candidates, Numbers, Rows
from shoestring.optimizer.joint_model import Prediction
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.outcome_model import OutcomeData, Trend
from shoestring.optimizer.transforms import Transform
from shoestring.optimizer.trees.ensemble import Forest, NodeNumbers, grown

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


TREES = 64
USUAL_NOISE, USUAL_RUNS = 0.1, 4
"""The deviation of a measurement, for values of unit variance, and how many runs this knowledge counts for."""
LEAST_NOISE = 0.03
LEAST_DEVIATION = 1e-6
"""Of values of unit variance: below this only rounding is left."""


class TreeBelief:
    """A posterior by bagged extra-trees.  Paper: TrimTuner section III-A, trees, corrected

    Differs from the paper: trees are joint samples, and not only the mean and the variance of each candidate for
    itself; the trend in s is taken out first; measurements have noise, so that what the trees agree on is not certain.
    """

    def __init__(
        self,
        measured: OutcomeData,
        scale: Transform,
        trend: Trend,
        candidates: Candidates,
        smallest: float,
        seed: Sequence[int],
    ) -> None:
        self.scale = scale
        self._candidates, self._smallest = candidates, smallest
        rng = np.random.default_rng(seed)
        trend = trend.on(scale, measured)
        power, spread = trend.power, trend.spread if scale.logarithmic else 0.0
        self._exponents: Numbers = power + spread * rng.standard_normal(TREES)
        known = measured.at_least if measured.at_least.all() else ~measured.at_least
        flat = (measured.levels - power * measured.log_s)[known]
        self._centre, self._unit = float(np.mean(flat)), scale.deviation(flat)
        x, log_s, levels = self._columns(candidates.x[measured.rows], measured.log_s), measured.log_s, measured.levels
        if not known.all():
            # of runs that were ended early: what they reached, or what the others let expect if that is more
            others = grown(x[known], self._targets(levels, log_s)[:, known], TREES, rng)
            levels = np.where(known, levels, np.maximum(levels, self._levels(others.predict(x), log_s).mean(axis=1)))
        targets = self._targets(levels, log_s)
        forest = grown(x, targets, TREES, rng)
        noise = _unexplained(forest, targets - forest.predict(x).T)
        self.noise = self._unit * noise
        self._forest = _doubting(forest, noise, rng)
        self._leaves: dict[float, NodeNumbers] = {}
        self._samples: dict[float, Numbers] = {}
        self._said: dict[float, Prediction] = {}

    def at(self, fraction: float, rows: Rows | None = None) -> Prediction:
        """Each candidate for itself, on the scale; of all candidates or of some."""
        if fraction not in self._said:
            samples = self.samples(fraction)
            deviation = np.maximum(samples.std(axis=1), LEAST_DEVIATION * self._unit)
            self._said[fraction] = Prediction(samples.mean(axis=1), deviation, self.noise)
        whole = self._said[fraction]
        return whole if rows is None else Prediction(whole.mean[rows], whole.deviation[rows], whole.noise)

    def mean_at(self, fraction: float) -> Numbers:
        return self.at(fraction).mean

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """Of the values of all rows at one fraction with those of all others at another: rows x others."""
        here, there = self.samples(fraction, rows), self.samples(other_fraction, others)
        centred = there - there.mean(axis=1, keepdims=True)
        covariance: Numbers = (here - here.mean(axis=1, keepdims=True)) @ centred.T / TREES
        return covariance

    def draws(self, targets: Rows, count: int, seed: Sequence[int]) -> TreeDraws:
        """Full-size values of the targets, drawn together, and what becomes of them after one more run."""
        return TreeDraws(self, targets, count, seed)

    def expecting(self, row: int, fraction: float) -> None:
        """Take it that a run under way will measure what is predicted: the leaves it falls into move there."""
        leaves = self.leaves(fraction, np.array([row]))[0]
        expected = np.array([float(self.at(fraction).mean[row])])
        value, weight = self._forest.value.copy(), self._forest.weight.copy()
        value[leaves] += self.gain(leaves) * (self._targets(expected, np.log([fraction]))[:, 0] - value[leaves])
        weight[leaves] += 1.0
        self._forest = replace(self._forest, value=value, weight=weight)
        self._samples, self._said = {}, {}

    def samples(self, fraction: float, rows: Rows | None = None) -> Numbers:
        """What each tree (a column) says of these rows or of all candidates, on the scale."""
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
        """By what share of a surprise a leaf moves when one more run falls into it: as many as it has seen, and what
        was believed before, pull it back."""
        gain: Numbers = 1.0 / (1.0 + self._forest.weight[leaves] + (self.noise / self._unit) ** 2)
        return gain

    def _columns(self, x: Numbers, log_s: Numbers) -> Numbers:
        """What trees split by: the columns of the candidates, and the fraction, by its logarithm from 0 to 1."""
        p = log_s / math.log(self._smallest) if self._smallest < 1.0 else log_s
        return np.column_stack([x, p])

    def _targets(self, levels: Numbers, log_s: Numbers) -> Numbers:
        """Without centre, unit and trend: a line for each tree."""
        targets: Numbers = (levels - self._centre - np.multiply.outer(self._exponents, log_s)) / self._unit
        return targets

    def _levels(self, targets: Numbers, log_s: Numbers) -> Numbers:
        """The way back: a column for each tree."""
        levels: Numbers = self._centre + self._unit * targets + np.multiply.outer(log_s, self._exponents)
        return levels


def _unexplained(forest: Forest, residuals: Numbers) -> float:
    """The deviation of a measurement: what the errors of trees that have not seen a run have more than these trees
    disagree by. `residuals` has a line for each tree and a column for each run."""
    unseen = forest.bags == 0
    judged = unseen.sum(axis=0) > 1
    trees = unseen[:, judged].sum(axis=0)
    error = (residuals * unseen)[:, judged].sum(axis=0) / trees
    disagreement = (residuals**2 * unseen)[:, judged].sum(axis=0) / trees - error**2
    excess = float((error**2 - disagreement).sum())
    variance = (excess + USUAL_RUNS * USUAL_NOISE**2) / (int(judged.sum()) + USUAL_RUNS)
    return max(math.sqrt(max(variance, 0.0)), LEAST_NOISE)


def _doubting(forest: Forest, noise: float, rng: np.random.Generator) -> Forest:
    """Leaves drawn from what is known of them: of a value of unit variance, so many measurements with this noise."""
    pull = noise**2 / (forest.weight + noise**2)
    value = (1.0 - pull) * forest.value + np.sqrt(pull) * rng.standard_normal(len(forest.value))
    return replace(forest, value=value)
