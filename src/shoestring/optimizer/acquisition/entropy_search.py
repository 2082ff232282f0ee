"""Entropy search under limits: what a run would tell about the best full-size run, whether what would be recommended
after it keeps the limits, and what it would cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoestring.optimizer.acquisition.cea import chance_kept
from shoestring.optimizer.acquisition.mf_eic import log_expected_improvement
from shoestring.optimizer.acquisition.next_incumbent import SURE, NextIncumbent, largest_of
from shoestring.optimizer.acquisition.p_opt import information, information_after, p_opt
from shoestring.optimizer.acquisition.quadrature import gauss_hermite
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.joint_model import JointBeliefs
from shoestring.optimizer.observations import FULL

MOST_REPRESENTATIVES = 50
"""Candidates among which the best is looked for."""
DRAWS = 200
"""Of the values of all of them together: what they cannot tell is the same for all runs that are compared."""
LEAST = 1e-6
"""Nats. Draws cannot tell less from nothing; then the chance and the cost decide."""
_NO_CHANCE = 1e-300


@dataclass(frozen=True)
class Variant:
    """What is left open by the idea of entropy search."""

    roots: int
    """Of the quadrature over what each quantity may measure."""
    from_now: bool
    """Does only what a run adds to what is known count? Otherwise all that is known after it."""
    within_limits: bool
    """Is the best looked for among those that keep the limits, as measured on all of the data or else as predicted?
    Otherwise among all, and models are believed against measurements."""


AS_PRINTED = Variant(roots=1, from_now=False, within_limits=False)
CORRECTED = Variant(roots=3, from_now=True, within_limits=True)
UNLIMITED = Variant(roots=3, from_now=True, within_limits=False)


class EntropySearch:
    """Of the runs of one turn; what they have in common is computed once."""

    def __init__(self, beliefs: JointBeliefs, variant: Variant) -> None:
        self._beliefs, self._variant = beliefs, variant
        history = beliefs.history
        seed = [history.problem.seed, 5, len(history.observations), len(history.pending)]
        self._draws = beliefs.objective.draws(representatives(beliefs, variant), DRAWS, seed)
        self._known = float(information(p_opt(self._draws.values))) if variant.from_now else 0.0
        self._next = NextIncumbent(beliefs, variant.roots, measured_first=variant.within_limits)

    def per_cost(self, rows: Rows, fraction: float) -> Numbers:
        """Information about the best for each unit of cost, whatever the limits.

        Paper: TrimTuner Eq. 3
        Differs from the paper: the variant may subtract what is known already, which the print omits.
        """
        self._beliefs.objective.at(fraction)  # posteriors keep what they are asked of all candidates: blocks are parts
        known = information_after(self._draws, rows, fraction, gauss_hermite(self._variant.roots))
        return np.maximum(known - self._known, LEAST) / self._beliefs.expected_cost(fraction, rows)

    def per_cost_within_limits(self, rows: Rows, fraction: float) -> Numbers:
        """The same times the chance that the next recommendation keeps all limits.  Paper: TrimTuner Eq. 5"""
        return self.per_cost(rows, fraction) * self._next.chance(rows, fraction)


def representatives(beliefs: JointBeliefs, variant: Variant) -> Rows:
    """Those candidates that may be the best at full size: with the largest expected improvement on the best predicted,
    times the chance to keep the limits if these count."""
    ahead = beliefs.objective.at(FULL)
    chance = np.ones(len(ahead.mean))
    if variant.within_limits:
        chance = chance_kept(beliefs)
        chance[list(beliefs.history.feasible)], chance[beliefs.history.infeasible] = 1.0, 0.0
    likely = chance >= min(SURE, float(chance.max()))
    gain = log_expected_improvement(ahead.mean, ahead.deviation, float(ahead.mean[likely].min()))
    return largest_of(gain + np.log(np.maximum(chance, _NO_CHANCE)), MOST_REPRESENTATIVES)
