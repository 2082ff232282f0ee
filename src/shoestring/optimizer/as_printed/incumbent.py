"""Recommendations by the models alone: the rule as the paper prints it, and as its code has it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shoestring.optimizer.acquisition.cea import cea, chance_feasible
from shoestring.optimizer.acquisition.next_incumbent import SURE
from shoestring.optimizer.incumbent import predicted_answer
from shoestring.optimizer.observations import FULL, Answer
from shoestring.optimizer.posterior import Posteriors
from shoestring.optimizer.recommendation import nearest_miss, of_measured

Incumbent = Callable[[Posteriors], int]
"""The row of the candidate that is recommended."""


def as_printed(posteriors: Posteriors) -> int:
    """argmax of the predicted accuracy at full size, subject to P(feasible) >= 0.9.

    Paper: TrimTuner Alg. 1 l.20, as printed
    Differs from the paper: it does not say what to recommend if there is none; here argmax of CEA.
    """
    sure = chance_feasible(posteriors) >= SURE
    if not sure.any():
        return int(cea(posteriors, FULL).argmax())
    return int(np.where(sure, posteriors.objective.at(FULL).mean, math.inf).argmin())


def as_published(posteriors: Posteriors) -> int:
    """argmax of CEA at full size among the configurations that were run at any size.

    Paper: TrimTuner Alg. 1 l.20, as published in code
    """
    visited = np.unique(np.array(posteriors.history.rows, dtype=np.intp))
    return int(visited[cea(posteriors, FULL, visited).argmax()])


def best_unconstrained(posteriors: Posteriors) -> int:
    """The best prediction at full size, whatever the constraints."""
    return int(posteriors.objective.at(FULL).mean.argmin())


def answer(posteriors: Posteriors, row: int) -> Answer:
    """This candidate, with what was measured at full size, or else with what is predicted."""
    history = posteriors.history
    seen = history.measured.get(row)
    unknown = seen is None or math.isnan(seen.objective)
    found = predicted_answer(posteriors, row) if unknown else of_measured(history, row)
    if found.feasible or not history.measured:
        return found
    if history.feasible:
        return replace(found, why="by the models alone; some full-data runs satisfied every constraint")
    return replace(found, why=nearest_miss(history).why)
