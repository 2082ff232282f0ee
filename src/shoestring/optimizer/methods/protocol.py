"""The interface of all methods, and random search."""

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
    """The next run: a row of the candidates, on this data fraction."""

    row: int
    fraction: float
    why: str


class Method(Protocol):
    near_the_best: bool
    """Where the space is sampled: should half of the sample be close to the best known?"""
    stops_early: bool
    """May runs on a data fraction be ended early, as soon as the configuration cannot satisfy a constraint any more?"""

    def choose(self, history: History) -> NextRun: ...

    def recommend(self, history: History) -> Answer: ...

    def memory(self) -> Memory:
        """State from turn to turn: another instance that recalls it continues as this one would."""
        ...

    def recall(self, memory: Memory) -> None: ...


class RandomMethod:
    """Random search: every candidate once, on the full data, in random order."""

    near_the_best = False
    stops_early = False

    def choose(self, history: History) -> NextRun:
        rng = np.random.default_rng([history.problem.seed, 1, len(history.observations), len(history.pending)])
        return NextRun(int(rng.choice(np.flatnonzero(history.untried[:, -1]))), FULL, "sampled at random")

    def recommend(self, history: History) -> Answer:
        return measured_answer(history)

    def memory(self) -> Memory:
        return {}

    def recall(self, memory: Memory) -> None:
        """Nothing: each draw follows from the seed and the number of observations."""
