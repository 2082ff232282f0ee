"""One run of a method on a table, its score, and what a mean of runs costs until it stays good.

Money is counted for every evaluation, also the initial ones; a run whose bill reaches the limit is killed there, for
every method, or sooner if its method ends it. After every evaluation the method recommends a candidate, which is scored
twice: as in the paper (`accuracy_c`), where a slightly too expensive candidate can beat the feasible optimum, and
strictly.
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
    """The result of a run that a method requested."""

    objective: float
    """NaN if the run was killed or diverged."""
    seconds: float
    usd: float
    killed: bool


class Ask(NamedTuple):
    """A run that a method requests."""

    candidate: int
    fraction: int
    most_usd: float = math.inf
    """Kill it where its bill reaches this, if that is before the limit."""


class Player(Protocol):
    """A method at work on one table. Candidates and fractions are places in the table."""

    def ask(self) -> Ask | None:
        """The next run; None if there is none left."""

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
    """How often it recommended a candidate whose full run was measured to violate the limit."""


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
    """Look it up; a run that would cost more than the limit costs the limit, and has no other result."""
    place = asked.candidate, asked.fraction
    usd, most = float(table.usd[place]), min(table.limit_usd, asked.most_usd)
    if usd > most:
        price = float(table.usd_per_hour[asked.candidate])
        return Evaluation(math.nan, most / price * 3600, most, killed=True)
    return Evaluation(float(table.objective[place]), float(table.seconds[place]), usd, killed=False)


def strict(table: Table, candidate: int | None) -> float:
    """Quality of the full run against the feasible optimum; zero if infeasible, or without a recommendation."""
    if candidate is None or not table.feasible[candidate]:
        return 0.0
    return float(table.quality[candidate]) / table.optimum


def accuracy_c(table: Table, candidate: int | None) -> float:
    """Quality against the feasible optimum, reduced by as much as the limit is violated.  Paper: TrimTuner Eq. 7."""
    if candidate is None:
        return 0.0
    kept = min(1.0, table.limit_usd / float(table.usd[candidate, -1]))
    return float(table.quality[candidate]) * kept / table.optimum


def mean_curve(curves: Iterable[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Of (spent, score) of some runs: at every amount that any of them had spent, their mean score.

    The score of a run is zero before its first evaluation ended, and its last one after its end.
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
