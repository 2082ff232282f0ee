"""The cost and duration of a fixed elimination schedule, if each stage gets so many machines.

RubberBand's problem: the schedule (how many trials, how many steps, stage by stage) is given and decides what is
learned; only the machines under it can be chosen. This module forecasts one choice of them, `rubberband.greedy`
searches for the cheapest. All times are seconds from now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from shoestring.kernel.types import BillingName, Fact
from shoestring.market.billing import new_lease_usd

CAREFUL = 1.64
"""Standard deviations of safety margin: one in twenty sets of promoted trials is slower than that."""
PAID_S = 60.0
"""A machine in hand counts as at least so old: clouds charge the first minute in full."""


class Round(Fact, frozen=True, kw_only=True):
    """One stage of a schedule: all its trials reach `until_step`, then the best of them are promoted to the next."""

    trials: int
    steps: int
    """Trained in this stage."""
    until_step: int


Schedule = tuple[Round, ...]


class PlannedStage(Fact, frozen=True, kw_only=True):
    start: float
    stop: float
    trials: int
    until_step: int
    slots: int
    """Per trial."""
    machines: int
    places: int
    """How many of its trials run at once."""
    usd: float


class RubberbandPlan(Fact, frozen=True, kw_only=True):
    stages: tuple[PlannedStage, ...]
    late_s: float = 0.0
    """How much longer it takes if the promoted trials are the slow ones: the deadline must allow for it."""

    @property
    def seconds(self) -> float:
        return self.stages[-1].stop

    @property
    def latest_s(self) -> float:
        return self.seconds + self.late_s

    @property
    def usd(self) -> float:
        return math.fsum(stage.usd for stage in self.stages)


@dataclass(frozen=True)
class CostModel:
    """What a forecast is based on: the machine, its price and billing, the delays, and how fast trials train on it."""

    slots: int
    """Of one machine."""
    usd_per_hour: float
    billing: BillingName
    max_machines: int
    step_s: float
    """One step of one worker."""
    speedup: Callable[[int], float]
    """How much faster a trial is on so many slots than on one worker's."""
    spread: float = 0.1
    """Standard deviation of the trials' step times, relative to their mean: the cause of stragglers."""
    slowest: float = 1.0
    """The step time of the slowest trial about to run, if known, as a multiple of the mean."""
    worker_slots: int = 1
    most_slots: int = 16
    """No trial gets more."""
    provision_s: float = 60.0
    """From request to grant. Not billed."""
    start_s: float = 25.0
    """Overhead of every start of a trial: its program, its checkpoint, saving at the end."""
    release_s: float = 2.0

    @property
    def usable(self) -> int:
        """Slots of one machine that whole workers can use."""
        return self.slots // self.worker_slots * self.worker_slots

    def widths(self) -> tuple[int, ...]:
        """Slots a trial may get: an even share of a machine, or whole machines, so that no slot is left unused."""
        workers = self.slots // self.worker_slots
        parts = [part for part in range(1, workers + 1) if workers % part == 0]
        wholes = [workers * machines for machines in range(2, self.max_machines + 1)]
        found = [self.worker_slots * count for count in (*parts, *wholes)]
        return tuple(width for width in found if width <= self.most_slots) or (self.worker_slots,)

    def usd(self, held_s: float) -> float:
        """The bill of one machine that we release after so long."""
        return new_lease_usd(self.billing, held_s, self.usd_per_hour)


@dataclass(frozen=True)
class Share:
    """What a stage gets."""

    machines: int
    slots: int
    """Per trial."""
    places: int
    train_s: float
    """From the grant of its machines until its last trial is expected to be done."""
    late_s: float = 0.0
    """How much longer if its trials are slow ones."""


def menu(schedule: Schedule, cost_model: CostModel) -> list[tuple[Share, ...]]:
    """For each stage the possible shares, fewest machines first."""
    return [shares(round_, cost_model, among=schedule[0].trials) for round_ in schedule]


def shares(round_: Round, cost_model: CostModel, *, among: int) -> tuple[Share, ...]:
    """The possible shares of a stage: for each number of machines that are all in use, the fastest width.

    More machines need not be faster than fewer: they may be held because the next stage needs them.
    """
    found: list[Share] = []
    for machines in range(1, cost_model.max_machines + 1):
        widths = (width for width in cost_model.widths() if width <= machines * cost_model.usable)
        fitting = [share_of(round_, cost_model, machines, width, among=among) for width in widths]
        busy = [share for share in fitting if share.places * share.slots > (machines - 1) * cost_model.usable]
        if busy:
            found.append(min(busy, key=lambda share: (share.train_s, share.slots)))
    return tuple(found)


def share_of(round_: Round, cost_model: CostModel, machines: int, width: int, *, among: int) -> Share:
    """The forecast of a stage on so many machines, with trials of this width on all of them. Its trials will be some of
    the `among` about to run: all of them in the first stage, unknown ones later."""
    usable = cost_model.usable
    side_by_side = usable // width * machines if width <= usable else machines // (width // usable)
    places = min(round_.trials, side_by_side)
    waves = math.ceil(round_.trials / places)
    training_s = round_.steps * cost_model.step_s / cost_model.speedup(width)
    straggling = cost_model.spread * math.sqrt(waves) * latest_of(places)
    if round_.trials == among:
        late = max(0.0, cost_model.slowest - 1.0 - straggling)
    else:
        late = CAREFUL * cost_model.spread * math.sqrt(1 / round_.trials - 1 / among) * waves
    train_s = waves * (cost_model.start_s + training_s) + straggling * training_s
    return Share(machines, width, places, train_s, late * training_s)


@lru_cache(maxsize=4096)
def latest_of(count: int) -> float:
    """By how many standard deviations the last of so many is expected to exceed the mean (Blom's formula)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0


def forecast(schedule: Schedule, chosen: Sequence[Share], cost_model: CostModel, *, in_hand: int = 0) -> RubberbandPlan:
    """Duration and cost with these shares. A stage that needs more machines than the one before waits for them; one
    that needs fewer releases those that came last. `in_hand` machines are held already, and their minimum is paid."""
    there = min(in_hand, chosen[0].machines)
    held: list[tuple[int, float]] = [(there, -PAID_S)] if there else []
    """(number of machines, held since), oldest first."""
    stages, now = [], 0.0
    for index, (round_, share) in enumerate(zip(schedule, chosen, strict=True)):
        start, usd = now, -math.fsum(count * cost_model.usd(now - since) for count, since in held)
        if share.machines > there:
            now += cost_model.provision_s
            held.append((share.machines - there, now))
            there = share.machines
        now += share.train_s
        usd += math.fsum(count * cost_model.usd(now - since) for count, since in held)
        needed = chosen[index + 1].machines if index + 1 < len(chosen) else 0
        while there > needed:
            count, since = held.pop()
            leaving = min(count, there - needed)
            usd += leaving * (cost_model.usd(now + cost_model.release_s - since) - cost_model.usd(now - since))
            there -= leaving
            if count > leaving:
                held.append((count - leaving, since))
        stages.append(
            PlannedStage(
                start=start,
                stop=now,
                trials=round_.trials,
                until_step=round_.until_step,
                slots=share.slots,
                machines=share.machines,
                places=share.places,
                usd=usd,
            )
        )
    return RubberbandPlan(stages=tuple(stages), late_s=math.fsum(share.late_s for share in chosen))
