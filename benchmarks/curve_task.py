"""A table of recorded learning curves as a task: a space to search, a workload to simulate, and how good a value is.

A search samples a continuous space; the simulated trial replays, with its curve and its time per step, the nearest
recorded configuration that no other trial of the run replays. A thousand points in eight dimensions lie far apart: if
every trial replayed the nearest, a search that samples close to good trials would see the same curve again and again,
and a model would be punished for being right. Every search gets the same mapping.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shoestring.kernel.types import Config, Direction, Listing, Metrics
from shoestring.space.space import Space
from shoestring.world.sim.workload import Workload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

MEDIAN_STEP_S = 60.0
"""Recorded times are scaled so that a step of the median configuration takes this long on one slot."""
SLOT_EXPONENT = 0.7
"""p slots are p ** 0.7 times as fast as one."""
REFERENCE_QUANTILE = 0.75
"""Regret is 1 at the value that the best quarter of all configurations reach when they are trained to the end."""


@dataclass(frozen=True, eq=False)
class CurveTask:
    """One table. Rows are configurations; `curves[i, k]` is what configuration i reports at step k + 1."""

    name: str
    metric: str
    direction: Direction
    space: Space
    points: Numbers
    """The configurations as `Space.encode` gives them."""
    curves: Numbers
    """NaN from where a configuration diverged."""
    step_s: Numbers
    """Seconds a step takes on one slot."""

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]

    @property
    def max_steps(self) -> int:
        return int(self.curves.shape[1])

    @cached_property
    def best(self) -> float:
        """The best value on any curve, at any step."""
        import numpy as np

        return float(np.nanmin(self.curves) if self.direction == "minimize" else np.nanmax(self.curves))

    @cached_property
    def reference(self) -> float:
        """The value at which regret is 1."""
        import numpy as np

        sign = 1.0 if self.direction == "minimize" else -1.0
        last = np.where(np.isnan(self.curves[:, -1]), np.inf, sign * self.curves[:, -1])
        return sign * float(np.sort(last)[int((1.0 - REFERENCE_QUANTILE) * len(last))])

    def regret(self, value: float) -> float:
        """0 for the best of the table, 1 for the reference or anything worse; NaN, nothing reported, is 1 too."""
        share: float = (value - self.best) / (self.reference - self.best)
        return max(0.0, share) if share < 1.0 else 1.0

    def workload(self) -> Workload:
        """The workload of one run: it remembers which configurations are taken."""
        replay = _Replay(self)
        return Workload(curve=replay.curve, seconds_per_step=replay.seconds_per_step, checkpoint_gb=0.05)

    def distances(self, config: Config) -> Numbers:
        """Of every recorded configuration to this one; of the squares, half of what is not the same for all."""
        return self._half_squares - self.points @ self.space.encode(config)

    @cached_property
    def _half_squares(self) -> Numbers:
        halves: Numbers = (self.points**2).sum(axis=1) / 2.0
        return halves


def task_of(
    name: str,
    metric: str,
    direction: Direction,
    space: Space,
    rows: Any,
    values: Numbers,
    seconds: Numbers | None,
) -> CurveTask:
    """`rows`: a data frame with the hyperparameters of each configuration, in the order of `values`. `seconds` None: no
    times were recorded, every configuration takes the median time."""
    import numpy as np

    configs = rows[list(space.params)].to_dict("records")
    points = np.array([space.encode(config) for config in configs])
    pace = np.ones(len(points)) if seconds is None else seconds / np.median(seconds)
    return CurveTask(name, metric, direction, space, points, values, pace * MEDIAN_STEP_S)


class _Replay:
    """Which recorded configuration each configuration of one run stands for."""

    def __init__(self, task: CurveTask) -> None:
        self._task = task
        self._rows: dict[tuple[object, ...], int] = {}
        self._taken = 0.0 * task.step_s
        """Infinite where a trial replays it already."""

    def curve(self, config: Config) -> Callable[[int], Metrics]:
        metric, values = self._task.metric, self._task.curves[self._row(config)].tolist()
        last = len(values)
        return lambda step: {metric: values[min(step, last) - 1]}

    def seconds_per_step(self, config: Config, _: Listing, slots: int) -> float:
        one_slot_s, speedup = float(self._task.step_s[self._row(config)]), true_speedup(slots)
        return one_slot_s / speedup

    def _row(self, config: Config) -> int:
        key = tuple(config.values())
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) % len(self._taken) == 0:  # all were taken: once more from the beginning
                self._taken[:] = 0.0
            row = self._rows[key] = int((self._task.distances(config) + self._taken).argmin())
            self._taken[row] = math.inf
        return row


def true_speedup(slots: int) -> float:
    """The true speedup, which a policy that learns scaling should find."""
    return float(slots**SLOT_EXPONENT)
