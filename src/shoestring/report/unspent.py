"""Most of the budget left by a search that is through: what was left, and the options that would use it.

`trials` is a ceiling, and no search goes beyond it. So a search that prunes well ends long before its budget, and this
says so instead of leaving it to be noticed.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict, dataclass
from typing import Any

from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.units import show_usd

MOST = 0.5
"""Of the budget: with less than this left there is nothing to say."""
SAFELY = 0.9
"""Cost and time are assumed to grow with the number of trials; this share of what they would allow is suggested."""
MOST_GROWTH = 10
"""How many times as many machines are suggested at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unspent:
    usd: float
    budget_usd: float
    trials: int
    """That were tried."""
    ceiling: int
    options: str
    """Of the command line, for a run that uses it; empty where more trials are not what it could be used for."""
    partly: bool = False
    """It would take more machines than are suggested to use all of it."""
    name: str = ""
    """For that run, where there is one of this name already."""

    def __str__(self) -> str:
        left, over = f"{show_usd(self.usd)} of {show_usd(self.budget_usd)} left", f"all {self.trials} trials are over"
        if self.trials < self.ceiling:
            over = f"the search ended by itself after {self.trials} trials"
        return f"{left}: {over}. {self.way}"

    @property
    def way(self) -> str:
        """How to use it."""
        name = f" --name {shlex.quote(self.name)}" if self.name else ""
        if self.options:
            return f"To use {'more of it' if self.partly else 'it'}: the same command with {self.options}{name}"
        larger = "a larger --max-steps or --max-machines"
        return f"What may use it: the same command with {larger}{name and f', and{name}'}"

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)


def unspent_of(state: RunState) -> Unspent | None:
    """Of a run whose work is done; None where little is left, or nothing that it could be used for."""
    if not state.concluded or state.end_reason != "completed":
        return None
    spec = state.the_spec
    used_s = state.now - state.started_at
    return unspent(spec, state.spent_usd, used_s, len(state.jobs), name=f"{spec.name}-2")


def unspent(spec: RunSpec, spent_usd: float, used_s: float, trials: int, name: str = "") -> Unspent | None:
    """`name`: for another run, where one of this name exists."""
    left_usd = spec.budget_usd - spent_usd
    if spec.kind != "study" or trials >= spec.space.size or spec.recipe == "grid":
        return None  # there are no more jobs, configurations or grid points
    if spent_usd <= 0 or left_usd <= MOST * spec.budget_usd:
        return None  # machines that are free of charge use no budget
    ceiling = max(spec.trials, len(spec.given))
    options, partly = _more_trials(spec, spent_usd, used_s, trials) if trials >= ceiling else ("", True)
    return Unspent(
        usd=left_usd,
        budget_usd=spec.budget_usd,
        trials=trials,
        ceiling=ceiling,
        options=options,
        partly=partly,
        name=name,
    )


def _more_trials(spec: RunSpec, spent_usd: float, used_s: float, trials: int) -> tuple[str, bool]:
    """As many as the money pays, on as many more machines as they need to be in time. Would that be too many?"""
    paid = min(SAFELY * trials * spec.budget_usd / spent_usd, spec.space.size)
    in_time = SAFELY * trials * spec.deadline_s / max(used_s, 1.0)
    growth = min(MOST_GROWTH, math.ceil(paid / in_time))
    machines = f" --max-machines {growth * spec.max_machines}" if growth > 1 else ""
    return f"--trials {_rounded_down(min(paid, growth * in_time))}{machines}", growth * in_time < paid


def _rounded_down(trials: float) -> int:
    """To two digits: it is an estimate."""
    unit = 10.0 ** max(0, math.floor(math.log10(trials)) - 1)
    return round(math.floor(trials / unit) * unit)
