"""What a finished trial of a study tells the optimiser."""

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
"""The user attribute that says on how much of the data a trial ran; all of it if it is absent."""
FULL = 1.0
LIMITS = "constraints"
"""Where Optuna keeps what `constraints_func` returned, and with a colon and a name what `set_constraint` was given."""


@dataclass(frozen=True)
class Outcome:
    """All that a trial showed, as `Optimizer.tell` takes it."""

    fraction: float
    metrics: dict[str, float]
    killed: bool


@dataclass(frozen=True)
class Reading:
    """How trials are read, once and for all trials of a study."""

    limits: tuple[Constraint, ...]
    """Those that the sampler was given; their metrics are user attributes."""
    priced: bool
    """Is it known what an hour costs?"""
    sized: bool
    """Do trials run on fractions of the data?"""

    def fraction(self, trial: FrozenTrial) -> float:
        if not self.sized or FRACTION not in trial.user_attrs:
            return FULL
        return as_fraction(trial.user_attrs[FRACTION], f"user attribute {FRACTION!r} of trial {trial.number}")

    def require(self, trial: FrozenTrial) -> None:
        """Refuse a trial that came to its end without a word about something that has a limit."""
        self.fraction(trial)
        for limit in self.limits:
            if limit.metric == SECONDS or (limit.metric == COST and self.priced) or limit.metric == OBJECTIVE:
                continue
            if _number(trial.user_attrs.get(limit.metric)) is None:
                way_out = f"trial.set_user_attr({limit.metric!r}, ...) in the objective"
                raise SpecError(
                    f"{limit.metric} has a limit ({limit}), and trial {trial.number} does not tell it",
                    hint=f"{way_out}, or give the sampler usd_per_hour" if limit.metric == COST else way_out,
                )

    def outcome(self, trial: FrozenTrial, worst: float, optunas_limits: Iterable[str]) -> Outcome:
        """Of a finished trial. A pruned one counts as ended early, at its last report; so does a failed one, with the
        `worst` objective so far: whatever broke it, more of its kind are not wanted."""
        killed = not _complete(trial)
        metrics = dict.fromkeys(optunas_limits, math.nan) | optuna_limits(trial)
        for limit in self.limits:
            metrics[limit.metric] = _or_nan(trial.user_attrs.get(limit.metric))
        spent, known = self._spent(trial)
        if not known:  # the least it can be, so that it counts as what other trials let expect
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

        As told; else the seconds from start to end, but only where a price or a limit asks for them: the clock has no
        say in studies that it does not matter for, so that these are the same every time.
        """
        told = {name: _number(trial.user_attrs.get(name)) for name in (SECONDS, COST)}
        spent = {name: value for name, value in told.items() if value is not None and 0.0 <= value < math.inf}
        limited = {limit.metric for limit in self.limits} & {SECONDS, COST}
        timed = not spent if self.priced else SECONDS in limited - spent.keys()
        if timed and trial.duration:
            spent[SECONDS] = trial.duration.total_seconds()
        return spent, bool(spent) if self.priced else limited <= spent.keys()


def optuna_limits(trial: FrozenTrial) -> dict[str, float]:
    """Constraint values in Optuna's sense, of which those up to 0 are kept, by names that no user attribute has."""
    found: dict[str, Any] = {}
    for key, value in trial.system_attrs.items():
        if key == LIMITS and value is not None:
            found |= {f"{LIMITS}:{number}": each for number, each in enumerate(value)}
        elif key.startswith(f"{LIMITS}:"):
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
