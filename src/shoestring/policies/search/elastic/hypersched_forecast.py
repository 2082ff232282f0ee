"""HyperSched's forecast: a trial's loss at the deadline on so many slots, and which trials should get the slots.

A curve is assumed to keep falling as fast per doubling of its steps as it last did, and p slots to be p^0.8 times as
fast as one: HyperSched assumes how training scales, and does not learn it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView
from shoestring.models.speed.prior import SLOT_GAIN


@dataclass(frozen=True)
class TrialForecast:
    """A trial's curve and speed. Losses: smaller is better, whatever the run's direction."""

    job: Job
    loss: float
    """As last reported."""
    per_doubling: float
    """How much it last fell while its steps doubled; zero if it rose, or if unknown."""
    steps: int
    steps_per_s: float
    """On one slot."""

    def forecast(self, slots: int, left_s: float, max_steps: int) -> float:
        """The loss at the deadline."""
        reached = min(max_steps, self.steps + self.steps_per_s * slots**SLOT_GAIN * max(0.0, left_s))
        return self.loss - self.per_doubling * math.log2(max(1.0, reached / self.steps))


def outlook(state: RunView, job: Job) -> TrialForecast | None:
    """None for a trial that has not reported a number yet, or that was never timed."""
    seconds_on_one = [(pace.steps, pace.seconds * slots**SLOT_GAIN) for (_, slots), pace in state.paces(job).items()]
    steps, seconds = (sum(column) for column in zip((0, 0.0), *seconds_on_one, strict=True))
    if not job.values or math.isnan(job.values[-1]) or not steps or seconds <= 0:
        return None
    sign = 1.0 if state.spec.direction == "minimize" else -1.0
    return TrialForecast(job, sign * job.values[-1], _per_doubling(job, sign), job.steps[-1], steps / seconds)


def _per_doubling(job: Job, sign: float) -> float:
    last = len(job.values) - 1
    before = max((i for i in range(last) if job.steps[i] <= job.steps[last] / 2), default=None)
    if before is None or math.isnan(job.values[before]):
        return 0.0
    fallen = sign * (job.values[before] - job.values[last])
    return max(0.0, fallen / math.log2(job.steps[last] / job.steps[before]))


def widths_by_gain(
    leaders: Sequence[TrialForecast], slots: int, *, narrowest: int, widest: float, left_s: float, max_steps: int
) -> list[int]:
    """Each leader gets the narrowest width; then, repeatedly, the one that gains most per slot gets twice as many."""
    widths = [narrowest] * len(leaders)
    free = slots - narrowest * len(leaders)
    while True:
        gains = []
        for i, leader in enumerate(leaders):
            if widths[i] <= free and 2 * widths[i] <= widest:
                now, then = (leader.forecast(w, left_s, max_steps) for w in (widths[i], 2 * widths[i]))
                gains.append(((now - then) / widths[i], -leader.loss, i))
        if not gains:
            return widths
        _, _, i = max(gains)
        free -= widths[i]
        widths[i] *= 2
