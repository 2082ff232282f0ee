"""Entropy search methods: the paper's, the one it builds on (FABOLAS), and the paper's, corrected."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from shoestring.optimizer.acquisition.entropy_search import AS_PRINTED, CORRECTED, UNCONSTRAINED, EntropySearch
from shoestring.optimizer.as_printed.gp import PrintedPosteriors
from shoestring.optimizer.as_printed.incumbent import Incumbent, answer, as_printed, best_unconstrained
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.filters.filters import ByCea, Filter, LazyAcquisition, NoFilter
from shoestring.optimizer.gp.kernel import KernelParameters
from shoestring.optimizer.history import History
from shoestring.optimizer.joint_model import JointPosteriors
from shoestring.optimizer.methods.model_based import ByModel, share
from shoestring.optimizer.methods.protocol import NextRun
from shoestring.optimizer.methods.trimtuner import TrimTuner
from shoestring.optimizer.observations import FULL, Answer
from shoestring.optimizer.posterior import Posteriors
from shoestring.optimizer.recommendation import measured_answer

FIRST_SIZES = 4
"""Data fractions of the paper's initial configuration, all below full size."""
CEA_10 = ByCea(0.1)


class TrimTunerGpAsPrinted(ByModel):
    """Constrained entropy search with the paper's Gaussian processes and CEA at 10 %.  Paper: TrimTuner Alg. 1

    Differs from the paper: each of the initial runs is paid for, unless code reports smaller fractions on its way.
    """

    def __init__(self, choose_among: Filter = CEA_10, incumbent: Incumbent = as_printed) -> None:
        super().__init__()
        self._filter, self._incumbent = choose_among, incumbent

    def fit_posteriors(self, history: History, starts: Mapping[str, KernelParameters]) -> Posteriors:
        return PrintedPosteriors(history, starts)

    def by_model(self, posteriors: Posteriors) -> NextRun:
        search = EntropySearch(posteriors, AS_PRINTED)
        return most_informative(self._filter, posteriors, search.per_cost_constrained)

    def recommend(self, history: History) -> Answer:
        if not any(math.isfinite(seen.objective) for seen in history.observations):
            return measured_answer(history)
        posteriors = self._posteriors(history)
        return answer(posteriors, self._incumbent(posteriors))

    def first_fraction(self, history: History) -> float:
        return history.problem.smallest

    def first_run(self, history: History) -> NextRun | None:
        """One configuration sampled at random, at four data fractions.  Paper: TrimTuner Alg. 1 l.3-9

        The largest comes first: its run may pass the smaller ones and report them, and then only it is paid for. After
        as many runs of several configurations, told from elsewhere, it is left out.
        """
        fractions = history.problem.fractions
        sizes = first_sizes(fractions)
        begun = [*history.rows, *(row for row, _ in history.pending)]
        rng = np.random.default_rng([history.problem.seed, 3])
        row = begun[0] if begun else int(rng.integers(len(history.candidates)))
        if len(begun) >= len(sizes) and any(other != row for other in begun):
            return None
        for size in reversed(sizes):
            if history.untried[row, fractions.index(size)]:
                return NextRun(
                    row, size, f"initial design: one configuration at {len(sizes)} data sizes, here {share(size)}"
                )
        return None


def first_sizes(fractions: Sequence[float]) -> list[float]:
    """The sizes of the initial configuration, ascending: all below full size, or of more than four the smallest, the
    largest and two between."""
    below = fractions[:-1] or (FULL,)
    places = np.linspace(0, len(below) - 1, min(FIRST_SIZES, len(below))).round().astype(int)
    return [below[place] for place in places]


class Fabolas(TrimTunerGpAsPrinted):
    """Entropy search per unit of cost, without constraints.  Paper: TrimTuner section II, FABOLAS

    Differs from the paper: maximum a posteriori hyper-parameters instead of samples of the posterior; the current
    information is subtracted; the acquisition is computed for all candidates.
    """

    def __init__(self) -> None:
        super().__init__(NoFilter(), best_unconstrained)

    def by_model(self, posteriors: Posteriors) -> NextRun:
        return most_informative(self._filter, posteriors, EntropySearch(posteriors, UNCONSTRAINED).per_cost)


class TrimTunerGp(TrimTuner):
    """Our method with the paper's acquisition, corrected, in place of `mf_eic`.  Paper: TrimTuner Eq. 5, corrected

    Differs from the paper: several roots, the current entropy is subtracted, the best is sought among feasible
    candidates; initial design, models, anchors and recommendations are those of our method.
    """

    def __init__(self, choose_among: Filter = CEA_10) -> None:
        super().__init__()
        self._filter = choose_among

    def worth_most(self, posteriors: Posteriors, gain: Numbers) -> NextRun:  # noqa: ARG002 - it finds the best itself
        search = EntropySearch(posteriors, CORRECTED)
        return most_informative(self._filter, posteriors, search.per_cost_constrained)


def most_informative(
    among: Filter, posteriors: JointPosteriors, acquisition: Callable[[Rows, float], Numbers]
) -> NextRun:
    """The run of the largest acquisition that the filter finds."""
    fractions = posteriors.history.problem.fractions
    row, place = divmod(among.best(LazyAcquisition(posteriors, acquisition)), len(fractions))
    fraction = fractions[place]
    return NextRun(row, fraction, f"largest information gain about the optimum per dollar, on {share(fraction)}")
