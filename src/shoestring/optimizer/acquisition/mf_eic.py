"""MF-EIc, multi-fidelity expected improvement under constraints, per unit of cost:

    MF-EIc(x, s) = EI(x, 1) * P(x feasible) * rho^2(x, s) / E[cost(x, s)]

rho^2 is the squared correlation of a measurement on the data fraction s with the value at full size: the share of the
variance that the run would remove. All in logarithms, so that nothing underflows where the improvement is small.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx, ndtr

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.posterior import Posteriors

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_FAR = 1e4
"""So many deviations below the best, 1 - u sqrt(pi/2) erfcx(u/sqrt 2) is 1/u^2 to machine precision."""

_LEAST = 1e-300
_WORTHLESS = -1e6
"""In place of ln 0, so that among runs without any expected gain the cheapest is still found."""
BLOCK = 192
"""Candidates that are evaluated at a time."""


def log_expected_improvement(mean: Numbers, deviation: Numbers, best: float) -> Numbers:
    """ln EI(x), EI(x) = E[max(0, best - f(x))] = deviation * (phi(u) + u Phi(u)), u = (best - mean) / deviation.

    Paper: TrimTuner Eq. 1
    Differs from the paper: in logarithms, of transformed values, and minimised.
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


def log_eic(posteriors: Posteriors, best: float | None) -> Numbers:
    """ln EIc(x) = ln EI(x, 1) + ln P(x feasible). Without a feasible candidate (`best` is None), ln P(feasible) alone:
    first find something feasible."""
    chance = posteriors.log_feasible()
    if best is None:
        return chance
    ahead = posteriors.objective.at(FULL)
    return chance + log_expected_improvement(ahead.mean, ahead.deviation, best)


def log_mf_eic(posteriors: Posteriors, gain: Numbers, rows: Rows) -> Numbers:
    """ln EIc(x, 1) + ln rho^2(x, s) - ln E[cost(x, s)], for some candidates and each fraction; `gain` has the first
    term of all candidates."""
    fractions = posteriors.history.problem.fractions
    worth = np.empty((len(rows), len(fractions)))
    for column, fraction in enumerate(fractions):
        correlation = np.log(np.maximum(posteriors.objective.squared_correlation(fraction, rows), _LEAST))
        worth[:, column] = gain[rows] + correlation - np.log(posteriors.expected_cost(fraction, rows))
    return worth


def best_run(posteriors: Posteriors, gain: Numbers) -> tuple[int, float]:
    """The candidate and fraction of the largest `log_mf_eic` among those not tried yet; `gain` is ln EIc of each
    candidate at full size.

    Upper bound of a run: rho^2 = 1, at the median of its cost. It needs means only. Candidates are evaluated in the
    order of the bound, and no further than to where it falls below the best found.
    """
    history = posteriors.history
    fractions, untried = history.problem.fractions, history.untried
    gain = np.maximum(gain, _WORTHLESS)
    bound = np.full(len(gain), -math.inf)
    for column, fraction in enumerate(fractions):
        at_most = np.where(untried[:, column], gain - np.log(posteriors.least_expected_cost(fraction)), -math.inf)
        bound = np.maximum(bound, at_most)
    order = np.argsort(-bound, kind="stable")
    winner, most = (int(order[0]), fractions[-1]), -math.inf
    for begin in range(0, len(order), BLOCK):
        rows = order[begin : begin + BLOCK]
        if bound[rows[0]] <= most:
            break
        worth = np.where(untried[rows], log_mf_eic(posteriors, gain, rows), -math.inf)
        place, which = divmod(int(worth.argmax()), len(fractions))
        if worth[place, which] > most:
            winner, most = (int(rows[place]), fractions[which]), float(worth[place, which])
    return winner
