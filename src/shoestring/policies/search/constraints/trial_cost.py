"""What a trial has cost so far: seconds of training, and their price on its machines at current prices.

Start-up, restores, saves and lost work are not included: they come from preemptions, and another run of the same
configuration would have others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from shoestring.kernel.records import Job
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView


class TrainingTime(NamedTuple):
    """Training on one instance type."""

    offer: Offer
    slots: int
    seconds: float


class TrialCost(NamedTuple):
    seconds: float
    usd: float


def cost_so_far(state: RunView, job: Job) -> TrialCost | None:
    """Including its open segment; None if its training was never measured."""
    stretches = list(_stretches(state, job))
    if not stretches:
        return None
    return TrialCost(
        math.fsum(stretch.seconds for stretch in stretches),
        math.fsum(stretch.seconds / 3600 * usd_per_hour(state, stretch.offer, stretch.slots) for stretch in stretches),
    )


def usd_per_hour(state: RunView, offer: Offer, slots: int) -> float:
    """The current price of so many slots: a share of a machine, or several. Where the configuration names its machines,
    the trial has them to itself and pays for all of their slots."""
    machines = slots / state.listings[offer].slots
    return state.usd_per_hour(offer) * (math.ceil(machines) if state.spec.space.roles else machines)


def _stretches(state: RunView, job: Job) -> Iterator[TrainingTime]:
    """Lost training counts towards the measured speed, not towards the trial's training time."""
    segment = None if job.segment is None else state.segments[job.segment]
    behind = job.step if segment is None else segment.first_step
    trained = sum(pace.steps for pace in job.paces.values())
    for (machine, slots), pace in job.paces.items():
        yield TrainingTime(_offer(state, job, machine), slots, pace.seconds * behind / trained)
    if segment is not None and segment.trains_from < math.inf and job.rented is not None:
        here_s = max(segment.trained_s, state.now - segment.trains_from)
        yield TrainingTime(job.rented, segment.slots, here_s)


def _offer(state: RunView, job: Job, machine: str) -> Offer:
    """The offer of this instance type: the one the job ran on last, else the cheapest now."""
    if job.rented is not None and job.rented.machine == machine:
        return job.rented
    return min((offer for offer in state.listings if offer.machine == machine), key=state.usd_per_hour)
