"""When to stop asking: after so many runs, so much money, so much time, or when nothing gets better any more.

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
        """Why to stop, in words, or None if there is no reason to."""


def why_stop(optimizer: Optimizer, *conditions: StopCondition) -> str | None:
    """What the first of these conditions that is met says; None if none is."""
    return next((why for condition in conditions if (why := condition.why(optimizer)) is not None), None)


@dataclass(frozen=True)
class Iterations:
    """So many runs were told.  Paper: TrimTuner Alg. 1 l.11"""

    most: int

    def why(self, optimizer: Optimizer) -> str | None:
        return f"{self.most} runs were told" if len(optimizer.observations) >= self.most else None


@dataclass(frozen=True)
class Budget:
    """Runs have cost so much. Those without a cost count as free."""

    usd: float

    def why(self, optimizer: Optimizer) -> str | None:
        spent = _sum(seen.cost for seen in optimizer.observations)
        return f"{show_usd(spent)} of {show_usd(self.usd)} are spent" if spent >= self.usd else None


@dataclass(frozen=True)
class Deadline:
    """Runs have taken so long, of which some may have gone on at once. An optimiser has no clock: what else takes time
    is not in it."""

    seconds: float
    at_once: int = 1

    def why(self, optimizer: Optimizer) -> str | None:
        taken = _sum(seen.seconds for seen in optimizer.observations) / self.at_once
        return f"runs took {show_duration(taken)} of {show_duration(self.seconds)}" if taken >= self.seconds else None


@dataclass(frozen=True)
class NoImprovement:
    """What is recommended was measured on all of the data, and so many runs since then have not changed that.

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
    """How many runs were told after this configuration was measured for the first time."""
    return (
        len(seen) - 1 - next(place for place, one in enumerate(seen) if one.fraction == FULL and one.config == config)
    )


def _sum(values: Iterable[float]) -> float:
    return math.fsum(value for value in values if math.isfinite(value))
