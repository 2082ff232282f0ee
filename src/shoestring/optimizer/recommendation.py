"""Answers from full-data runs: the best that satisfies every constraint, else the nearest miss."""

from __future__ import annotations

import math
from dataclasses import replace

from shoestring.errors import SpecError
from shoestring.optimizer.history import History
from shoestring.optimizer.observations import Answer, ConstraintOutlook, Observation
from shoestring.space.constraints import Constraint


def measured_answer(history: History) -> Answer:
    """The best feasible full-data run; if there is none, the one that missed by least, and by how much."""
    best = history.best_measured()
    if best is not None:
        return of_measured(history, best)
    return nearest_miss(history)


def of_measured(history: History, row: int) -> Answer:
    seen = history.measured[row]
    outlooks = tuple(_outlook(constraint, seen) for constraint in history.problem.constraints)
    return Answer(history.candidates.configs[row], seen.objective, True, outlooks)


def nearest_miss(history: History) -> Answer:
    """No candidate is known to satisfy every constraint: of those measured, the one that violates them by least."""
    if not history.measured:
        raise SpecError(
            "no full-data run has been reported yet, so there is nothing to recommend",
            hint="continue to ask, and tell the results",
        )

    def missed(row: int) -> tuple[bool, float, float]:
        seen = history.measured[row]
        misses = [constraint.miss(_value(constraint, seen)) for constraint in history.problem.constraints]
        unknown = seen.killed or math.isnan(seen.objective)
        sign = 1.0 if history.problem.minimize else -1.0
        return unknown, max(misses, default=0.0), 0.0 if unknown else sign * seen.objective

    row = min(history.measured, key=missed)
    nearest, seen = of_measured(history, row), history.measured[row]
    broken = ", ".join(str(outlook) for outlook in nearest.constraints if outlook.probability < 1.0)
    if seen.killed:
        broken = f"was killed at a limit ({broken})" if broken else "was killed at a limit"
    elif math.isnan(seen.objective):
        broken = "diverged"
    else:
        broken = f"violates {broken}"
    return replace(nearest, why=f"no run so far satisfies every constraint; the nearest miss {broken}")


def _value(constraint: Constraint, seen: Observation) -> float:
    return seen.metrics.get(constraint.metric, math.nan)


def _outlook(constraint: Constraint, seen: Observation) -> ConstraintOutlook:
    return ConstraintOutlook(constraint, _value(constraint, seen), True, 1.0 if seen.satisfies(constraint) else 0.0)
