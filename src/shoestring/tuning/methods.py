"""How candidates may be chosen: what every method answers, and the one that only draws lots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shoestring.tuning.history import History
from shoestring.tuning.observations import FULL, Answer
from shoestring.tuning.recommend import measured_answer


@dataclass(frozen=True, slots=True)
class Choice:
    """The next run: a row of the candidates, on this fraction of the data."""

    row: int
    fraction: float
    why: str


class Method(Protocol):
    near_the_best: bool
    """Where a space is drawn from: should half of the draw lie close to the best known?"""

    def choose(self, history: History) -> Choice: ...

    def recommend(self, history: History) -> Answer: ...


class AtRandom:
    """Every candidate once, on all of the data, in an order drawn by lot."""

    near_the_best = False

    def choose(self, history: History) -> Choice:
        rng = np.random.default_rng([history.problem.seed, 1, len(history.observations), len(history.pending)])
        return Choice(int(rng.choice(np.flatnonzero(history.untried[:, -1]))), FULL, "drawn by lot")

    def recommend(self, history: History) -> Answer:
        return measured_answer(history)
