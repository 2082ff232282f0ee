"""Model-based methods: their common base, and those that always use the full data."""

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
from shoestring.optimizer.initial_design import latin_hypercube
from shoestring.optimizer.methods.protocol import Memory, NextRun
from shoestring.optimizer.observations import FULL, Answer
from shoestring.optimizer.posterior import Posteriors
from shoestring.optimizer.recommendation import measured_answer
from shoestring.optimizer.transforms import objective_transform

FIRST_RUNS = 4
"""Runs of the initial design, before a model chooses."""
LEAST_APART = 0.1
"""As a share of the least deviation: values closer together than this distinguish no candidates."""


class ByModel(ABC):
    """What the methods share: an initial design, models kept from turn to turn, a recommendation.

    Hyper-parameters start from those of the last `ask`, and only `ask` moves them: suggestions do not depend on how
    often `best` was called.
    """

    near_the_best = True
    stops_early = False
    first_runs = FIRST_RUNS
    most_turns = 1
    """While all initial runs have about the same objective, the initial design is repeated up to so many times."""

    def __init__(self) -> None:
        self._starts: Mapping[str, KernelParameters] = {}
        self._known: tuple[History, Posteriors] | None = None

    def choose(self, history: History) -> NextRun:
        first = self.first_run(history) or self._at_random(history)
        if first is not None:
            return first
        posteriors = self._posteriors(history)
        choice = self.by_model(posteriors)
        self._starts = posteriors.shapes
        return choice

    def recommend(self, history: History) -> Answer:
        if not any(math.isfinite(seen.objective) for seen in history.observations):
            return measured_answer(history)
        return recommended(self._posteriors(history))

    def memory(self) -> Memory:
        return {"shapes": {name: shape.theta.tolist() for name, shape in self._starts.items()}}

    def recall(self, memory: Memory) -> None:
        self._starts = {name: KernelParameters(np.array(theta)) for name, theta in memory["shapes"].items()}

    def first_fraction(self, history: History) -> float:  # noqa: ARG002 - of some methods
        return FULL

    @abstractmethod
    def by_model(self, posteriors: Posteriors) -> NextRun:
        """The next run, once there are observations to fit."""

    def first_run(self, history: History) -> NextRun | None:
        """The next run of the initial design, if there is one left."""
        fraction = self.first_fraction(history)
        left = history.untried[:, history.problem.fractions.index(fraction)]
        turn, begun = divmod(len(history.observations) + len(history.pending), self.first_runs)
        if turn == 0 or (turn < self.most_turns and _all_about_equal(history)):
            rows = latin_hypercube(history.candidates, self.first_runs, history.problem.seed, turn)
            for row in rows[begun:] + rows[:begun]:
                if left[row]:
                    return NextRun(row, fraction, f"initial design, spread over the space, on {share(fraction)}")
        return None

    def _at_random(self, history: History) -> NextRun | None:
        """While no run has reported an objective; None when models can choose."""
        if any(math.isfinite(seen.objective) for seen in history.observations):
            return None
        fraction = self.first_fraction(history)
        left = history.untried[:, history.problem.fractions.index(fraction)]
        rng = np.random.default_rng([history.problem.seed, 2, len(history.observations) + len(history.pending)])
        if not left.any():
            left, fraction = history.untried[:, -1], FULL
        return NextRun(
            int(rng.choice(np.flatnonzero(left))), fraction, "sampled at random: no run has reported an objective yet"
        )

    def fit_posteriors(self, history: History, starts: Mapping[str, KernelParameters]) -> Posteriors:
        """The posteriors of this method, fitted from these hyper-parameters on."""
        return Posteriors(history, starts)

    def _posteriors(self, history: History) -> Posteriors:
        """Those of the last turn if the history is the same."""
        if self._known is None or _has_changed(self._known[0], history):
            self._known = history, self.fit_posteriors(history, self._starts)
        return self._known[1]


class Ei(ByModel):
    """EI(x) = E[max(0, f* - f(x))]; f* is the best objective measured at full size, whatever the constraints."""

    def by_model(self, posteriors: Posteriors) -> NextRun:
        history = posteriors.history
        whole = [row for row, seen in history.measured.items() if math.isfinite(seen.objective) and not seen.killed]
        ahead = posteriors.objective.at(FULL)
        best = levels(posteriors)[whole].min() if whole else ahead.mean.min()
        worth = log_expected_improvement(ahead.mean, ahead.deviation, float(best))
        return NextRun(largest(worth, history.untried[:, -1]), FULL, "largest expected improvement")


class Eic(ByModel):
    """EIc(x) = EI(x) * P(x feasible), always at full size."""

    def by_model(self, posteriors: Posteriors) -> NextRun:
        history = posteriors.history
        best = history.best_measured()
        worth = self.weighed(log_eic(posteriors, None if best is None else float(levels(posteriors)[best])), posteriors)
        return NextRun(largest(worth, history.untried[:, -1]), FULL, "largest constrained expected improvement")

    def weighed(self, worth: Numbers, posteriors: Posteriors) -> Numbers:  # noqa: ARG002 - of the method below
        return worth


class EicPerDollar(Eic):
    """EIc(x) / E[cost(x)], always at full size."""

    def weighed(self, worth: Numbers, posteriors: Posteriors) -> Numbers:
        return worth - np.log(posteriors.expected_cost(FULL))


class EicPerDollarFromTwo(EicPerDollar):
    """The same, with two initial runs instead of four: where these are at full size, fewer of them save most."""

    first_runs = 2


def _all_about_equal(history: History) -> bool:
    """From values this close together a model would learn that all candidates are alike."""
    values = np.array([seen.objective for seen in history.observations if math.isfinite(seen.objective)])
    if len(values) < 2:
        return False
    transform = objective_transform(values, history.problem.minimize)
    near = LEAST_APART * transform.least_deviation if transform.logarithmic else 0.0
    return float(np.ptp(transform.of(values))) <= near


def _has_changed(known: History, now: History) -> bool:
    return (
        len(known.observations) != len(now.observations)
        or known.pending != now.pending
        or known.usd_per_hour is not now.usd_per_hour
    )


def largest(worth: Numbers, allowed: Flags) -> int:
    """The index of the largest among those allowed, of which there is at least one, even if all are -inf."""
    places = np.flatnonzero(allowed)
    return int(places[np.asarray(worth)[allowed].argmax()])


def share(fraction: float) -> str:
    """A fraction in words."""
    return "the full data" if fraction == FULL else f"{100 * fraction:.3g} % of the data"
