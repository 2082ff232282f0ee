"""The workloads of the SpotTune benchmark: real learning curves, scaled to trials of hours.

The six workloads of the paper's Table II were trained once, here, sixteen configurations each. Those trainings took
seconds a step; a trial of the benchmark takes hours, as the paper's do. So the median trial takes four hours on the
slowest machine, the others in measured proportion, and every recorded step is divided into six with interpolated
values: a step must be shorter than a preemption notice, or each would be lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.spottune_market import speed
from benchmarks.workload_curves import Curves
from shoestring.kernel.types import Config, Listing, Metrics
from shoestring.market.simulated.lifetimes import HOUR_S
from shoestring.market.simulated.random_streams import generator
from shoestring.policies.search.theta.policy import METRIC as STAGE
from shoestring.world.sim.workload import Curve, Workload

Numbers = NDArray[np.float64]

PARTS = 6
"""Of each recorded step."""
MEDIAN_TRIAL_S = 4 * HOUR_S
"""On the slowest machine."""
PAIR_SPREAD = 0.05
"""The standard deviation of the step time of a trial on a machine around what their sizes predict: below 0.1 in the
paper."""
METRIC = "value"


@dataclass(frozen=True, eq=False)
class Task:
    """Sixteen trials whose every step is known."""

    name: str
    values: Numbers
    """`values[step - 1, trial]`: less is better."""
    hours: Numbers
    """Of each whole trial on the slowest machine."""
    stages: tuple[tuple[int, ...], ...]
    """Of each trial: the steps after which its learning rate falls."""

    @property
    def steps(self) -> int:
        return len(self.values)

    @property
    def trials(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def best(self) -> int:
        """The trial that ends best."""
        return int(np.argmin(self.values[-1]))

    def workload(self) -> Workload:
        return Workload(curve=self._curve, seconds_per_step=self.step_s)

    def step_s(self, config: Config, listing: Listing, _slots: int) -> float:
        trial, machine = _trial(config), listing.offer.machine
        suits = math.exp(PAIR_SPREAD * generator("pair", self.name, trial, machine).gauss(0.0, 1.0))
        return float(self.hours[trial]) * HOUR_S / self.steps / speed(machine) * suits

    def _curve(self, config: Config) -> Curve:
        trial = _trial(config)
        values, stages = self.values[:, trial].tolist(), self.stages[trial]

        def reported(step: int) -> Metrics:
            metrics = {METRIC: values[step - 1]}
            return metrics | {STAGE: float(sum(step > end for end in stages))} if stages else metrics

        return reported


def stretched(recorded: Curves) -> Task:
    """The recorded curves as a task."""
    length = len(recorded.values)
    at = np.arange(1, PARTS * length + 1) / PARTS
    known = np.arange(1, length + 1)
    seconds = recorded.step_s.sum(axis=0)
    return Task(
        name=recorded.workload,
        values=np.column_stack([np.interp(at, known, curve) for curve in recorded.values.T]),
        hours=MEDIAN_TRIAL_S / HOUR_S * seconds / np.median(seconds),
        stages=tuple(tuple(PARTS * end for end in ends) for ends in recorded.stages),
    )


def _trial(config: Config) -> int:
    return int(config["trial"] or 0)
