"""Groups of sixteen recorded learning curves, like sixteen random trials of a study.

From the recorded tables (those of TaskSet that are for reporting, and NAS-Bench-NLP), and the real workloads of
examples/workloads, one group each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import held_out
from benchmarks.tables import load, reporting
from benchmarks.workload_curves import WORKLOADS, curves
from shoestring.errors import DataError
from shoestring.kernel.types import Direction

SIZE = 16


@dataclass(frozen=True, eq=False)
class Group:
    source: str
    """The source of the curves: "taskset", "nlp" or "workloads"."""
    direction: Direction
    curves: NDArray[np.float64]
    """A row for each trial; NaN from where it diverged."""
    boundaries: tuple[tuple[int, ...], ...]
    """For each trial."""

    @property
    def steps(self) -> int:
        return int(self.curves.shape[1])

    @property
    def finals(self) -> NDArray[np.float64]:
        """The final value of each trial, smaller is better; infinite where it diverged."""
        last = self.curves[:, -1] if self.direction == "minimize" else -self.curves[:, -1]
        return np.where(np.isfinite(last), last, np.inf)


def tables() -> tuple[str, ...]:
    """Those that are reported; not the surrogate's, whose curves are smooth."""
    return reporting("taskset", "nlp") if held_out() is None else reporting()


def recorded(most: int, draw: int = 0) -> list[Group]:
    """At most so many groups of each table, sampled without replacement; none where the tables are not available. Each
    draw groups the curves differently."""
    try:
        tasks = load(tables())
    except DataError as error:
        print(f"without the recorded tables: {error} ({error.hint})")
        return []
    groups = []
    for task in tasks.values():
        rows = np.random.default_rng(draw).permutation(len(task.curves))
        for number in range(min(most, len(rows) // SIZE)):
            curves = task.curves[rows[number * SIZE : (number + 1) * SIZE]]
            groups.append(Group(task.family, task.direction, curves, ((),) * SIZE))
    return groups


def workloads(names: Sequence[str] = WORKLOADS) -> Iterator[Group]:
    """Trained now, unless cached: minutes each."""
    for name in names:
        found = curves(name)
        boundaries = tuple(tuple(step + 1 for step in stages) for stages in found.stages)
        yield Group("workloads", "minimize", found.values.T, boundaries)
