"""Methods that choose by models: what they share, and those that always use all of the data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from shoestring.optimizer.acquisition.mf_eic import log_eic, log_expected_improvement
from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.gp.kernel import KernelParameters
from shoestring.optimizer.history import Flags, History
from shoestring.optimizer.incumbent import levels, recommended
from shoestring.optimizer.initial_design import spread
from shoestring.optimizer.methods.protocol import Memory, NextRun
from shoestring.optimizer.observations import FULL, Answer
from shoestring.optimizer.posterior import Beliefs
from shoestring.optimizer.recommendation import measured_answer
from shoestring.optimizer.transforms import objective_scale

FIRST_RUNS = 4
"""Spread over the space before a model chooses."""
LEAST_APART = 0.1
"""Of what logarithms are divided by at least: values closer together than this have told nothing apart."""


class ByModel(ABC):
    """What the methods share: a start, models kept from turn to turn, a recommendation.

    Hyper-parameters go on from those of the last ask, and only an ask moves them: what is asked does not depend on how
    often somebody looked at the best.
    """

    near_the_best = True
    gives_up = False
    first_runs = FIRST_RUNS
    most_turns = 1
    """While the first runs all come to the same, so many times as many are made."""

    def __init__(self) -> None:
        self._starts: Mapping[str, KernelParameters] = {}
        self._known: tuple[History, Beliefs] | None = None

    def choose(self, history: History) -> NextRun:
        first = self.first_run(history) or self._by_lot(history)
        if first is not None:
            return first
        beliefs = self._beliefs(history)
        choice = self.by_model(beliefs)
        self._starts = beliefs.shapes
        return choice

    def recommend(self, history: History) -> Answer:
        if not any(math.isfinite(seen.objective) for seen in history.observations):
            return measured_answer(history)
        return recommended(self._beliefs(history))

    def memory(self) -> Memory:
        return {"shapes": {name: shape.theta.tolist() for name, shape in self._starts.items()}}

    def recall(self, memory: Memory) -> None:
        self._starts = {name: KernelParameters(np.array(theta)) for name, theta in memory["shapes"].items()}

    def first_fraction(self, history: History) -> float:  # noqa: ARG002 - of some methods
        return FULL

    @abstractmethod
    def by_model(self, beliefs: Beliefs) -> NextRun:
        """The next run, once there is something to believe."""

    def first_run(self, history: History) -> NextRun | None:
        """The next of the runs that are made whatever they tell, if there is one left."""
        fraction = self.first_fraction(history)
        left = history.untried[:, history.problem.fractions.index(fraction)]
        turn, begun = divmod(len(history.observations) + len(history.pending), self.first_runs)
        if turn == 0 or (turn < self.most_turns and _all_come_to_the_same(history)):
            rows = spread(history.candidates, self.first_runs, history.problem.seed, turn)
            for row in rows[begun:] + rows[:begun]:
                if left[row]:
                    return NextRun(row, fraction, f"one of the first, spread over the space, on {share(fraction)}")
        return None

    def _by_lot(self, history: History) -> NextRun | None:
        """While no run has told an objective; None when models can choose."""
        if any(math.isfinite(seen.objective) for seen in history.observations):
            return None
        fraction = self.first_fraction(history)
        left = history.untried[:, history.problem.fractions.index(fraction)]
        rng = np.random.default_rng([history.problem.seed, 2, len(history.observations) + len(history.pending)])
        if not left.any():
            left, fraction = history.untried[:, -1], FULL
        return NextRun(
            int(rng.choice(np.flatnonzero(left))), fraction, "drawn by lot: no run has told an objective yet"
        )

    def believe(self, history: History, starts: Mapping[str, KernelParameters]) -> Beliefs:
        """The models of this method, fitted from these hyper-parameters on."""
        return Beliefs(history, starts)

    def _beliefs(self, history: History) -> Beliefs:
        """Those of the last turn if nothing has changed."""
        if self._known is None or _has_news(self._known[0], history):
            self._known = history, self.believe(history, self._starts)
        return self._known[1]


class Ei(ByModel):
    """Expected improvement on the best objective measured on all of the data, without regard to limits."""

    def by_model(self, beliefs: Beliefs) -> NextRun:
        history = beliefs.history
        whole = [row for row, seen in history.measured.items() if math.isfinite(seen.objective) and not seen.killed]
        ahead = beliefs.objective.at(FULL)
        best = levels(beliefs)[whole].min() if whole else ahead.mean.min()
        worth = log_expected_improvement(ahead.mean, ahead.deviation, float(best))
        return NextRun(largest(worth, history.untried[:, -1]), FULL, "largest expected improvement")


class Eic(ByModel):
    """Expected improvement times the chance to keep all limits, always on all of the data."""

    def by_model(self, beliefs: Beliefs) -> NextRun:
        history = beliefs.history
        best = history.best_measured()
        worth = self.weighed(log_eic(beliefs, None if best is None else float(levels(beliefs)[best])), beliefs)
        return NextRun(largest(worth, history.untried[:, -1]), FULL, "largest expected improvement under the limits")

    def weighed(self, worth: Numbers, beliefs: Beliefs) -> Numbers:  # noqa: ARG002 - of the method below
        return worth


class EicPerDollar(Eic):
    """The same for each dollar that the run is expected to cost."""

    def weighed(self, worth: Numbers, beliefs: Beliefs) -> Numbers:
        return worth - np.log(beliefs.expected_cost(FULL))


class EicPerDollarFromTwo(EicPerDollar):
    """The same, with two first runs instead of four: what a start on all of the data saves most by."""

    first_runs = 2


def _all_come_to_the_same(history: History) -> bool:
    """Of values that lie this close together models learn that all candidates are alike."""
    values = np.array([seen.objective for seen in history.observations if math.isfinite(seen.objective)])
    if len(values) < 2:
        return False
    scale = objective_scale(values, history.problem.minimize)
    near = LEAST_APART * scale.least_deviation if scale.logarithmic else 0.0
    return float(np.ptp(scale.of(values))) <= near


def _has_news(known: History, now: History) -> bool:
    return (
        len(known.observations) != len(now.observations)
        or known.pending != now.pending
        or known.usd_per_hour is not now.usd_per_hour
    )


def largest(worth: Numbers, allowed: Flags) -> int:
    """The place of the largest among those allowed, of which there is at least one; also if all are worth nothing."""
    places = np.flatnonzero(allowed)
    return int(places[np.asarray(worth)[allowed].argmax()])


def share(fraction: float) -> str:
    """A fraction in words."""
    return "all of the data" if fraction == FULL else f"{100 * fraction:.3g} % of the data"
