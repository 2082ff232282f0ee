"""Which candidate is the favourite of the models, and which one to recommend."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from shoestring.optimizer.candidates import Numbers
from shoestring.optimizer.joint_model import JointBeliefs
from shoestring.optimizer.observations import FULL, Answer, ConstraintOutlook
from shoestring.optimizer.posterior import Beliefs
from shoestring.optimizer.recommendation import nearest_miss, of_measured

_LEAST_VALUE = 1e-12
_LEAST_DEVIATION = 1e-9
DEVIATIONS = 2.0
"""A prediction takes the place of a measurement only if it wins with so many deviations to spare."""


def levels(beliefs: Beliefs) -> Numbers:
    """The objective of each candidate at full size, on the model's scale (less is better): measured, else predicted."""
    level = beliefs.objective.at(FULL).mean.copy()
    for row, seen in beliefs.history.measured.items():
        if not math.isnan(seen.objective) and not seen.killed:
            level[row] = beliefs.objective.scale.of(np.array([seen.objective]))[0]
    return level


def favourite(beliefs: Beliefs) -> int:
    """The candidate of the largest expected value, where one that breaks a limit is worth nothing.

    Paper: TrimTuner Alg. 1 l.20
    Differs from the paper: not the best of those that keep the limits with a chance of 0.9. Where more of the objective
    costs more, the best of those lies just there, and is wrong one time in ten. A measurement at full size overrules
    the models.
    """
    return int(log_expected_value(beliefs).argmax())


def log_expected_value(beliefs: Beliefs) -> Numbers:
    """What using each candidate is worth, as a logarithm: nothing, if it breaks a limit."""
    deviation = beliefs.objective.at(FULL).deviation.copy()
    deviation[list(beliefs.history.feasible)] = 0.0
    return beliefs.log_feasible() + log_value(beliefs, levels(beliefs), deviation)


def log_value(beliefs: JointBeliefs, level: Numbers, deviation: Numbers | float = 0.0) -> Numbers:
    """What an objective that lies around this level is worth, as a logarithm: the expected accuracy, or one over the
    expected loss. What has no zero counts from the worst that was seen."""
    scale = beliefs.objective.scale
    if not scale.logarithmic:
        seen = np.array([seen.objective for seen in beliefs.history.observations])
        zero = float(scale.of(seen[np.isfinite(seen)]).max()) if scale.top is None else scale.top
        plain: Numbers = np.log(np.maximum(zero - level, _LEAST_VALUE))
        return plain
    log_mean = level + 0.5 * np.square(deviation)
    if scale.top is None:
        return -log_mean
    # a gap to the top is lognormal, and below 0 an accuracy cannot fall: what is left of it is a put option
    spread = np.maximum(deviation, _LEAST_DEVIATION)
    room = (math.log(scale.top) - level) / spread
    value = scale.top * ndtr(room) - np.exp(log_mean) * ndtr(room - spread)
    expected: Numbers = np.log(np.maximum(value, _LEAST_VALUE))
    return expected


def recommended(beliefs: Beliefs) -> Answer:
    """The favourite until a run at full size has kept all limits; then the best of those, unless a prediction beats it.

    It does if its objective, two deviations worse than expected, is worth more times the chance to keep all limits than
    what was measured: a run that keeps all limits and is good for nothing else is not worth holding on to.
    """
    history = beliefs.history
    best = history.best_measured()
    if best is None:
        return _unproved(beliefs, favourite(beliefs))
    ahead = beliefs.objective.at(FULL)
    worth = log_value(beliefs, ahead.mean + DEVIATIONS * ahead.deviation) + beliefs.log_feasible()
    worth[list(history.measured)] = -math.inf
    challenger = int(worth.argmax())
    if worth[challenger] > log_value(beliefs, levels(beliefs)[[best]])[0]:
        return predicted_answer(beliefs, challenger)
    return of_measured(history, best)


def predicted_answer(beliefs: Beliefs, row: int) -> Answer:
    """A candidate that was not run on all of the data."""
    history = beliefs.history
    outlooks = tuple(
        ConstraintOutlook(
            constraint,
            beliefs.predicted(constraint, row),
            False,
            float(np.exp(beliefs.log_kept(constraint)[row])),
        )
        for constraint in history.problem.constraints
    )
    value = beliefs.objective.scale.value(float(beliefs.objective.at(FULL).mean[row]))
    return Answer(history.candidates.configs[row], value, False, outlooks)


def _unproved(beliefs: Beliefs, row: int) -> Answer:
    """Nothing is proved to be feasible: the favourite, or the nearest miss if every candidate was measured to miss."""
    history = beliefs.history
    if row in history.measured:
        return nearest_miss(history)
    answer = predicted_answer(beliefs, row)
    if answer.feasible:
        return answer
    miss = nearest_miss(history).why if history.measured else "none was run on all of the data yet"
    return replace(answer, why=f"no candidate is likely to keep every limit; {miss}")
