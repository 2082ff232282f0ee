"""Scores of outcomes: mean regret over seeds, and confidence intervals of ratios of means.

Tasks differ far more than seeds do, so intervals are bootstrapped over tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from benchmarks.seer_arena import Outcome
from benchmarks.seer_market import Cell

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

RESAMPLES = 4000


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float
    """Between them in 95 % of the resamples."""


class Scores:
    """`regret[name]` has a row for each cell, a column for each task, and seeds behind them."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        import numpy as np

        self.cells: tuple[Cell, ...] = tuple(sorted({outcome.cell for outcome in outcomes}))
        self.tasks = tuple(dict.fromkeys(sorted(outcome.task for outcome in outcomes)))
        seeds = 1 + max(outcome.seed for outcome in outcomes)
        shape = (len(self.cells), len(self.tasks), seeds)
        self.regret: dict[str, Numbers] = {}
        for outcome in outcomes:
            into = self.regret.setdefault(outcome.contestant, np.full(shape, np.nan))
            into[self.cells.index(outcome.cell), self.tasks.index(outcome.task), outcome.seed] = outcome.regret

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(task.partition("/")[0] for task in self.tasks))

    @cached_property
    def _draws(self) -> NDArray[np.int64]:
        """Which tasks each resample holds."""
        import numpy as np

        return np.random.default_rng(0).integers(len(self.tasks), size=(RESAMPLES, len(self.tasks)))

    def of_cell(self, name: str, cell: Cell) -> Estimate:
        return self._estimate(self.regret[name][self.cells.index(cell)].mean(axis=1))

    def of_all(self, name: str) -> Estimate:
        return self._estimate(self.regret[name].mean(axis=(0, 2)))

    def of_family(self, name: str, family: str) -> float:
        mine = [index for index, task in enumerate(self.tasks) if task.partition("/")[0] == family]
        return float(self.regret[name][:, mine].mean())

    def ratio(self, name: str, other: str) -> Estimate:
        """Of the mean regrets over all cells and tasks."""
        return self._estimate(self.regret[name].mean(axis=(0, 2)), self.regret[other].mean(axis=(0, 2)))

    def worst_cell(self, name: str, other: str) -> tuple[float, Cell]:
        """The largest ratio of mean regrets in any cell, and the cell."""
        ratios = self.regret[name].mean(axis=(1, 2)) / self.regret[other].mean(axis=(1, 2))
        return float(ratios.max()), self.cells[int(ratios.argmax())]

    def best_of(self, names: Sequence[str], cell: Cell) -> str:
        return min(names, key=lambda name: self.of_cell(name, cell).value)

    def win_rate(self, name: str, other: str, cell: Cell) -> float:
        """The share of runs, task by task and seed by seed, that end better than the other's; ties count half."""
        index = self.cells.index(cell)
        mine, theirs = self.regret[name][index], self.regret[other][index]
        return float((mine < theirs).mean() + (mine == theirs).mean() / 2)

    def _estimate(self, by_task: Numbers, over: Numbers | None = None) -> Estimate:
        import numpy as np

        drawn = by_task[self._draws].mean(axis=1)
        value = float(by_task.mean())
        if over is not None:
            drawn = drawn / over[self._draws].mean(axis=1)
            value /= float(over.mean())
        low, high = np.quantile(drawn, (0.025, 0.975))
        return Estimate(value, float(low), float(high))
