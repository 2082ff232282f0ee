"""Which candidate is the favourite of the models, and which one to recommend."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shoestring.tuning.beliefs import Beliefs
from shoestring.tuning.candidates import Numbers
from shoestring.tuning.observations import FULL, Answer, Outlook
from shoestring.tuning.recommend import nearest_miss, of_measured

SURE = 0.8
"""A favourite keeps all limits with this chance, if any candidate does."""
_LEAST_VALUE = 1e-12
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
    """The best by the models among those sure to keep all limits; if none is sure, by value times chance.

    Paper: TrimTuner Alg. 1 l.20
    Differs from the paper: a chance of 0.8, not 0.9; a measurement at full size overrules the models.
    """
    chance, level = beliefs.log_feasible(), levels(beliefs)
    sure = chance >= math.log(SURE)
    if sure.any():
        return int(np.where(sure, level, np.inf).argmin())
    return int((chance + log_value(beliefs, level)).argmax())


def log_value(beliefs: Beliefs, level: Numbers) -> Numbers:
    """What an objective is worth, as a logarithm: an accuracy itself, and one over a loss."""
    top = beliefs.objective.scale.top
    return -level if top is None else np.log(np.maximum(top - np.exp(level), _LEAST_VALUE))


def recommended(beliefs: Beliefs) -> Answer:
    """The favourite until a run at full size has kept all limits; then the best of those, unless a prediction beats it.

    It does if its objective, two deviations worse than expected, is better, and either every limit is kept with two
    deviations to spare or value times chance is more than what was measured: a run that keeps all limits and is good
    for nothing else is not worth holding on to.
    """
    history = beliefs.history
    best = history.best_measured()
    if best is None:
        return _unproved(beliefs, favourite(beliefs))
    ahead = beliefs.objective.at(FULL)
    pessimistic = ahead.mean + DEVIATIONS * ahead.deviation
    certain = np.ones(len(pessimistic), dtype=bool)
    for constraint in history.problem.constraints:
        mean, deviation, limit = beliefs.outlook(constraint)
        room = (limit - mean) if constraint.at_most else (mean - limit)
        certain &= room >= DEVIATIONS * deviation
    standard = levels(beliefs)[best]
    worth = log_value(beliefs, pessimistic) + np.where(certain, 0.0, beliefs.log_feasible())
    worth[list(history.measured)] = -math.inf
    challenger = int(worth.argmax())
    if worth[challenger] > log_value(beliefs, np.array([standard]))[0]:
        return predicted_answer(beliefs, challenger)
    return of_measured(history, best)


def predicted_answer(beliefs: Beliefs, row: int) -> Answer:
    """A candidate that was not run on all of the data."""
    history = beliefs.history
    outlooks = tuple(
        Outlook(
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
