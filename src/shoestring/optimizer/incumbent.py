"""Which candidate is the incumbent, and which one to recommend."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.joint_model import JointPosteriors
from shoestring.optimizer.observations import FULL, Answer, ConstraintOutlook
from shoestring.optimizer.posterior import Posteriors
from shoestring.optimizer.recommendation import nearest_miss, of_measured

_LEAST_VALUE = 1e-12
_LEAST_DEVIATION = 1e-9
DEVIATIONS = 2.0
"""A prediction replaces a measurement only if it wins with so many deviations to spare."""


def levels(posteriors: Posteriors) -> Numbers:
    """The transformed objective of each candidate at full size (less is better): measured, else predicted."""
    level = posteriors.objective.at(FULL).mean.copy()
    for row, seen in posteriors.history.measured.items():
        if not math.isnan(seen.objective) and not seen.killed:
            level[row] = posteriors.objective.transform.of(np.array([seen.objective]))[0]
    return level


def incumbent_row(posteriors: Posteriors) -> int:
    """argmax over x of P(x feasible) * E[value(x)]: an infeasible candidate is worth nothing.

    Paper: TrimTuner Alg. 1 l.20
    Differs from the paper: not the best of those with P(feasible) >= 0.9. Where a better objective costs more, the best
    of those lies just there, and is wrong one time in ten. A measurement at full size overrules the models.
    """
    return int(log_expected_value(posteriors).argmax())


def log_expected_value(posteriors: Posteriors) -> Numbers:
    """ln P(x feasible) + ln E[value(x)] of each candidate."""
    deviation = posteriors.objective.at(FULL).deviation.copy()
    deviation[list(posteriors.history.feasible)] = 0.0
    return posteriors.log_feasible() + log_value(posteriors, levels(posteriors), deviation)


def log_value(posteriors: JointPosteriors, level: Numbers, deviation: Numbers | float = 0.0) -> Numbers:
    """ln E[value] of an objective around this level: value is the accuracy, or one over the loss. An objective without
    a natural zero counts from the worst observed."""
    transform = posteriors.objective.transform
    if not transform.logarithmic:
        seen = np.array([seen.objective for seen in posteriors.history.observations])
        zero = float(transform.of(seen[np.isfinite(seen)]).max()) if transform.top is None else transform.top
        plain: Numbers = np.log(np.maximum(zero - level, _LEAST_VALUE))
        return plain
    log_mean = level + 0.5 * np.square(deviation)
    if transform.top is None:
        return -log_mean
    # the gap to the top is lognormal, and an accuracy is at least 0: E[max(0, top - gap)] is a put option
    spread = np.maximum(deviation, _LEAST_DEVIATION)
    room = (math.log(transform.top) - level) / spread
    value = transform.top * ndtr(room) - np.exp(log_mean) * ndtr(room - spread)
    expected: Numbers = np.log(np.maximum(value, _LEAST_VALUE))
    return expected


def recommended(posteriors: Posteriors) -> Answer:
    """The incumbent until a full-size run is feasible; then the best of those, unless a prediction beats it.

    It does if its objective, two deviations worse than expected, times P(feasible), is worth more than what was
    measured: a feasible run with a poor objective is not worth keeping.
    """
    history = posteriors.history
    best = history.best_measured()
    if best is None:
        return _unproved(posteriors, incumbent_row(posteriors))
    ahead = posteriors.objective.at(FULL)
    worth = log_value(posteriors, ahead.mean + DEVIATIONS * ahead.deviation) + posteriors.log_feasible()
    worth[list(history.measured)] = -math.inf
    challenger = int(worth.argmax())
    if worth[challenger] > log_value(posteriors, levels(posteriors)[[best]])[0]:
        return predicted_answer(posteriors, challenger)
    return of_measured(history, best)


def predicted_answer(posteriors: Posteriors, row: int) -> Answer:
    """A candidate without a full-data run."""
    history = posteriors.history
    outlooks = tuple(
        ConstraintOutlook(
            constraint,
            posteriors.predicted(constraint, row),
            False,
            float(np.exp(posteriors.log_satisfied(constraint)[row])),
        )
        for constraint in history.problem.constraints
    )
    value = posteriors.objective.transform.value(float(posteriors.objective.at(FULL).mean[row]))
    return Answer(history.candidates.configs[row], value, False, outlooks)


def _unproved(posteriors: Posteriors, row: int) -> Answer:
    """No feasible run yet: the incumbent, or the nearest miss if every candidate was measured to be infeasible."""
    history = posteriors.history
    if row in history.measured:
        return nearest_miss(history)
    answer = predicted_answer(posteriors, row)
    if answer.feasible:
        return answer
    miss = nearest_miss(history).why if history.measured else "none was run on the full data yet"
    return replace(answer, why=f"no candidate is likely to satisfy every constraint; {miss}")
