"""Our method: learn from small fractions of the data, and go to all of it when that is what the money is best spent on.

The next run is the one with the largest `mf_eic`, but for two cases in which a run on all of the data is due. A
favourite that stays the favourite is run once, for nothing else can prove it. And when small runs since the last full
one have cost as much as a full one would, that one is run: predictions from small fractions need an anchor.
"""

from __future__ import annotations

import math

import numpy as np

from shoestring.optimizer.acquisition.mf_eic import best_run, log_eic
from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.history import History
from shoestring.optimizer.incumbent import favourite, levels, log_expected_value
from shoestring.optimizer.methods.model_based import ByModel, largest, share
from shoestring.optimizer.methods.protocol import Memory, NextRun
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.posterior import Beliefs
from shoestring.values import Config

SETTLED = 5
"""A favourite that stays it for so many observations in a row is run on all of the data."""
SURE = 0.8
"""The chance to keep all limits of a favourite that is expected to."""
MOST_SMALL_RUNS = 15
"""After so many runs on a part of the data, one on all of it is due, whatever it costs."""


class TrimTuner(ByModel):
    """Multi-fidelity expected improvement under constraints.  Paper: TrimTuner Alg. 1, corrected

    Differs from the paper: in the first runs, the acquisition and the models; docs/papers.md tells how and why.
    """

    gives_up = True
    most_turns = 3

    def __init__(self) -> None:
        super().__init__()
        self._favourite: Config = {}
        self._stayed, self._seen = 0, -1

    def memory(self) -> Memory:
        return {**super().memory(), "favourite": self._favourite, "stayed": self._stayed, "seen": self._seen}

    def recall(self, memory: Memory) -> None:
        super().recall(memory)
        self._favourite, self._stayed, self._seen = memory["favourite"], memory["stayed"], memory["seen"]

    def first_fraction(self, history: History) -> float:
        return history.problem.smallest

    def by_model(self, beliefs: Beliefs) -> NextRun:
        history = beliefs.history
        full_left = history.untried[:, -1]
        leader = favourite(beliefs)
        self._watch(history.candidates.configs[leader], len(history.observations))
        if self._stayed >= SETTLED and full_left[leader]:
            return NextRun(leader, FULL, f"the favourite for {self._stayed} observations: time to measure it")
        gain = self._gain(beliefs, leader)
        anchor = self._anchor(beliefs, gain)
        if anchor is not None:
            return anchor
        return self.worth_most(beliefs, gain)

    def worth_most(self, beliefs: Beliefs, gain: Numbers) -> NextRun:
        """The run to learn most from, where no rule asks for another."""
        row, fraction = best_run(beliefs, gain)
        return NextRun(row, fraction, f"most improvement to be learned for a dollar, on {share(fraction)}")

    def _gain(self, beliefs: Beliefs, leader: int) -> Numbers:
        """What each candidate promises: to improve on the best measured, else on what is predicted of the favourite.
        While full runs have only broken limits and the favourite is not sure to keep them, there is nothing to improve
        on: whatever keeps them is worth as much as it is good."""
        history = beliefs.history
        best = history.best_measured()
        if best is None and len(history.infeasible) and beliefs.log_feasible()[leader] < math.log(SURE):
            return log_expected_value(beliefs)
        return log_eic(beliefs, float(levels(beliefs)[leader if best is None else best]))

    def _watch(self, leader: Config, seen: int) -> None:
        """For how many observations has it been the favourite? Asking again without news does not count."""
        if seen != self._seen:
            self._stayed = self._stayed + 1 if leader == self._favourite else 1
            self._favourite, self._seen = leader, seen

    def _anchor(self, beliefs: Beliefs, gain: Numbers) -> NextRun | None:
        """The full run with the most expected improvement for a dollar, if small runs have cost as much by now."""
        history = beliefs.history
        if any(fraction == FULL for _, fraction in history.pending):
            return None
        small = 0
        spent = 0.0
        for observation in reversed(history.observations):
            if observation.fraction == FULL:
                break
            small += 1
            spent += beliefs.spent(observation)
        if not small:
            return None
        cost = beliefs.expected_cost(FULL)
        row = largest(gain - np.log(cost), history.untried[:, -1])
        if small < MOST_SMALL_RUNS and not spent >= cost[row]:
            return None
        return NextRun(row, FULL, f"{small} runs on parts of the data call for one on all of it")
