"""One thing that runs are measured by (the objective, seconds, a metric), and what is believed of it.

A target is a value on its scale without the expected trend in the fraction s of the data: ln error + 0.3 ln s, and
ln seconds - ln s. Models are fitted to targets of about unit variance around 0; beliefs are told on the scale.
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
from shoestring.optimizer.joint_model import Prediction
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.transforms import Transform


@dataclass(frozen=True)
class Trend:
    """How a quantity goes with s: on a logarithmic scale as s to this power, give or take `spread`."""

    power: float
    spread: float

    def on(self, scale: Transform, measured: OutcomeData) -> Trend:
        """Of values that are no logarithms nothing is known. And losses whose zero is far away (their logarithms lie
        close together) fall as much less as they differ less: by a part of what tells good from bad."""
        if not scale.logarithmic:
            return replace(self, power=0.0)
        steep = min(1.0, scale.deviation(measured.known(measured.levels)))
        return replace(self, power=steep * self.power, spread=steep * self.spread)

    def frame(self, parameter: Rows, smallest: float, scale: Transform, unit: float) -> Frame:
        """Of a model of this quantity divided by `unit`."""
        return Frame(parameter, self.spread / unit if scale.logarithmic else self.spread, smallest)


ERROR = Trend(-0.3, 0.2)
SPENDING = Trend(1.0, 0.3)
METRIC = Trend(0.0, 0.2)
LEAST_SETTLED = 1e-3
"""If less of the doubt ends by it, a run that was ended early says nothing new."""
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class OutcomeData:
    """The runs that tell of a quantity."""

    rows: Rows
    log_s: Numbers
    levels: Numbers
    """On the scale."""
    at_least: Flags
    """Of a run that was ended before its end: the level is the least it would have come to."""

    def known(self, values: Numbers) -> Numbers:
        """Of runs that came to their ends; of all, if none did."""
        return values if self.at_least.all() else values[~self.at_least]


class OutcomePosterior:
    """What is believed of a quantity, at every fraction, of all candidates."""

    def __init__(
        self,
        measured: OutcomeData,
        scale: Transform,
        trend: Trend,
        candidates: Candidates,
        smallest: float,
        start: KernelParameters | None,
    ) -> None:
        """`start` are the hyper-parameters of a while ago, from where the search for new ones goes on."""
        self.scale = scale
        trend = trend.on(scale, measured)
        self._power = trend.power
        self._candidates = candidates
        targets = measured.levels - self._power * measured.log_s
        self._centre = float(np.mean(measured.known(targets)))
        self._unit = scale.deviation(measured.known(targets))
        self._frame = trend.frame(candidates.parameter, smallest, scale, self._unit)
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
        """Take it that a run under way will measure what is predicted (the kriging believer)."""
        self._gp = self._gp.told(self._candidates.x[row], fraction)
        self._near, self._slices = None, {}

    def at(self, fraction: float, rows: Rows | None = None) -> Prediction:
        """The values themselves, on the scale; of all candidates or of some."""
        here = self._slice(fraction, rows)
        mean = self._centre + self._unit * here.mean + self._power * math.log(fraction)
        return Prediction(mean, self._unit * np.sqrt(here.variance), self._unit * here.noise**0.5)

    def mean_at(self, fraction: float) -> Numbers:
        """The mean of all candidates alone, which takes a small part of the time."""
        mean: Numbers = self._centre + self._unit * self._gp.mean(self._resemblance(), fraction)
        return mean + self._power * math.log(fraction)

    def squared_correlation(self, fraction: float, rows: Rows) -> Numbers:
        """Of a measurement at this fraction with the value at full size: what share of the doubt it would settle."""
        here, full = self._slice(fraction, rows), self._slice(FULL, rows)
        shared = self._gp.covariance(here, full)
        share: Numbers = np.clip(shared**2 / (full.variance * (here.variance + here.noise)), 0.0, 1.0)
        return share

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """Of the values of all rows at one fraction with those of all others at another: rows x others."""
        here, there = self._slice(fraction, rows), self._slice(other_fraction, others)
        key = others.tobytes()
        if key not in self._alike:  # the others stay the same while many rows are looked at
            self._alike[key] = self._gp.alike(self._candidates.x, self._candidates.x[others])
        return self._unit**2 * self._gp.cross_covariance(here, there, self._alike[key][rows])

    def draws(self, targets: Rows, count: int, seed: Sequence[int]) -> GaussianDraws:
        """Full-size values of the targets, drawn together, and what becomes of them after one more run."""
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
        """The data with what runs that were ended early would have come to, each value as vague as it is."""
        known = np.flatnonzero(~at_least)
        if not len(known):
            return points, values
        process, values = GP.of(points.some(known), values[known], shape, self._frame), values.copy()
        for ended in np.flatnonzero(at_least):
            x, fraction = points.x[ended], math.exp(points.log_s[ended])
            here = process.slice(process.near(x[None, :]), fraction)
            told = beyond(float(here.mean[0]), float(here.variance[0]) + here.noise, float(values[ended]))
            if told is not None:
                process = process.told(x, fraction, *told)
                known, values[ended] = np.append(known, ended), told[0]
        return process.points, values[known]


def beyond(mean: float, variance: float, bound: float) -> tuple[float, float] | None:
    """A measurement that was expected to have this mean and variance would have exceeded the bound. The value and the
    variance of a look at it that tells as much; None if nothing else was to be expected.

    After such a look, mean and variance are those of the normal distribution cut off at the bound (assumed-density
    filtering). To take the bound itself for measured, or the mean beyond it, would be too sure of either.
    """
    deviation = math.sqrt(variance)
    u = (mean - bound) / deviation
    pull = math.exp(-0.5 * u * u - _LOG_SQRT_2PI - float(log_ndtr(u)))
    settled = pull * (pull + u)
    if settled < LEAST_SETTLED:
        return None
    return mean + deviation * pull / settled, variance * max(1.0 - settled, 0.0) / settled
