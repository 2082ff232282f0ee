"""Entropy search by ensembles of trees: as the paper prints it, and with its faults mended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from shoestring.optimizer.as_printed.gp import PrintedBeliefs
from shoestring.optimizer.as_printed.trees import PrintedTreeBelief
from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.gp.kernel import KernelParameters
from shoestring.optimizer.history import Flags, History
from shoestring.optimizer.methods.entropy import TrimTunerGp, TrimTunerGpAsPrinted
from shoestring.optimizer.outcome_model import OutcomeData, OutcomePosterior, Trend
from shoestring.optimizer.posterior import Beliefs
from shoestring.optimizer.transforms import Transform
from shoestring.optimizer.trees.posterior import TreeBelief


class TreeBeliefs(Beliefs):
    """What trees believe of each quantity. They are grown anew at every turn: there are no shapes to go on from."""

    @property
    def shapes(self) -> dict[str, KernelParameters]:
        return {}

    def _belief(
        self, name: str, told: Flags, levels: Numbers, at_least: Flags, scale: Transform, trend: Trend
    ) -> OutcomePosterior:
        measured, history = _measured(self.history, told, levels, at_least), self.history
        smallest = min(history.problem.smallest, float(np.exp(measured.log_s.min(initial=0.0))))
        belief = TreeBelief(measured, scale, trend, history.candidates, smallest, _seed(history, name))
        return cast(OutcomePosterior, belief)  # it answers all that methods of this module ask


class PrintedTreeBeliefs(PrintedBeliefs):
    """The same by the trees of the paper."""

    @property
    def shapes(self) -> dict[str, KernelParameters]:
        return {}

    def _belief(
        self, name: str, told: Flags, levels: Numbers, at_least: Flags, scale: Transform, trend: Trend
    ) -> OutcomePosterior:
        measured, history = _measured(self.history, told, levels, at_least), self.history
        return cast(OutcomePosterior, PrintedTreeBelief(measured, scale, history.candidates, _seed(history, name)))


class TrimTunerDt(TrimTunerGp):
    """Our method with the paper's acquisition, corrected, and with trees that are joint samples without a trend."""

    def believe(self, history: History, starts: Mapping[str, KernelParameters]) -> Beliefs:
        return TreeBeliefs(history, starts)


class TrimTunerDtAsPrinted(TrimTunerGpAsPrinted):
    """The paper's method with the paper's trees."""

    def believe(self, history: History, starts: Mapping[str, KernelParameters]) -> Beliefs:
        return PrintedTreeBeliefs(history, starts)


def _measured(history: History, told: Flags, levels: Numbers, at_least: Flags) -> OutcomeData:
    rows = np.array(history.rows, dtype=np.intp)[told]
    log_s = np.log([seen.fraction for seen in history.observations])[told]
    return OutcomeData(rows, log_s, levels[told], at_least[told])


def _seed(history: History, name: str) -> list[int]:
    """Other trees for each quantity and at every turn."""
    return [history.problem.seed, 7, len(history.observations), *name.encode()]
