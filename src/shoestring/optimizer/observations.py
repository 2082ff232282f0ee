"""What goes into an optimiser and what comes out: suggestions, observations, answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from shoestring.space.constraints import COST, SECONDS, Constraint
from shoestring.units import show_number
from shoestring.values import Config

FULL = 1.0
"""The fraction that counts: objective and constraints are those of a run on all of the data."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A configuration to run on this fraction of the data. `why` is for people and no part of what it is."""

    config: Config
    fraction: float = FULL
    why: str = field(default="", compare=False)
    end_at: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Seconds and cost, by these names: a run that gets there may be killed, and told so."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run came to. NaN is what was not measured, or an objective that diverged."""

    config: Config
    fraction: float
    objective: float
    metrics: Mapping[str, float]
    """Seconds and cost among them, by these names, where they are known."""
    killed: bool = False
    """It was ended at a limit: its seconds and its cost are the least that a whole run would have had."""

    @property
    def seconds(self) -> float:
        return self.metrics.get(SECONDS, math.nan)

    @property
    def cost(self) -> float:
        return self.metrics.get(COST, math.nan)

    def keeps(self, constraint: Constraint) -> bool:
        """Is it known to? What was not measured keeps nothing, and a killed run would have gone beyond what it took."""
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
    """By a run on all of the data; otherwise it is predicted from other runs."""
    probability: float
    """That it holds: 0 or 1 if measured."""

    def __str__(self) -> str:
        sure = "measured" if self.measured else f"predicted, holds with {100 * self.probability:.0f} %"
        return f"{self.constraint}: {self.constraint.show(self.value)} ({sure})"


@dataclass(frozen=True, slots=True)
class Answer:
    """The configuration to use, as far as is known now."""

    config: Config
    objective: float
    measured: bool
    """Was the objective measured on all of the data? Otherwise it is predicted."""
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
        config = ", ".join(f"{name} {value}" for name, value in self.config.items()) or "the only configuration"
        value = f"{show_number(self.objective)} ({'measured' if self.measured else 'predicted'})"
        return " · ".join([f"{config}: {value}", *map(str, self.constraints), *([self.why] if self.why else [])])
