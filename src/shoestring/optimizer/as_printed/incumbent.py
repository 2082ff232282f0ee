"""Recommendations by the models alone: as the paper prints the rule, and as its code has it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shoestring.optimizer.acquisition.cea import cea, chance_kept
from shoestring.optimizer.acquisition.next_incumbent import SURE
from shoestring.optimizer.incumbent import predicted_answer
from shoestring.optimizer.observations import FULL, Answer
from shoestring.optimizer.posterior import Beliefs
from shoestring.optimizer.recommendation import nearest_miss, of_measured

Incumbent = Callable[[Beliefs], int]
"""The row of the candidate that is recommended."""


def as_printed(beliefs: Beliefs) -> int:
    """The best predicted at full size among those that keep the limits with a chance of 90 %.

    Paper: TrimTuner Alg. 1 l.20, as printed
    Differs from the paper: which does not say what to recommend if there is none; here the largest constrained
    expected accuracy.
    """
    sure = chance_kept(beliefs) >= SURE
    if not sure.any():
        return int(cea(beliefs, FULL).argmax())
    return int(np.where(sure, beliefs.objective.at(FULL).mean, math.inf).argmin())


def as_published(beliefs: Beliefs) -> int:
    """The largest constrained expected accuracy at full size among the configurations that were run at any size.

    Paper: TrimTuner Alg. 1 l.20, as published in code
    """
    visited = np.unique(np.array(beliefs.history.rows, dtype=np.intp))
    return int(visited[cea(beliefs, FULL, visited).argmax()])


def best_whatever_the_limits(beliefs: Beliefs) -> int:
    """The best predicted at full size."""
    return int(beliefs.objective.at(FULL).mean.argmin())


def answer(beliefs: Beliefs, row: int) -> Answer:
    """This candidate, with what was measured of it on all of the data, or else with what is predicted."""
    history = beliefs.history
    seen = history.measured.get(row)
    unknown = seen is None or math.isnan(seen.objective)
    found = predicted_answer(beliefs, row) if unknown else of_measured(history, row)
    if found.feasible or not history.measured:
        return found
    if history.feasible:
        return replace(found, why="by the models alone; runs on all of the data have kept every limit")
    return replace(found, why=nearest_miss(history).why)
