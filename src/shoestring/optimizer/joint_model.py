"""What an acquisition function needs of a model, whatever its kind: Gaussian processes and ensembles of trees have it.

A model predicts one outcome (the objective, seconds, a metric), transformed so that less of an objective is better, at
pairs of a candidate's row and a data fraction. Predictions are joint: entropy search needs to know how a run of one
candidate on a small fraction would change all others at full size.

A posterior is of one outcome; `JointPosteriors` are those of all outcomes. `Posteriors` has Gaussian processes; another
kind of model needs a posterior of its own and a subclass of `Posteriors` whose `_posterior` makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.history import History
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.transforms import Transform

Values = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Prediction:
    """Of the transformed outcome, for each candidate at one fraction."""

    mean: Numbers
    deviation: Numbers
    noise: float
    """Standard deviation that one measurement adds."""

    @property
    def measured_deviation(self) -> Numbers:
        """sqrt(deviation^2 + noise^2): of what a run would measure."""
        return np.hypot(self.deviation, self.noise)


class Draws(Protocol):
    """Joint draws of the full-size values of some candidates (the targets), and the same after one more run.

    Every run that is compared uses the same random numbers (common random numbers): the noise of the draws then hardly
    affects which run is better.
    """

    @property
    def values(self) -> Numbers:
        """One line for each draw, a column for each target."""

    def conditioned(self, rows: Rows, fraction: float, surprises: Iterable[float]) -> Iterator[Values]:
        """The same draws if a run of each of these rows measured so many deviations (of a measurement, noise included)
        more than expected: for each of the surprises rows x draws x targets. Hyper-parameters stay the same.

        Only differences between targets count: a number may have been subtracted from all. And what is yielded may be
        overwritten for the next surprise: new memory would take longer than the arithmetic."""


class Fantasy(Protocol):
    """The full-size outcome of some candidates (the targets) after a run of each of some rows, for any surprise: what
    the run measures, in deviations more than expected. All are rows x targets."""

    def mean(self, surprise: float) -> Numbers: ...

    def measured_deviation(self, surprise: float) -> Numbers:
        """Of what a run of the target would measure."""


class JointPosterior(Protocol):
    """The posterior of one outcome."""

    @property
    def transform(self) -> Transform: ...

    def at(self, fraction: float, rows: Rows | None = None) -> Prediction:
        """Marginals: mean, deviation and noise, of these rows or of all candidates."""

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """Of the values (without noise) of all rows at one fraction with all others at another: rows x others."""

    def fantasy(self, rows: Rows, fraction: float, targets: Rows) -> Fantasy:
        """The targets after a run of each of these rows on this fraction."""

    def draws(self, targets: Rows, count: int, seed: Sequence[int]) -> Draws:
        """This many joint draws of the full-size values of the targets. Equal seeds give equal draws."""

    def expecting(self, row: int, fraction: float) -> None:
        """From now on, assume that a pending run will measure what is predicted (the kriging believer)."""


@dataclass(frozen=True)
class ModelledConstraint:
    """A constraint with the posterior of its metric: satisfied where value <= level (`at_most`) or >= level."""

    posterior: JointPosterior
    level: Numbers
    """Of each candidate, transformed as the posterior."""
    at_most: bool


class JointPosteriors(Protocol):
    """The posteriors of all outcomes, independent of each other."""

    @property
    def history(self) -> History: ...

    @property
    def objective(self) -> JointPosterior: ...

    def expected_cost(self, fraction: float, rows: Rows | None = None) -> Numbers:
        """Of a run of these rows, or of all candidates."""

    def modelled_constraints(self) -> Sequence[ModelledConstraint]:
        """One for each constraint whose metric was ever measured."""


def influence(posterior: JointPosterior, rows: Rows, fraction: float, targets: Rows) -> Numbers:
    """d(x, x') = cov(f(x, s), f(x', 1)) / measured_deviation(x, s): how far the full-size mean of each target x' moves
    if a run of a row x measures one deviation more than expected: rows x targets. d^2 is the reduction of its variance.

    This is a rank-one update, exact for a Gaussian process with fixed hyper-parameters; for another model it is the
    update of a Gaussian with the same means and covariances.
    """
    moved: Numbers = posterior.covariance(rows, fraction, targets, FULL)
    return moved / posterior.at(fraction, rows).measured_deviation[:, None]


def deviation_after(posterior: JointPosterior, moved: Numbers, targets: Rows) -> Numbers:
    """sqrt(deviation^2 - d^2): of the full-size value of each target after a run; `moved` is d, the `influence`."""
    left: Numbers = np.sqrt(np.maximum(posterior.at(FULL, targets).deviation ** 2 - moved**2, 0.0))
    return left


class RankOneFantasy:
    """The posterior updated, and not fitted again: hyper-parameters stay what they are."""

    def __init__(self, posterior: JointPosterior, rows: Rows, fraction: float, targets: Rows) -> None:
        self._posterior, self._targets = posterior, targets
        self._now = posterior.at(FULL, targets)
        self._moved = influence(posterior, rows, fraction, targets)

    def mean(self, surprise: float) -> Numbers:
        return self._now.mean + surprise * self._moved

    def measured_deviation(self, surprise: float) -> Numbers:  # noqa: ARG002 - the same for all
        return self._measured_deviation

    @cached_property
    def _measured_deviation(self) -> Numbers:
        return np.hypot(deviation_after(self._posterior, self._moved, self._targets), self._now.noise)
