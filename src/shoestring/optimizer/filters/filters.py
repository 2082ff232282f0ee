"""Filters: the acquisition function is expensive, so something cheaper decides for which runs it is computed.

A filter gets the acquisition of a turn as `LazyAcquisition` and returns the best run that it found. It may evaluate a
share beta of the runs that were not tried yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shoestring.optimizer.acquisition.cea import cea
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.joint_model import JointPosteriors

BETA = 0.1


class LazyAcquisition:
    """The acquisition of every run, computed on demand, and once.

    Runs are numbered: row x number of fractions + place of the fraction.
    """

    def __init__(self, posteriors: JointPosteriors, acquisition: Callable[[Rows, float], Numbers]) -> None:
        history = posteriors.history
        self.posteriors = posteriors
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
        acquisition: Numbers = self._known[runs]
        return acquisition

    @property
    def evaluated(self) -> int:
        return int(np.isfinite(self._known).sum())

    def knows(self, runs: Rows) -> bool:
        """Were all of these evaluated?"""
        return not np.isnan(self._known[runs]).any()

    def best_of(self, runs: Rows) -> int:
        """The run of the largest acquisition among these."""
        return int(runs[self(runs).argmax()])

    def best_known(self) -> int:
        """The same among all that were evaluated."""
        return int(np.nanargmax(self._known))


class Filter(Protocol):
    def best(self, acquisition: LazyAcquisition) -> int:
        """The number of the run with the largest acquisition found."""


def allowance(acquisition: LazyAcquisition, beta: float) -> int:
    """ceil(beta * untried), at least 1: how many runs may be evaluated."""
    return max(1, math.ceil(beta * len(acquisition.untried)))


class NoFilter:
    """All runs are evaluated."""

    def best(self, acquisition: LazyAcquisition) -> int:
        return acquisition.best_of(acquisition.untried)


@dataclass(frozen=True)
class ByCea:
    """Those with the largest CEA.  Paper: TrimTuner Alg. 1 l.12"""

    beta: float = BETA

    def best(self, acquisition: LazyAcquisition) -> int:
        promise = np.stack(
            [cea(acquisition.posteriors, fraction) for fraction in acquisition.fractions], axis=1
        ).ravel()
        order = np.argsort(-promise[acquisition.untried], kind="stable")
        return acquisition.best_of(acquisition.untried[order[: allowance(acquisition, self.beta)]])


@dataclass(frozen=True)
class ByRandom:
    """Some, sampled at random.  Paper: TrimTuner Table IV, random"""

    beta: float = BETA

    def best(self, acquisition: LazyAcquisition) -> int:
        return acquisition.best_of(
            self._rng(acquisition).permutation(acquisition.untried)[: allowance(acquisition, self.beta)]
        )

    @staticmethod
    def _rng(acquisition: LazyAcquisition) -> np.random.Generator:
        history = acquisition.posteriors.history
        return np.random.default_rng([history.problem.seed, 6, len(history.observations), len(history.pending)])
