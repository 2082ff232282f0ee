"""One outcome of runs (the objective, seconds, a metric), and its posterior.

A target is a transformed value without the expected trend in the data fraction s: ln error + 0.3 ln s, and
ln seconds - ln s. Models are fitted to targets of about unit variance around 0; posteriors are of transformed values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from shoestring.optimizer.candidates import Candidates, Numbers, Rows
from shoestring.optimizer.gp.draws import GaussianDraws
from shoestring.optimizer.gp.fit import most_likely
from shoestring.optimizer.gp.kernel import Frame, KernelParameters, RunPoints
from shoestring.optimizer.gp.process import GP, Slice
from shoestring.optimizer.history import Flags
from shoestring.optimizer.joint_model import Prediction, RankOneFantasy
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.transforms import Transform


@dataclass(frozen=True)
class Trend:
    """outcome ~ s^power, power ~ N(power, spread^2), where the outcome is modelled by its logarithm."""

    power: float
    spread: float

    def on(self, transform: Transform, measured: OutcomeData) -> Trend:
        """Values without a logarithm have no expected trend. And losses whose zero is far away (their logarithms lie
        close together) fall as much less as they differ less: the trend is scaled by their deviation."""
        if not transform.logarithmic:
            return replace(self, power=0.0)
        steep = min(1.0, transform.deviation(measured.known(measured.levels)))
        return replace(self, power=steep * self.power, spread=steep * self.spread)

    def frame(self, parameter: Rows, smallest: float, transform: Transform, unit: float) -> Frame:
        """Of a model of this outcome divided by `unit`."""
        return Frame(parameter, self.spread / unit if transform.logarithmic else self.spread, smallest)


ERROR = Trend(-0.3, 0.2)
SPENDING = Trend(1.0, 0.3)
METRIC = Trend(0.0, 0.2)
LEAST_REDUCTION = 1e-3
"""A run that was ended early is left out if it reduces the variance by a smaller share."""
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class OutcomeData:
    """The runs with a value of this outcome."""

    rows: Rows
    log_s: Numbers
    levels: Numbers
    """Transformed values."""
    at_least: Flags
    """Censored: the run was ended early, and the level is a lower bound."""

    def known(self, values: Numbers) -> Numbers:
        """Of runs that are not censored; of all, if all are."""
        return values if self.at_least.all() else values[~self.at_least]


class OutcomePosterior:
    """The Gaussian-process posterior of an outcome, at every fraction, of all candidates."""

    def __init__(
        self,
        measured: OutcomeData,
        transform: Transform,
        trend: Trend,
        candidates: Candidates,
        smallest: float,
        start: KernelParameters | None,
    ) -> None:
        """`start`: earlier hyper-parameters, from which the fit starts."""
        self.transform = transform
        trend = trend.on(transform, measured)
        self._power = trend.power
        self._candidates = candidates
        targets = measured.levels - self._power * measured.log_s
        self._centre = float(np.mean(measured.known(targets)))
        self._unit = transform.deviation(measured.known(targets))
        self._frame = trend.frame(candidates.parameter, smallest, transform, self._unit)
        points = self._frame.points(candidates.x[measured.rows], measured.log_s)
        values = (targets - self._centre) / self._unit
        if measured.at_least.any():
            usual = start or KernelParameters(self._frame.prior()[0])
            points, values = self._bounded(points, values, measured.at_least, usual)
        shape = most_likely(points, values, self._frame, start)
        self._gp = GP.of(points, values, shape, self._frame)
        self._near: Numbers | None = None
        self._slices: dict[float, Slice] = {}
        self._alike: dict[bytes, Numbers] = {}

    @property
    def shape(self) -> KernelParameters:
        return self._gp.shape

    def expecting(self, row: int, fraction: float) -> None:
        """Assume that a pending run will measure what is predicted (the kriging believer)."""
        self._gp = self._gp.condition_on(self._candidates.x[row], fraction)
        self._near, self._slices = None, {}

    def at(self, fraction: float, rows: Rows | None = None) -> Prediction:
        """Of transformed values; of all candidates or of some."""
        here = self._slice(fraction, rows)
        mean = self._centre + self._unit * here.mean + self._power * math.log(fraction)
        return Prediction(mean, self._unit * np.sqrt(here.variance), self._unit * here.noise**0.5)

    def mean_at(self, fraction: float) -> Numbers:
        """The mean of all candidates alone, which is much faster."""
        mean: Numbers = self._centre + self._unit * self._gp.mean(self._resemblance(), fraction)
        return mean + self._power * math.log(fraction)

    def squared_correlation(self, fraction: float, rows: Rows) -> Numbers:
        """rho^2(x, s) = cov(y(x, s), f(x, 1))^2 / (var y(x, s) var f(x, 1)): its share of variance reduction."""
        here, full = self._slice(fraction, rows), self._slice(FULL, rows)
        shared = self._gp.covariance(here, full)
        share: Numbers = np.clip(shared**2 / (full.variance * (here.variance + here.noise)), 0.0, 1.0)
        return share

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """Of the values of all rows at one fraction with those of all others at another: rows x others."""
        here, there = self._slice(fraction, rows), self._slice(other_fraction, others)
        key = others.tobytes()
        if key not in self._alike:  # the others stay the same while many rows are evaluated
            self._alike[key] = self._gp.alike(self._candidates.x, self._candidates.x[others])
        return self._unit**2 * self._gp.cross_covariance(here, there, self._alike[key][rows])

    def fantasy(self, rows: Rows, fraction: float, targets: Rows) -> RankOneFantasy:
        """The full-size values of the targets after a run of each of these rows."""
        return RankOneFantasy(self, rows, fraction, targets)

    def draws(self, targets: Rows, count: int, seed: Sequence[int]) -> GaussianDraws:
        """Joint draws of the full-size values of the targets, which can be conditioned on one more run."""
        return GaussianDraws(self, targets, count, seed)

    def _slice(self, fraction: float, rows: Rows | None) -> Slice:
        if rows is not None and fraction not in self._slices:
            return self._gp.slice(self._resemblance()[:, rows], fraction)
        if fraction not in self._slices:
            self._slices[fraction] = self._gp.slice(self._resemblance(), fraction)
        whole = self._slices[fraction]
        return whole if rows is None else whole.some(rows)

    def _resemblance(self) -> Numbers:
        if self._near is None:
            self._near = self._gp.near(self._candidates.x)
        return self._near

    def _bounded(
        self, points: RunPoints, values: Numbers, at_least: Flags, shape: KernelParameters
    ) -> tuple[RunPoints, Numbers]:
        """The data with imputed values of censored runs, each with its variance."""
        known = np.flatnonzero(~at_least)
        if not len(known):
            return points, values
        process, values = GP.of(points.some(known), values[known], shape, self._frame), values.copy()
        for ended in np.flatnonzero(at_least):
            x, fraction = points.x[ended], math.exp(points.log_s[ended])
            here = process.slice(process.near(x[None, :]), fraction)
            observed = beyond(float(here.mean[0]), float(here.variance[0]) + here.noise, float(values[ended]))
            if observed is not None:
                process = process.condition_on(x, fraction, *observed)
                known, values[ended] = np.append(known, ended), observed[0]
        return process.points, values[known]


def beyond(mean: float, variance: float, bound: float) -> tuple[float, float] | None:
    """A measurement y ~ N(mean, variance) would have exceeded the bound. The value and the variance of an equivalent
    Gaussian observation; None if y > bound was to be expected anyway.

    Conditioned on it, mean and variance are those of N(mean, variance) truncated to y > bound (assumed-density
    filtering). To use the bound itself as a measurement, or the mean beyond it, would be overconfident.
    """
    deviation = math.sqrt(variance)
    u = (mean - bound) / deviation
    pull = math.exp(-0.5 * u * u - _LOG_SQRT_2PI - float(log_ndtr(u)))
    reduction = pull * (pull + u)
    if reduction < LEAST_REDUCTION:
        return None
    return mean + deviation * pull / reduction, variance * max(1.0 - reduction, 0.0) / reduction
