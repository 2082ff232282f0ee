"""Entropy search with ensembles of trees: as the paper prints it, and corrected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from shoestring.optimizer.as_printed.gp import PrintedPosteriors
from shoestring.optimizer.as_printed.trees import PrintedTreePosterior
from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.gp.kernel import KernelParameters
from shoestring.optimizer.history import Flags, History
from shoestring.optimizer.methods.entropy import TrimTunerGp, TrimTunerGpAsPrinted
from shoestring.optimizer.outcome_model import OutcomeData, OutcomePosterior, Trend
from shoestring.optimizer.posterior import Posteriors
from shoestring.optimizer.transforms import Transform
from shoestring.optimizer.trees.posterior import TreePosterior


class TreePosteriors(Posteriors):
    """Posteriors by trees. They are grown anew at every turn: there are no hyper-parameters to start from."""

    @property
    def shapes(self) -> dict[str, KernelParameters]:
        return {}

    def _posterior(
        self, name: str, observed: Flags, levels: Numbers, at_least: Flags, transform: Transform, trend: Trend
    ) -> OutcomePosterior:
        measured, history = _measured(self.history, observed, levels, at_least), self.history
        smallest = min(history.problem.smallest, float(np.exp(measured.log_s.min(initial=0.0))))
        posterior = TreePosterior(measured, transform, trend, history.candidates, smallest, _seed(history, name))
        return cast(OutcomePosterior, posterior)  # it has all that methods of this module use


class PrintedTreePosteriors(PrintedPosteriors):
    """The same by the trees of the paper."""

    @property
    def shapes(self) -> dict[str, KernelParameters]:
        return {}

    def _posterior(
        self, name: str, observed: Flags, levels: Numbers, at_least: Flags, transform: Transform, trend: Trend
    ) -> OutcomePosterior:
        del trend  # the paper's trees have none
        measured, history = _measured(self.history, observed, levels, at_least), self.history
        return cast(
            OutcomePosterior, PrintedTreePosterior(measured, transform, history.candidates, _seed(history, name))
        )


class TrimTunerDt(TrimTunerGp):
    """Our method with the paper's acquisition, corrected, and with trees as joint samples, the trend removed."""

    def fit_posteriors(self, history: History, starts: Mapping[str, KernelParameters]) -> Posteriors:
        return TreePosteriors(history, starts)


class TrimTunerDtAsPrinted(TrimTunerGpAsPrinted):
    """The paper's method with the paper's trees."""

    def fit_posteriors(self, history: History, starts: Mapping[str, KernelParameters]) -> Posteriors:
        return PrintedTreePosteriors(history, starts)


def _measured(history: History, observed: Flags, levels: Numbers, at_least: Flags) -> OutcomeData:
    rows = np.array(history.rows, dtype=np.intp)[observed]
    log_s = np.log([seen.fraction for seen in history.observations])[observed]
    return OutcomeData(rows, log_s, levels[observed], at_least[observed])


def _seed(history: History, name: str) -> list[int]:
    """Other trees for each outcome and at every turn."""
    return [history.problem.seed, 7, len(history.observations), *name.encode()]
