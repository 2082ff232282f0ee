"""Our method: learn from small data fractions, and use the full data when that is the best use of the money.

The next run is the one with the largest `mf_eic`, but for three cases in which a full-data run is due. An incumbent
that stays the same is run once: nothing else can prove it. When small runs since the last full one have cost as much as
a full one would, that one is run: predictions from small fractions need an anchor. And if no other run will follow and
none was on the full data, the incumbent is run there: a search should not end with a prediction alone.
"""

from __future__ import annotations

import math

import numpy as np

from shoestring.optimizer.acquisition.mf_eic import best_run, log_eic
from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.history import History
from shoestring.optimizer.incumbent import incumbent_row, levels, log_expected_value
from shoestring.optimizer.methods.model_based import ByModel, largest, share
from shoestring.optimizer.methods.protocol import Memory, NextRun
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.posterior import Posteriors
from shoestring.values import Config

STABLE = 5
"""An incumbent that stays the same for so many observations in a row is run on the full data."""
SURE = 0.8
"""The chance to satisfy all constraints from which an incumbent counts as feasible."""
MOST_SMALL_RUNS = 15
"""After so many runs on a data fraction, a full-data run is due, whatever it costs."""


class TrimTuner(ByModel):
    """argmax of MF-EIc(x, s) = EI(x, 1) P(x feasible) rho^2(x, s) / E[cost(x, s)].  Paper: TrimTuner Alg. 1, corrected

    Differs from the paper: in the initial design, the acquisition and the models; docs/papers.md says how and why.
    """

    stops_early = True
    most_turns = 3

    def __init__(self) -> None:
        super().__init__()
        self._incumbent: Config = {}
        self._stayed, self._seen = 0, -1

    def memory(self) -> Memory:
        return {**super().memory(), "favourite": self._incumbent, "stayed": self._stayed, "seen": self._seen}

    def recall(self, memory: Memory) -> None:
        super().recall(memory)
        self._incumbent, self._stayed, self._seen = memory["favourite"], memory["stayed"], memory["seen"]

    def first_fraction(self, history: History) -> float:
        return history.problem.smallest

    def by_model(self, posteriors: Posteriors) -> NextRun:
        history = posteriors.history
        full_left = history.untried[:, -1]
        incumbent = incumbent_row(posteriors)
        self._watch(history.candidates.configs[incumbent], len(history.observations))
        if self._stayed >= STABLE and full_left[incumbent]:
            return NextRun(incumbent, FULL, f"incumbent for {self._stayed} observations: measured on the full data")
        if history.last and not history.measured and not any(fraction == FULL for _, fraction in history.pending):
            return NextRun(incumbent, FULL, "the last run: the incumbent is measured on the full data")
        gain = self._gain(posteriors, incumbent)
        anchor = self._anchor(posteriors, gain)
        if anchor is not None:
            return anchor
        return self.worth_most(posteriors, gain)

    def worth_most(self, posteriors: Posteriors, gain: Numbers) -> NextRun:
        """The run of the largest acquisition, where no rule requires another."""
        row, fraction = best_run(posteriors, gain)
        return NextRun(row, fraction, f"largest expected improvement per dollar (MF-EIc), on {share(fraction)}")

    def _gain(self, posteriors: Posteriors, incumbent: int) -> Numbers:
        """ln EIc of each candidate, over the best measured, else over the prediction of the incumbent. While all full
        runs violated a constraint and the incumbent is not sure to be feasible, there is nothing to improve on: then
        ln E[value] of a feasible candidate."""
        history = posteriors.history
        best = history.best_measured()
        if best is None and len(history.infeasible) and posteriors.log_feasible()[incumbent] < math.log(SURE):
            return log_expected_value(posteriors)
        return log_eic(posteriors, float(levels(posteriors)[incumbent if best is None else best]))

    def _watch(self, incumbent: Config, seen: int) -> None:
        """For how many observations has it been the incumbent? Asking again without a new one does not count."""
        if seen != self._seen:
            self._stayed = self._stayed + 1 if incumbent == self._incumbent else 1
            self._incumbent, self._seen = incumbent, seen

    def _anchor(self, posteriors: Posteriors, gain: Numbers) -> NextRun | None:
        """The full-data run with the most expected improvement per dollar, if small runs have cost as much by now."""
        history = posteriors.history
        if any(fraction == FULL for _, fraction in history.pending):
            return None
        small = 0
        spent = 0.0
        for observation in reversed(history.observations):
            if observation.fraction == FULL:
                break
            small += 1
            spent += posteriors.spent(observation)
        if not small:
            return None
        cost = posteriors.expected_cost(FULL)
        row = largest(gain - np.log(cost), history.untried[:, -1])
        if small < MOST_SMALL_RUNS and not spent >= cost[row]:
            return None
        return NextRun(row, FULL, f"anchor on the full data after {small} runs on data fractions")
