"""What a fixed elimination schedule costs and how long it takes, if each stage gets so many machines.

Rubberband's question: the schedule (how many trials, how many steps, stage by stage) is given and decides what is
learned; only the machines under it are free. This module forecasts one choice of them, `rubberband_greedy` searches
for the cheapest. All times are seconds from now.
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
"""Standard deviations on the safe side: of twenty sets of trials that go on, one is slower than that."""
PAID_S = 60.0
"""So old is a machine at the least that is in hand: clouds charge the first minute whole."""


class Round(Fact, frozen=True, kw_only=True):
    """One stage of a schedule: all its trials reach `until_step`, then the best of them make up the next stage."""

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
    """By how much it takes longer if the trials that go on are the slow ones: what a deadline must allow for."""

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
class Ground:
    """What a forecast rests on: the machine, its bill, the delays, and how fast trials train on it."""

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
    """Standard deviation of the trials' step times, as a part of their mean: what stragglers come from."""
    slowest: float = 1.0
    """The step time of the slowest of the trials about to run, if they are known, as a multiple of the mean."""
    worker_slots: int = 1
    most_slots: int = 16
    """No trial gets more."""
    provision_s: float = 60.0
    """From the request until a machine is there. Not billed."""
    start_s: float = 25.0
    """What a trial needs beside training whenever it starts: its program, its checkpoint, and saving at the end."""
    release_s: float = 2.0

    @property
    def usable(self) -> int:
        """Slots of one machine that whole workers can take."""
        return self.slots // self.worker_slots * self.worker_slots

    def widths(self) -> tuple[int, ...]:
        """Slots a trial may get: whole parts of a machine, or whole machines, so that no slot is left without a use."""
        workers = self.slots // self.worker_slots
        parts = [part for part in range(1, workers + 1) if workers % part == 0]
        wholes = [workers * machines for machines in range(2, self.max_machines + 1)]
        found = [self.worker_slots * count for count in (*parts, *wholes)]
        return tuple(width for width in found if width <= self.most_slots) or (self.worker_slots,)

    def usd(self, held_s: float) -> float:
        """The bill of one machine held so long, given back by ourselves."""
        return new_lease_usd(self.billing, held_s, self.usd_per_hour)


@dataclass(frozen=True)
class Share:
    """What a stage gets."""

    machines: int
    slots: int
    """Per trial."""
    places: int
    train_s: float
    """From the moment its machines are there until its last trial is expected to be done."""
    late_s: float = 0.0
    """So much more if its trials are slow ones."""


def menu(schedule: Schedule, ground: Ground) -> list[tuple[Share, ...]]:
    """For each stage what it may get, fewest machines first."""
    return [shares(round_, ground, among=schedule[0].trials) for round_ in schedule]


def shares(round_: Round, ground: Ground, *, among: int) -> tuple[Share, ...]:
    """What a stage may get: of each number of machines that has work for all of them, the fastest width.

    More machines need not be faster than fewer: they may be held because the next stage needs them.
    """
    found: list[Share] = []
    for machines in range(1, ground.max_machines + 1):
        widths = (width for width in ground.widths() if width <= machines * ground.usable)
        fitting = [share_of(round_, ground, machines, width, among=among) for width in widths]
        busy = [share for share in fitting if share.places * share.slots > (machines - 1) * ground.usable]
        if busy:
            found.append(min(busy, key=lambda share: (share.train_s, share.slots)))
    return tuple(found)


def share_of(round_: Round, ground: Ground, machines: int, width: int, *, among: int) -> Share:
    """What a stage makes of so many machines, with trials of this width on all of them. Its trials will be some of the
    `among` about to run: all of them in the first stage, nobody knows which later."""
    usable = ground.usable
    side_by_side = usable // width * machines if width <= usable else machines // (width // usable)
    places = min(round_.trials, side_by_side)
    waves = math.ceil(round_.trials / places)
    training_s = round_.steps * ground.step_s / ground.speedup(width)
    straggling = ground.spread * math.sqrt(waves) * latest_of(places)
    if round_.trials == among:
        late = max(0.0, ground.slowest - 1.0 - straggling)
    else:
        late = CAREFUL * ground.spread * math.sqrt(1 / round_.trials - 1 / among) * waves
    train_s = waves * (ground.start_s + training_s) + straggling * training_s
    return Share(machines, width, places, train_s, late * training_s)


@lru_cache(maxsize=4096)
def latest_of(count: int) -> float:
    """By how many standard deviations the last of so many is expected to come after the mean (Blom's formula)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0


def forecast(schedule: Schedule, chosen: Sequence[Share], ground: Ground, *, in_hand: int = 0) -> RubberbandPlan:
    """What these shares come to. A stage that needs more machines than the one before waits for them; one that needs
    fewer gives back those that came last. `in_hand` machines are there already, and their minimum is paid."""
    there = min(in_hand, chosen[0].machines)
    held: list[tuple[int, float]] = [(there, -PAID_S)] if there else []
    """How many machines there are, and since when, oldest first."""
    stages, now = [], 0.0
    for index, (round_, share) in enumerate(zip(schedule, chosen, strict=True)):
        start, usd = now, -math.fsum(count * ground.usd(now - since) for count, since in held)
        if share.machines > there:
            now += ground.provision_s
            held.append((share.machines - there, now))
            there = share.machines
        now += share.train_s
        usd += math.fsum(count * ground.usd(now - since) for count, since in held)
        needed = chosen[index + 1].machines if index + 1 < len(chosen) else 0
        while there > needed:
            count, since = held.pop()
            leaving = min(count, there - needed)
            usd += leaving * (ground.usd(now + ground.release_s - since) - ground.usd(now - since))
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
