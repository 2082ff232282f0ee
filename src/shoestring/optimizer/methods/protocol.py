"""How candidates may be chosen: what every method answers, and the one that only draws lots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from shoestring.optimizer.history import History
from shoestring.optimizer.observations import FULL, Answer
from shoestring.optimizer.recommendation import measured_answer

Memory = Mapping[str, Any]
"""Plain JSON data."""


@dataclass(frozen=True, slots=True)
class NextRun:
    """The next run: a row of the candidates, on this fraction of the data."""

    row: int
    fraction: float
    why: str


class Method(Protocol):
    near_the_best: bool
    """Where a space is drawn from: should half of the draw lie close to the best known?"""
    gives_up: bool
    """May runs on parts of the data be ended early, as soon as their configurations cannot keep a limit any more?"""

    def choose(self, history: History) -> NextRun: ...

    def recommend(self, history: History) -> Answer: ...

    def memory(self) -> Memory:
        """What it keeps from turn to turn: another one that recalls it goes on as this one would."""
        ...

    def recall(self, memory: Memory) -> None: ...


class RandomMethod:
    """Every candidate once, on all of the data, in an order drawn by lot."""

    near_the_best = False
    gives_up = False

    def choose(self, history: History) -> NextRun:
        rng = np.random.default_rng([history.problem.seed, 1, len(history.observations), len(history.pending)])
        return NextRun(int(rng.choice(np.flatnonzero(history.untried[:, -1]))), FULL, "drawn by lot")

    def recommend(self, history: History) -> Answer:
        return measured_answer(history)

    def memory(self) -> Memory:
        return {}

    def recall(self, memory: Memory) -> None:
        """Nothing: each draw follows from the seed and what was told."""
