"""Methods that choose by entropy search: the paper's, the one it builds on, and the paper's with its faults mended."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from shoestring.optimizer.acquisition.entropy_search import AS_PRINTED, CORRECTED, UNLIMITED, EntropySearch
from shoestring.optimizer.as_printed.gp import PrintedBeliefs
from shoestring.optimizer.as_printed.incumbent import Incumbent, answer, as_printed, best_whatever_the_limits
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.filters.filters import ByCea, Filter, NoFilter, Worth
from shoestring.optimizer.gp.kernel import KernelParameters
from shoestring.optimizer.history import History
from shoestring.optimizer.joint_model import JointBeliefs
from shoestring.optimizer.methods.model_based import ByModel, share
from shoestring.optimizer.methods.protocol import NextRun
from shoestring.optimizer.methods.trimtuner import TrimTuner
from shoestring.optimizer.observations import FULL, Answer
from shoestring.optimizer.posterior import Beliefs
from shoestring.optimizer.recommendation import measured_answer

FIRST_SIZES = 4
"""Of the one configuration that the paper begins with: all below the whole, in print."""
CEA_10 = ByCea(0.1)


class TrimTunerGpAsPrinted(ByModel):
    """Constrained entropy search with the paper's Gaussian processes and CEA at 10 %.  Paper: TrimTuner Alg. 1

    Differs from the paper: each of the first runs is paid for, unless what runs them takes snapshots.
    """

    def __init__(self, choose_among: Filter = CEA_10, incumbent: Incumbent = as_printed) -> None:
        super().__init__()
        self._filter, self._incumbent = choose_among, incumbent

    def believe(self, history: History, starts: Mapping[str, KernelParameters]) -> Beliefs:
        return PrintedBeliefs(history, starts)

    def by_model(self, beliefs: Beliefs) -> NextRun:
        search = EntropySearch(beliefs, AS_PRINTED)
        return most_informative(self._filter, beliefs, search.per_cost_within_limits)

    def recommend(self, history: History) -> Answer:
        if not any(math.isfinite(seen.objective) for seen in history.observations):
            return measured_answer(history)
        beliefs = self._beliefs(history)
        return answer(beliefs, self._incumbent(beliefs))

    def first_fraction(self, history: History) -> float:
        return history.problem.smallest

    def first_run(self, history: History) -> NextRun | None:
        """One configuration drawn by lot, at four sizes.  Paper: TrimTuner Alg. 1 l.3-9"""
        fractions = history.problem.fractions
        sizes = (fractions[:-1] or (FULL,))[:FIRST_SIZES]
        asked = [*history.rows, *(row for row, _ in history.pending)]
        if len(asked) >= len(sizes):
            return None
        rng = np.random.default_rng([history.problem.seed, 3])
        row = asked[0] if asked else int(rng.integers(len(history.candidates)))
        for size in sizes:
            if history.untried[row, fractions.index(size)]:
                return NextRun(row, size, f"one configuration at {len(sizes)} sizes first: {share(size)}")
        return None


class Fabolas(TrimTunerGpAsPrinted):
    """Entropy search for each unit of cost, without regard to limits.  Paper: TrimTuner section II, FABOLAS

    Differs from the paper: hyper-parameters of greatest posterior density instead of some drawn from it; what is known
    already is subtracted; all candidates are looked at.
    """

    def __init__(self) -> None:
        super().__init__(NoFilter(), best_whatever_the_limits)

    def by_model(self, beliefs: Beliefs) -> NextRun:
        return most_informative(self._filter, beliefs, EntropySearch(beliefs, UNLIMITED).per_cost)


class TrimTunerGp(TrimTuner):
    """Our method with the paper's acquisition, corrected, in place of `mf_eic`.  Paper: TrimTuner Eq. 5, corrected

    Differs from the paper: several roots, the current entropy is subtracted, the best is looked for within the limits;
    first runs, models, anchors and recommendations are those of our method.
    """

    def __init__(self, choose_among: Filter = CEA_10) -> None:
        super().__init__()
        self._filter = choose_among

    def worth_most(self, beliefs: Beliefs, gain: Numbers) -> NextRun:  # noqa: ARG002 - it looks for the best itself
        search = EntropySearch(beliefs, CORRECTED)
        return most_informative(self._filter, beliefs, search.per_cost_within_limits)


def most_informative(among: Filter, beliefs: JointBeliefs, acquisition: Callable[[Rows, float], Numbers]) -> NextRun:
    """The run of the largest acquisition that the filter finds."""
    fractions = beliefs.history.problem.fractions
    row, place = divmod(among.best(Worth(beliefs, acquisition)), len(fractions))
    fraction = fractions[place]
    return NextRun(row, fraction, f"most to be learned about the best for its cost, on {share(fraction)}")
