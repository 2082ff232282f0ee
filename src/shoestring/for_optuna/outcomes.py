"""What the optimizer learns from a finished trial of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError
from shoestring.space.constraints import COST, SECONDS, Constraint
from shoestring.values import as_fraction, as_number

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

OBJECTIVE = "value"
"""The name of a study's objective, which has none in Optuna."""
FRACTION = "fraction"
"""The user attribute with the data fraction of a trial; the full data if it is absent."""
FULL = 1.0
CONSTRAINTS = "constraints"
"""The system attribute of what `constraints_func` returned; with a colon and a name, of `set_constraint`."""


@dataclass(frozen=True)
class Outcome:
    """The result of a trial, as `Optimizer.tell` takes it."""

    fraction: float
    metrics: dict[str, float]
    killed: bool


@dataclass(frozen=True)
class Reading:
    """How trials are read, for all trials of a study."""

    constraints: tuple[Constraint, ...]
    """Those of the sampler; their metrics are user attributes."""
    priced: bool
    """Is the price per hour known?"""
    sized: bool
    """Do trials run on data fractions?"""

    def fraction(self, trial: FrozenTrial) -> float:
        if not self.sized or FRACTION not in trial.user_attrs:
            return FULL
        return as_fraction(trial.user_attrs[FRACTION], f"user attribute {FRACTION!r} of trial {trial.number}")

    def require(self, trial: FrozenTrial) -> None:
        """Raises SpecError for a completed trial that does not report the metric of a constraint."""
        self.fraction(trial)
        for constraint in self.constraints:
            if (
                constraint.metric == SECONDS
                or (constraint.metric == COST and self.priced)
                or constraint.metric == OBJECTIVE
            ):
                continue
            if _number(trial.user_attrs.get(constraint.metric)) is None:
                hint = f"trial.set_user_attr({constraint.metric!r}, ...) in the objective"
                raise SpecError(
                    f"{constraint.metric} has a constraint ({constraint}), and trial {trial.number} does not report it",
                    hint=f"{hint}, or give the sampler usd_per_hour" if constraint.metric == COST else hint,
                )

    def outcome(self, trial: FrozenTrial, worst: float, constraint_names: Iterable[str]) -> Outcome:
        """Of a finished trial. A pruned one counts as ended early, at its last report; so does a failed one, with the
        `worst` objective so far: whatever made it fail, similar ones are to be avoided."""
        killed = not _complete(trial)
        metrics = dict.fromkeys(constraint_names, math.nan) | optuna_constraints(trial)
        for constraint in self.constraints:
            metrics[constraint.metric] = _or_nan(trial.user_attrs.get(constraint.metric))
        spent, known = self._spent(trial)
        if not known:  # a lower bound, so that it counts as what other trials predict
            spent, killed = {SECONDS: 0.0, COST: 0.0} | spent, True
        return Outcome(
            self.fraction(trial),
            {name: value for name, value in metrics.items() if name not in (SECONDS, COST)}
            | spent
            | {OBJECTIVE: _objective(trial, worst)},
            killed,
        )

    def _spent(self, trial: FrozenTrial) -> tuple[dict[str, float], bool]:
        """Seconds and dollars, and whether all that counts is known.

        As reported; else the seconds from start to end, but only where a price or a constraint needs them: other
        studies do not depend on the clock, so that they are reproducible.
        """
        reported = {name: _number(trial.user_attrs.get(name)) for name in (SECONDS, COST)}
        spent = {name: value for name, value in reported.items() if value is not None and 0.0 <= value < math.inf}
        limited = {constraint.metric for constraint in self.constraints} & {SECONDS, COST}
        timed = not spent if self.priced else SECONDS in limited - spent.keys()
        if timed and trial.duration:
            spent[SECONDS] = trial.duration.total_seconds()
        return spent, bool(spent) if self.priced else limited <= spent.keys()


def optuna_constraints(trial: FrozenTrial) -> dict[str, float]:
    """Constraint values in Optuna's sense (satisfied up to 0), by names that no user attribute has."""
    found: dict[str, Any] = {}
    for key, value in trial.system_attrs.items():
        if key == CONSTRAINTS and value is not None:
            found |= {f"{CONSTRAINTS}:{number}": each for number, each in enumerate(value)}
        elif key.startswith(f"{CONSTRAINTS}:"):
            found[key] = value
    return {name: _or_nan(value) for name, value in found.items()}


def _complete(trial: FrozenTrial) -> bool:
    return trial.state.name == "COMPLETE"


def _objective(trial: FrozenTrial, worst: float) -> float:
    if trial.state.name == "FAIL":
        return worst
    if _complete(trial):
        return _or_nan(trial.value)
    return _or_nan(trial.intermediate_values.get(trial.last_step)) if trial.last_step is not None else math.nan


def _number(value: object) -> float | None:
    try:
        return as_number(value)
    except SpecError:
        return None


def _or_nan(value: object) -> float:
    number = _number(value)
    return math.nan if number is None else number
