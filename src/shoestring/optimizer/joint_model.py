"""What an acquisition asks of a model, whatever kind of model it is: Gaussian processes and ensembles of trees answer.

A model tells of one quantity (the objective, seconds, a metric) on its `scale`, where less of an objective is better,
at pairs of a candidate's row and a fraction of the data. It tells of them jointly: entropy search asks what a run of
one candidate on little data would change about all others on all of it.

A posterior is what is believed of one quantity; `JointBeliefs` is all of them together. `Beliefs` is one for Gaussian
processes; another kind of model needs a posterior of its own and a `Beliefs` whose `_belief` makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    """On the scale of the quantity, of each candidate at one fraction."""

    mean: Numbers
    deviation: Numbers
    noise: float
    """Standard deviation that one measurement adds."""

    @property
    def measured_deviation(self) -> Numbers:
        """Of what a run would measure."""
        return np.hypot(self.deviation, self.noise)


class Draws(Protocol):
    """Full-size values of some candidates (the targets), drawn together, and what becomes of them after one more run.

    The same random numbers serve every run that is compared (common random numbers): the noise of the draws then
    hardly tells which run is better.
    """

    @property
    def values(self) -> Numbers:
        """One line for each draw, a column for each target."""

    def told(self, rows: Rows, fraction: float, surprises: Iterable[float]) -> Iterator[Values]:
        """The same draws if a run of each of these rows measured so many deviations (of a measurement, noise included)
        more than expected: for each of the surprises rows x draws x targets. Hyper-parameters stay what they are.

        Only differences between targets count: a number may have been subtracted from all. And what is yielded may be
        written over for the next surprise: new memory would take longer than the arithmetic."""


class JointPosterior(Protocol):
    """What is believed of one quantity."""

    @property
    def scale(self) -> Transform: ...

    def at(self, fraction: float, rows: Rows | None = None) -> Prediction:
        """Each for itself: mean, deviation and noise, of these rows or of all candidates."""

    def covariance(self, rows: Rows, fraction: float, others: Rows, other_fraction: float) -> Numbers:
        """Of the values (without noise) of all rows at one fraction with all others at another: rows x others."""

    def draws(self, targets: Rows, count: int, seed: Sequence[int]) -> Draws:
        """This many joint draws of the full-size values of the targets. Equal seeds draw equally."""

    def expecting(self, row: int, fraction: float) -> None:
        """From now on, take it that a run under way will measure what is predicted (the kriging believer)."""


@dataclass(frozen=True)
class Limit:
    """A constraint, as the model of its metric sees it."""

    posterior: JointPosterior
    level: Numbers
    """Of each candidate, on the posterior's scale."""
    at_most: bool


class JointBeliefs(Protocol):
    """What is believed of all that counts. Quantities are independent of each other."""

    @property
    def history(self) -> History: ...

    @property
    def objective(self) -> JointPosterior: ...

    def expected_cost(self, fraction: float, rows: Rows | None = None) -> Numbers:
        """Of a run of these rows, or of all candidates."""

    def limits(self) -> Sequence[Limit]:
        """One for each constraint whose metric was ever measured."""


def influence(posterior: JointPosterior, rows: Rows, fraction: float, targets: Rows) -> Numbers:
    """By how much the full-size mean of each target moves if a run of a row measures one deviation more than expected:
    rows x targets. Its square is what the variance of the target loses.

    This is a rank-one update, exact for a Gaussian process with the hyper-parameters it has; of another model it is the
    update of a Gaussian with the same means and covariances.
    """
    moved: Numbers = posterior.covariance(rows, fraction, targets, FULL)
    return moved / posterior.at(fraction, rows).measured_deviation[:, None]


def deviation_after(posterior: JointPosterior, moved: Numbers, targets: Rows) -> Numbers:
    """What is left of the doubt about the full-size value of each target, where `moved` is their `influence`."""
    left: Numbers = np.sqrt(np.maximum(posterior.at(FULL, targets).deviation ** 2 - moved**2, 0.0))
    return left
