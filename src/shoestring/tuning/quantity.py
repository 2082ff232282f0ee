"""One thing that runs are measured by (the objective, seconds, a metric), and what is believed of it.

A target is a value on its scale without the expected trend in the fraction s of the data: ln error + 0.3 ln s, and
ln seconds - ln s. Models are fitted to targets of about unit variance around 0; beliefs are told on the scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoestring.tuning.candidates import Candidates, Numbers, Rows
from shoestring.tuning.gp import GP, Slice
from shoestring.tuning.gp_fit import most_likely
from shoestring.tuning.gp_kernel import Frame, Points, Shape
from shoestring.tuning.history import Flags
from shoestring.tuning.observations import FULL
from shoestring.tuning.scales import Scale


@dataclass(frozen=True)
class Trend:
    """How a quantity goes with s: on a logarithmic scale as s to this power, give or take `spread`."""

    power: float
    spread: float


ERROR = Trend(-0.3, 0.2)
SPENDING = Trend(1.0, 0.3)
METRIC = Trend(0.0, 0.2)


@dataclass(frozen=True)
class Measured:
    """The runs that tell of a quantity."""

    rows: Rows
    log_s: Numbers
    levels: Numbers
    """On the scale."""
    at_least: Flags
    """Of a run that was ended before its end: the level is the least it would have come to."""


@dataclass(frozen=True)
class Prediction:
    """On the scale of the quantity, of each candidate at one fraction."""

    mean: Numbers
    deviation: Numbers
    noise: float
    """Standard deviation that one measurement adds."""

    @property
    def measured_deviation(self) -> Numbers:
        """Of what a run would measure."""
        return np.hypot(self.deviation, self.noise)


class Belief:
    """What is believed of a quantity, at every fraction, of all candidates."""

    def __init__(
        self,
        measured: Measured,
        scale: Scale,
        trend: Trend,
        candidates: Candidates,
        smallest: float,
        start: Shape | None,
    ) -> None:
        """`start` are the hyper-parameters of a while ago, from where the search for new ones goes on."""
        self.scale = scale
        self._power = trend.power if scale.logarithmic else 0.0
        self._candidates = candidates
        targets = measured.levels - self._power * measured.log_s
        known = ~measured.at_least
        self._centre = float(np.mean(targets[known] if known.any() else targets))
        self._unit = scale.deviation(targets[known] if known.any() else targets)
        slope = trend.spread / self._unit if scale.logarithmic else trend.spread
        self._frame = Frame(candidates.parameter, slope, smallest)
        points = self._frame.points(candidates.x[measured.rows], measured.log_s)
        values = (targets - self._centre) / self._unit
        if measured.at_least.any():
            values = self._lifted(points, values, measured.at_least, start or Shape.usual(candidates.parameters))
        shape = most_likely(points, values, self._frame, start)
        self._gp = GP.of(points, values, shape, self._frame)
        self._near: Numbers | None = None
        self._slices: dict[float, Slice] = {}

    @property
    def shape(self) -> Shape:
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

    def _lifted(self, points: Points, values: Numbers, at_least: Flags, shape: Shape) -> Numbers:
        """Values of runs that were ended early: what they reached, or what the others let expect if that is more.

        Not the mean of all that lies beyond, which a single early kill would carry far off, and all else with it.
        """
        known = np.flatnonzero(~at_least)
        if not len(known):
            return values
        process = GP.of(points.some(known), values[known], shape, self._frame)
        lifted = values.copy()
        for killed in np.flatnonzero(at_least):
            near = process.near(points.x[killed][None, :])
            expected = process.mean(near, math.exp(points.log_s[killed]))[0]
            lifted[killed] = max(values[killed], expected)
        return lifted
