"""Inputs and outputs of an optimizer: suggestions, observations, answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from shoestring.space.constraints import COST, SECONDS, Constraint
from shoestring.units import show_number, show_text
from shoestring.values import Config

FULL = 1.0
"""Full size: objective and constraints are those of a run on the full data."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A configuration to run on this data fraction. `why` is for people and is not compared."""

    config: Config
    fraction: float = FULL
    why: str = field(default="", compare=False)
    end_at: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Limits of seconds and cost, by these names: a run that reaches one may be killed, and told so."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one run. NaN is what was not measured, or an objective that diverged."""

    config: Config
    fraction: float
    objective: float
    metrics: Mapping[str, float]
    """Seconds and cost among them, by these names, where they are known."""
    killed: bool = False
    """It was ended at a limit: its seconds and its cost are lower bounds of those of a whole run."""

    @property
    def seconds(self) -> float:
        return self.metrics.get(SECONDS, math.nan)

    @property
    def cost(self) -> float:
        return self.metrics.get(COST, math.nan)

    def satisfies(self, constraint: Constraint) -> bool:
        """Is it known to? Not where it was not measured, and a killed run would have exceeded what it took."""
        value = self.metrics.get(constraint.metric, math.nan)
        if self.killed and constraint.at_most and constraint.metric in (COST, SECONDS):
            return False
        return constraint.holds(value)


@dataclass(frozen=True, slots=True)
class ConstraintOutlook:
    """One constraint at the full size of one configuration."""

    constraint: Constraint
    value: float
    measured: bool
    """By a full-data run; otherwise it is predicted from other runs."""
    probability: float
    """That it holds: 0 or 1 if measured."""

    def __str__(self) -> str:
        sure = "measured" if self.measured else f"predicted, holds with {100 * self.probability:.0f} %"
        return f"{self.constraint}: {self.constraint.show(self.value)} ({sure})"


@dataclass(frozen=True, slots=True)
class Answer:
    """The recommended configuration, as far as is known now."""

    config: Config
    objective: float
    measured: bool
    """Was the objective measured on the full data? Otherwise it is predicted."""
    constraints: tuple[ConstraintOutlook, ...]
    why: str = field(default="", compare=False)

    @property
    def probability(self) -> float:
        """That all constraints hold, taken to be independent of each other."""
        return math.prod(outlook.probability for outlook in self.constraints)

    @property
    def feasible(self) -> bool:
        """Do all constraints hold, more likely than not?"""
        return self.probability > 0.5

    def __str__(self) -> str:
        config = (
            ", ".join(f"{name} {show_text(str(value))}" for name, value in self.config.items())
            or "the only configuration"
        )
        value = f"{show_number(self.objective)} ({'measured' if self.measured else 'predicted'})"
        return " · ".join([f"{config}: {value}", *map(str, self.constraints), *([self.why] if self.why else [])])
