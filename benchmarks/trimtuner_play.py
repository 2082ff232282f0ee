"""One run of a method on a table, what it is worth, and what a mean of runs costs until it stays good.

Money is counted for every evaluation, also the first ones; a run whose bill gets to the limit is killed there, whoever
asked for it, or sooner if its method gives it up. After every evaluation the method names the candidate it would use,
which is scored twice: as the paper does (`accuracy_c`), where a pick slightly too dear can beat the feasible optimum,
and strictly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from benchmarks.trimtuner_tables import Numbers, Table


@dataclass(frozen=True)
class Evaluation:
    """What a method is told of a run that it asked for."""

    objective: float
    """NaN if the run was killed or diverged."""
    seconds: float
    usd: float
    killed: bool


class Ask(NamedTuple):
    """A run that a method asks for."""

    candidate: int
    fraction: int
    most_usd: float = math.inf
    """Kill it where its bill gets here, if that is before the limit."""


class Player(Protocol):
    """A method at work on one table. Candidates and fractions are places in the table."""

    def ask(self) -> Ask | None:
        """What to run next; None where nothing is left to learn."""

    def tell(self, candidate: int, fraction: int, seen: Evaluation) -> None: ...

    def best(self) -> int | None:
        """The candidate it would use now; None if it has none to recommend."""


@dataclass(frozen=True)
class Curve:
    """A run: after each evaluation, what was spent so far and what the recommendation was worth, of the optimum."""

    usd: Numbers
    seconds: Numbers
    strict: Numbers
    accuracy_c: Numbers
    measured_infeasible: int
    """How often it recommended a candidate whose full run it had seen break the limit."""


def play(table: Table, player: Player, budget_usd: float, max_evaluations: int) -> Curve:
    """Until the budget is spent (the last evaluation may exceed it), or after so many evaluations."""
    usd = seconds = 0.0
    too_dear: set[int] = set()
    steps: list[tuple[float, float, float, float]] = []
    against_better_knowledge = 0
    while usd < budget_usd and len(steps) < max_evaluations:
        asked = player.ask()
        if asked is None:
            break
        seen = evaluate(table, asked)
        player.tell(asked.candidate, asked.fraction, seen)
        usd, seconds = usd + seen.usd, seconds + seen.seconds
        if seen.killed and asked.fraction == len(table.fractions) - 1:
            too_dear.add(asked.candidate)
        pick = player.best()
        against_better_knowledge += pick in too_dear
        steps.append((usd, seconds, strict(table, pick), accuracy_c(table, pick)))
    spent, elapsed, strictly, by_the_paper = np.array(steps, dtype=float).reshape(-1, 4).T
    return Curve(spent, elapsed, strictly, by_the_paper, against_better_knowledge)


def evaluate(table: Table, asked: Ask) -> Evaluation:
    """Look it up; whoever would pay more than the limit pays the limit, and learns no more than that."""
    place = asked.candidate, asked.fraction
    usd, most = float(table.usd[place]), min(table.limit_usd, asked.most_usd)
    if usd > most:
        price = float(table.usd_per_hour[asked.candidate])
        return Evaluation(math.nan, most / price * 3600, most, killed=True)
    return Evaluation(float(table.objective[place]), float(table.seconds[place]), usd, killed=False)


def strict(table: Table, candidate: int | None) -> float:
    """Quality of the full run against the feasible optimum; infeasible is worth nothing, as is no recommendation."""
    if candidate is None or not table.feasible[candidate]:
        return 0.0
    return float(table.quality[candidate]) / table.optimum


def accuracy_c(table: Table, candidate: int | None) -> float:
    """Quality against the feasible optimum, reduced by as much as the limit is broken.  Paper: TrimTuner Eq. 7."""
    if candidate is None:
        return 0.0
    kept = min(1.0, table.limit_usd / float(table.usd[candidate, -1]))
    return float(table.quality[candidate]) * kept / table.optimum


def mean_curve(curves: Iterable[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Of (spent, worth) of some runs: at everything anybody had spent, their mean worth.

    A run is worth nothing before its first evaluation ended, and what it was last worth after its end.
    """
    runs = list(curves)
    spent = np.unique(np.concatenate([at for at, _ in runs]))
    worth = np.zeros(len(spent))
    for at, values in runs:
        worth += np.concatenate([[0.0], values])[np.searchsorted(at, spent, side="right")]
    return spent, worth / len(runs)


def spent_until(curves: Sequence[tuple[Numbers, Numbers]], level: float) -> float:
    """What was spent when the mean curve rose to the level for good; infinity if it ended below."""
    spent, worth = mean_curve(curves)
    below = np.flatnonzero(worth < level)
    if not len(below):
        return float(spent[0])
    return float(spent[below[-1] + 1]) if below[-1] + 1 < len(spent) else math.inf
