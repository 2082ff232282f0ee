"""Constraints on the cost, time or metrics of a full-data run, as users write them: "cost <= 0.10", "recall >= 0.8"."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import msgspec

from shoestring.errors import SpecError
from shoestring.units import parse_duration_s, parse_usd, show_duration, show_number, show_usd
from shoestring.values import as_number

COST, SECONDS = "cost", "seconds"
"""Dollars and seconds of a run. A constraint on time is one on its seconds."""
_TIME = "time"
_FORM = re.compile(r"\s*(?P<metric>[A-Za-z_]\w*)\s*(?P<sign><=|>=)\s*(?P<limit>[^<>=]+?)\s*")


class Constraint(msgspec.Struct, frozen=True):
    """metric <= limit (`at_most`) or metric >= limit, of the full-data run."""

    metric: str
    limit: float
    at_most: bool = True

    def holds(self, value: float) -> bool:
        """Does this value satisfy it? NaN never does."""
        return value <= self.limit if self.at_most else value >= self.limit

    def miss(self, value: float) -> float:
        """By how much the value violates it, relative to the limit; 0 if satisfied, infinite for NaN."""
        if math.isnan(value):
            return math.inf
        beyond = value - self.limit if self.at_most else self.limit - value
        return max(0.0, beyond) / (abs(self.limit) or 1.0)

    def show(self, value: float) -> str:
        """A value of the metric, with its unit."""
        if not math.isfinite(value):
            return "unknown" if math.isnan(value) else show_number(value)
        if self.metric == COST:
            return show_usd(value)
        return show_duration(value) if self.metric == SECONDS else show_number(value)

    def __str__(self) -> str:
        return f"{self.metric} {'<=' if self.at_most else '>='} {self.show(self.limit)}"


def parse(text: str | Constraint) -> Constraint:
    """A constraint as users write it; costs may have a dollar sign, times a unit ("time <= 2h")."""
    if isinstance(text, Constraint):
        return text
    form = _FORM.fullmatch(text) if isinstance(text, str) else None
    if form is None:
        raise SpecError(
            f"constraint {text!r} is not a metric and its limit",
            hint="write it as 'cost <= 0.10', 'time <= 2h' or 'recall >= 0.8'",
        )
    metric, limit = form["metric"], form["limit"]
    metric = SECONDS if metric == _TIME else metric
    try:
        if metric == COST:
            value = parse_usd(limit, COST)
        elif metric == SECONDS:
            value = parse_duration_s(limit, SECONDS)
        else:
            value = as_number(limit, metric)
    except SpecError as error:
        hint = (
            error.hint
            if metric in (COST, SECONDS)
            else "only cost is in dollars and only time has units: 'cost <= $0.10', 'time <= 2h'"
        )
        raise SpecError(f"constraint {text!r}: {error}", hint=hint) from None
    if not math.isfinite(value):
        raise SpecError(f"constraint {text!r} has no finite limit", hint="give a number, or leave it out")
    return Constraint(metric, value, form["sign"] == "<=")


def parse_all(constraints: str | Constraint | Iterable[str | Constraint]) -> tuple[Constraint, ...]:
    """All of them; two constraints of the same kind on one metric are an error."""
    parsed = (
        (parse(constraints),)
        if isinstance(constraints, str | Constraint)
        else tuple(parse(text) for text in constraints)
    )
    seen: dict[tuple[str, bool], Constraint] = {}
    for constraint in parsed:
        kind = (constraint.metric, constraint.at_most)
        if kind in seen:
            raise SpecError(f"constraints {seen[kind]} and {constraint} limit the same", hint="keep the stricter one")
        seen[kind] = constraint
    return parsed
