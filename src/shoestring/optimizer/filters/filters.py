"""Of which runs the acquisition is computed: it is dear, so something cheaper decides where it is worth looking.

A filter gets the acquisition of a turn as `Worth` and answers with the best run that it found. It may look at a share
beta of the runs that were not tried yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shoestring.optimizer.acquisition.cea import cea
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.joint_model import JointBeliefs

BETA = 0.1


class Worth:
    """The acquisition of every run, computed where it is asked for, and once.

    Runs are numbered: row x number of fractions + place of the fraction.
    """

    def __init__(self, beliefs: JointBeliefs, acquisition: Callable[[Rows, float], Numbers]) -> None:
        history = beliefs.history
        self.beliefs = beliefs
        self.fractions = history.problem.fractions
        self.untried: Rows = np.flatnonzero(history.untried)
        self._acquisition = acquisition
        self._known = np.full(history.untried.size, math.nan)

    def __call__(self, runs: Rows) -> Numbers:
        unknown = np.unique(runs[np.isnan(self._known[runs])])
        for place, fraction in enumerate(self.fractions):
            chosen = unknown[unknown % len(self.fractions) == place]
            if len(chosen):
                self._known[chosen] = self._acquisition(chosen // len(self.fractions), fraction)
        worth: Numbers = self._known[runs]
        return worth

    @property
    def looked_at(self) -> int:
        return int(np.isfinite(self._known).sum())

    def knows(self, runs: Rows) -> bool:
        """Were all of these looked at?"""
        return not np.isnan(self._known[runs]).any()

    def best_of(self, runs: Rows) -> int:
        """The run of the largest acquisition among these."""
        return int(runs[self(runs).argmax()])

    def best_known(self) -> int:
        """The same among all that were looked at."""
        return int(np.nanargmax(self._known))


class Filter(Protocol):
    def best(self, worth: Worth) -> int:
        """The number of the run with the largest acquisition found."""


def allowance(worth: Worth, beta: float) -> int:
    """How many runs may be looked at: this share of the untried ones, at least one."""
    return max(1, math.ceil(beta * len(worth.untried)))


class NoFilter:
    """All runs are looked at."""

    def best(self, worth: Worth) -> int:
        return worth.best_of(worth.untried)


@dataclass(frozen=True)
class ByCea:
    """Those with the largest constrained expected accuracy.  Paper: TrimTuner Alg. 1 l.12"""

    beta: float = BETA

    def best(self, worth: Worth) -> int:
        promise = np.stack([cea(worth.beliefs, fraction) for fraction in worth.fractions], axis=1).ravel()
        order = np.argsort(-promise[worth.untried], kind="stable")
        return worth.best_of(worth.untried[order[: allowance(worth, self.beta)]])


@dataclass(frozen=True)
class ByLot:
    """Some, drawn by lot.  Paper: TrimTuner Table IV, random"""

    beta: float = BETA

    def best(self, worth: Worth) -> int:
        return worth.best_of(self._rng(worth).permutation(worth.untried)[: allowance(worth, self.beta)])

    @staticmethod
    def _rng(worth: Worth) -> np.random.Generator:
        history = worth.beliefs.history
        return np.random.default_rng([history.problem.seed, 6, len(history.observations), len(history.pending)])
