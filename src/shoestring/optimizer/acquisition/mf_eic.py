"""What a run would be worth: the expected improvement at full size under all limits, the share of the doubt that the
run would settle, and what it would cost. All in logarithms, so that nothing underflows where little is to be won."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx, ndtr

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.posterior import Beliefs

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_FAR = 1e4
"""So many deviations below the best, 1 - u sqrt(pi/2) erfcx(u/sqrt 2) is 1/u^2 to all digits there are."""

_LEAST = 1e-300
_WORTHLESS = -1e6
"""In place of the logarithm of nothing, so that of runs that promise nothing the cheapest is still found."""
BLOCK = 192
"""Candidates that are looked at closely at a time."""


def log_expected_improvement(mean: Numbers, deviation: Numbers, best: float) -> Numbers:
    """ln E[max(0, best - f)] where less is better.  Paper: TrimTuner Eq. 1

    Differs from the paper: in logarithms, of values on the scale of the model, and minimised.
    """
    u = (best - mean) / deviation
    below = np.minimum(u, -1.0)
    z = np.minimum(-below, _FAR)
    tail = np.log1p(-z * math.sqrt(math.pi / 2.0) * erfcx(z / math.sqrt(2.0)))
    tail = np.where(below < -_FAR, -2.0 * np.log(-below), tail) - 0.5 * below**2 - _LOG_SQRT_2PI
    above = np.maximum(u, -1.0)
    head = np.log(np.exp(-0.5 * above**2 - _LOG_SQRT_2PI) + above * ndtr(above))
    gain: Numbers = np.log(deviation) + np.where(u < -1.0, tail, head)
    return gain


def log_eic(beliefs: Beliefs, best: float | None) -> Numbers:
    """Expected improvement on `best` at full size times the chance to keep all limits. Where nothing is known to keep
    them (`best` is None), the chance alone: first find something feasible."""
    chance = beliefs.log_feasible()
    if best is None:
        return chance
    ahead = beliefs.objective.at(FULL)
    return chance + log_expected_improvement(ahead.mean, ahead.deviation, best)


def log_mf_eic(beliefs: Beliefs, gain: Numbers, rows: Rows) -> Numbers:
    """For some candidates and each fraction: ln EIc(x, 1) + ln rho^2(x, s) - ln E[cost(x, s)], where `gain` has the
    first term of all candidates."""
    fractions = beliefs.history.problem.fractions
    worth = np.empty((len(rows), len(fractions)))
    for column, fraction in enumerate(fractions):
        settled = np.log(np.maximum(beliefs.objective.squared_correlation(fraction, rows), _LEAST))
        worth[:, column] = gain[rows] + settled - np.log(beliefs.expected_cost(fraction, rows))
    return worth


def best_run(beliefs: Beliefs, gain: Numbers) -> tuple[int, float]:
    """The candidate and fraction of the largest `log_mf_eic` among those not tried yet, where `gain` says what each
    candidate promises at full size.

    No run can be worth more than if it settled all doubt (rho^2 = 1) for the median of its cost. This bound needs means
    only. Candidates are looked at in its order, and no further than to where it falls below the best found.
    """
    history = beliefs.history
    fractions, untried = history.problem.fractions, history.untried
    gain = np.maximum(gain, _WORTHLESS)
    bound = np.full(len(gain), -math.inf)
    for column, fraction in enumerate(fractions):
        at_most = np.where(untried[:, column], gain - np.log(beliefs.least_expected_cost(fraction)), -math.inf)
        bound = np.maximum(bound, at_most)
    order = np.argsort(-bound, kind="stable")
    winner, most = (int(order[0]), fractions[-1]), -math.inf
    for begin in range(0, len(order), BLOCK):
        rows = order[begin : begin + BLOCK]
        if bound[rows[0]] <= most:
            break
        worth = np.where(untried[rows], log_mf_eic(beliefs, gain, rows), -math.inf)
        place, which = divmod(int(worth.argmax()), len(fractions))
        if worth[place, which] > most:
            winner, most = (int(rows[place]), fractions[which]), float(worth[place, which])
    return winner
