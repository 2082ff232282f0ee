"""Stop conditions: a number of runs, money, time, or no more improvement.

enough = [Iterations(44), Budget(0.30), NoImprovement(10)]
while why_stop(optimizer, *enough) is None:
    ...
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from shoestring.errors import SpecError
from shoestring.optimizer.observations import FULL, Observation
from shoestring.optimizer.optimizer import Optimizer
from shoestring.units import show_duration, show_usd


class StopCondition(Protocol):
    def why(self, optimizer: Optimizer) -> str | None:
        """Why to stop, for people, or None if there is no reason to."""


def why_stop(optimizer: Optimizer, *conditions: StopCondition) -> str | None:
    """The reason of the first of these conditions that is met; None if none is."""
    return next((why for condition in conditions if (why := condition.why(optimizer)) is not None), None)


@dataclass(frozen=True)
class Iterations:
    """A number of runs is done.  Paper: TrimTuner Alg. 1 l.11"""

    most: int

    def why(self, optimizer: Optimizer) -> str | None:
        return f"{self.most} runs are done" if len(optimizer.observations) >= self.most else None


@dataclass(frozen=True)
class Budget:
    """Runs have cost so much. Those without a cost count as free."""

    usd: float

    def why(self, optimizer: Optimizer) -> str | None:
        spent = _sum(seen.cost for seen in optimizer.observations)
        return f"{show_usd(spent)} of {show_usd(self.usd)} spent" if spent >= self.usd else None


@dataclass(frozen=True)
class Deadline:
    """Runs have taken so long, `at_once` of them in parallel. An optimizer has no clock: time between runs is not
    counted."""

    seconds: float
    at_once: int = 1

    def why(self, optimizer: Optimizer) -> str | None:
        taken = _sum(seen.seconds for seen in optimizer.observations) / self.at_once
        return f"runs took {show_duration(taken)} of {show_duration(self.seconds)}" if taken >= self.seconds else None


@dataclass(frozen=True)
class NoImprovement:
    """The recommendation was measured on the full data, and so many runs since then have not changed it.

    Paper: TrimTuner section III, stop condition
    Differs from the paper: a prediction is no improvement before it is measured, nor is it a reason to stop.
    """

    patience: int

    def why(self, optimizer: Optimizer) -> str | None:
        try:
            answer = optimizer.best()
        except SpecError:  # there is nothing to recommend yet
            return None
        if not (answer.measured and answer.feasible):
            return None
        since = _since(optimizer.observations, dict(answer.config))
        return f"{since} runs have not improved on what was measured" if since >= self.patience else None


def _since(seen: tuple[Observation, ...], config: object) -> int:
    """Runs since this configuration was first measured."""
    return (
        len(seen) - 1 - next(place for place, one in enumerate(seen) if one.fraction == FULL and one.config == config)
    )


def _sum(values: Iterable[float]) -> float:
    return math.fsum(value for value in values if math.isfinite(value))
