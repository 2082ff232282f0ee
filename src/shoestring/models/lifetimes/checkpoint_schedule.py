"""When to checkpoint: dynamic programming over the work left and the machine's age, for any lifetime model.

A machine that survived its first hours is safe for a long time, and checkpoints there are wasted; near the provider's
limit, and on a new machine, they are not. A fixed interval cannot be right for both. Where a new machine is better than
the rest of this one's lifetime, the schedule releases it.

The paper's abstract promises such a program and its text does not have it; this one is our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from shoestring.errors import SpecError
from shoestring.models.lifetimes.model import Floats, LifetimeModel
from shoestring.models.lifetimes.survival_table import SurvivalTable

QUANTUM_S = 300.0
MOST_QUANTA = 144
"""Longer jobs are cut into coarser pieces: the time to solve grows with the square of their number."""
OLDEST_S, AGES = 86400.0, 480
"""Of cached schedules: where a provider has no limit, older machines count as this old."""
RELEASE = 0
ALIKE_S, OLDER_S = 120.0, 900.0
"""Machines of a gang that were granted within the first count as equally old; differences are rounded up to multiples
of the second, so that few schedules are solved and none misses the limit of the oldest."""


@dataclass(frozen=True)
class Costs:
    save_s: float = 60.0
    restart_s: float = 120.0
    """From a loss until a new machine trains: its start-up and the restore."""

    def __post_init__(self) -> None:
        if not (self.save_s >= 0 and self.restart_s >= 0):
            raise SpecError(f"save_s={self.save_s!r} and restart_s={self.restart_s!r} must be zero or more")


@dataclass(frozen=True, eq=False)
class CheckpointSchedule:
    """Answers for every amount of work up to the one it was solved for, and every age."""

    quantum_s: float
    step_s: float
    costs: Costs
    expected_s: Floats
    """By quanta of work left and age in steps: seconds until the work is done."""
    quanta: NDArray[np.int32]
    """Likewise: quanta to work until the next save, or `RELEASE`."""

    def seconds(self, work_s: float, age_s: float = 0.0) -> float:
        """Expected time until so much work is done, beginning on a machine of this age."""
        place = min(work_s / self.quantum_s, len(self.expected_s) - 1.0)
        low, age = int(place), self._age(age_s)
        high = min(low + 1, len(self.expected_s) - 1)
        share = place - low
        return float((1 - share) * self.expected_s[low, age] + share * self.expected_s[high, age])

    def next_save_s(self, work_s: float, age_s: float) -> float | None:
        """Work to do before the next save; all that is left means that none is needed. None: release the machine."""
        quanta = int(self.quanta[self._quanta_left(work_s), self._age(age_s)])
        return None if quanta == RELEASE else min(work_s, quanta * self.quantum_s)

    def _quanta_left(self, work_s: float) -> int:
        return min(len(self.quanta) - 1, max(1, ceil(work_s / self.quantum_s - 1e-9)))

    def _age(self, age_s: float) -> int:
        return min(int(self.expected_s.shape[1]) - 1, max(0, round(age_s / self.step_s)))


def schedule_for(
    model: LifetimeModel, work_s: float, costs: Costs, ages_s: Sequence[float] = (0.0,)
) -> CheckpointSchedule:
    """For machines of these ages at once, of which the first preempted ends the work of all; asked by the age of the
    youngest. Solved for a little more work than there is and cached, so that most calls find a solved schedule."""
    youngest_s = min(ages_s)
    older_s = tuple(sorted(OLDER_S * max(0, ceil((age - youngest_s - ALIKE_S) / OLDER_S)) for age in ages_s))
    return _solved(model, 60.0 * 1.25 ** max(0, ceil(log(max(work_s, 60.0) / 60.0, 1.25))), costs, older_s)


@lru_cache(maxsize=64)
def _solved(model: LifetimeModel, work_s: float, costs: Costs, older_s: tuple[float, ...]) -> CheckpointSchedule:
    until_s = max(OLDEST_S, 2.0 * work_s)
    if any(older_s):
        fresh = _solved(model, work_s, costs, (0.0,) * len(older_s))
        gang = SurvivalTable.of_gang(model, older_s, until_s=until_s, step_s=until_s / AGES)
        return solve(gang, work_s, costs, fresh)
    alone = SurvivalTable.of(model, until_s=until_s, step_s=until_s / AGES)
    return solve(alone.together(len(older_s)), work_s, costs)


def solve(
    lifetimes: SurvivalTable, work_s: float, costs: Costs, fresh_ones: CheckpointSchedule | None = None
) -> CheckpointSchedule:
    """V(w, a) = min over k of: stay(a, x) + P(reaches) V(w - k, a + x) + P(lost) (restart + V(w, 0)), where x is k
    quanta and a save (none after the last). At age 0 V stands on both sides, and is solved for.

    Where a machine is released early, V(w, a) = restart + V(w, 0). With `fresh_ones`, what is rented after a loss is
    as young as they are, and V(w, 0) is theirs.
    """
    if not work_s > 0:
        raise SpecError(f"work_s={work_s!r} must be a positive number of seconds")
    steps = ceil(max(QUANTUM_S, work_s / MOST_QUANTA) / lifetimes.step_s)
    quantum_s = steps * lifetimes.step_s
    rows, columns = ceil(work_s / quantum_s - 1e-9), len(lifetimes.alive)
    ages, stretch = np.arange(columns) * lifetimes.step_s, np.arange(1, rows + 1)[:, None] * quantum_s
    stay, reach = lifetimes.stays_s(stretch + costs.save_s, ages), lifetimes.reaches(stretch + costs.save_s, ages)
    last_stay, last_reach = lifetimes.stays_s(stretch, ages), lifetimes.reaches(stretch, ages)
    later = _Later(rows, columns, steps, costs.save_s / lifetimes.step_s)
    quanta = np.zeros((rows + 1, columns), dtype=np.int32)
    for row in range(1, rows + 1):
        stays, reaches = (
            np.vstack((most[: row - 1], end[row - 1])) for most, end in ((stay, last_stay), (reach, last_reach))
        )
        spent = stays + reaches * later.values(row)
        lost = 1.0 - reaches
        if fresh_ones is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                again = spent[:, 0] + lost[:, 0] * costs.restart_s
                fresh_s = float(np.where(reaches[:, 0] > 0, again / reaches[:, 0], np.inf).min())
        else:
            fresh_s = fresh_ones.seconds(row * quantum_s)
        anew = costs.restart_s + fresh_s
        values = spent + lost * anew
        best = values.argmin(axis=0)
        expected = np.minimum(values[best, np.arange(columns)], anew)
        released = values.min(axis=0) >= anew
        if fresh_ones is None:  # a new machine is not released for a new machine
            expected[0], released[0] = fresh_s, False
        later.expected[row, :columns] = expected
        quanta[row] = np.where(released, RELEASE, best + 1)
    return CheckpointSchedule(quantum_s, lifetimes.step_s, costs, later.expected[:, :columns].copy(), quanta)


class _Later:
    """V(w - k, a + x) for all k and a at once, without a copy.

    With k the work left falls by a row and the age grows by the same number of columns, so in memory the values wanted
    lie at equal distances: a view with its own strides finds them. Columns beyond the oldest age are never weighed: no
    machine reaches them.
    """

    def __init__(self, rows: int, columns: int, quantum: int, save: float) -> None:
        """`quantum` and `save` in steps of age."""
        self._columns, self._quantum = columns, quantum
        self._save = int(save)
        self._share = save - int(save)
        self.expected = np.zeros((rows + 1, columns + rows * quantum + self._save + 2))

    def values(self, row: int) -> Floats:
        """For k = 1 .. row, with `row` quanta of work left. After the last of them no work is left."""
        if self._share:
            found: Floats = (1 - self._share) * self._shifted(row, 0) + self._share * self._shifted(row, 1)
            return found
        return self._shifted(row, 0)

    def _shifted(self, row: int, further: int) -> Floats:
        down, across = self.expected.strides
        begin = self.expected[row - 1 :, self._quantum + self._save + further :]
        return as_strided(begin, (row, self._columns), (self._quantum * across - down, across), writeable=False)


def young_daly_s(save_s: float, mean_life_s: float) -> float:
    """interval = sqrt(2 * save_s * mean_life_s): optimal to first order for memoryless losses, the usual choice."""
    return sqrt(2.0 * save_s * mean_life_s)
