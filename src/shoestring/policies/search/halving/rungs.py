"""A ladder of rungs: trials climb from one step count to the next, and the best part of each rung goes on.

Successive halving, ASHA and the brackets of Hyperband are all this; they differ in when a rung may send trials on.

A ladder holds nothing of its own. It is a fold of `state.settled` (who came to rest on which rung with which value) and
of how far each job was told to go, so one that is built anew from the state gives the same decisions as one that has
read along since the start. Searches keep it as a memo and only read on: a study of 100,000 trials costs each event a
search in a sorted list, not a look at all jobs. (Putting a value into that list moves memory, 8 bytes for each trial
that ranks behind: 7 microseconds in all with 33,000 of them.)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Settled
from shoestring.kernel.types import JobId, Tags
from shoestring.kernel.view import RunView
from shoestring.policies.search.samplers.protocol import (
    RANDOM_SAMPLER,
    SEARCH_WAKERS,
    Sampler,
    has_room,
    planned,
    supplied,
)

Standing = tuple[float, int, JobId]
"""Smaller is better: the value, then who came first."""
Quota = Callable[[int, int, int], int]
"""(arrived, most, eta) -> how many of those that arrived on a rung may go on, when `most` can ever arrive there."""

HOPELESS = math.inf
UNTOLD = 1.7e308
"""A trial that reported nothing ranks behind all that did, but unlike one that diverged or failed it may go on."""


def as_they_come(arrived: int, most: int, eta: int) -> int:
    """The best 1/eta of those that have arrived, without waiting for the others."""
    return when_all_are_in(arrived, most, eta) or arrived // eta


def when_all_are_in(arrived: int, most: int, eta: int) -> int:
    """The best 1/eta of the rung once nobody else can arrive; one at least, so that somebody reaches the top."""
    return 0 if arrived < most else max(1, arrived // eta)


def rung_steps(first: int, eta: int, max_steps: int) -> tuple[int, ...]:
    """first, first * eta, first * eta**2, ... and max_steps on top."""
    steps = []
    step = first
    while step < max_steps:
        steps.append(step)
        step *= eta
    return (*steps, max_steps)


class Rung:
    """Who arrived at one step count, best first, as far as they still matter."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.arrived = 0
        self.sent_on = 0
        self.standings: list[Standing] = []
        """Of all that arrived, the best; whoever can never be sent on is cut off at the end."""
        self.candidates = 0
        """How many in the standings were not sent on and could be."""
        self.queue: list[Standing] = []
        """The same, as a heap; it may still hold some that were cut off since."""


class Ladder:
    def __init__(self, steps: tuple[int, ...], eta: int, trials: int, quota: Quota, *, minimize: bool) -> None:
        self.trials = trials
        self._eta, self._quota, self._sign = eta, quota, 1.0 if minimize else -1.0
        self._rungs = [Rung(step) for step in steps]
        self._sending = {rung.step: rung for rung in self._rungs[:-1]}

    # -- reading ---------------------------------------------------------------------------------------------------
    def read(self, state: RunView, order: int, rest: Settled) -> None:
        """Take note of somebody's coming to rest; `order` is the number of the rest."""
        rung = self._sending.get(rest.until_step)
        if rung is None:
            return
        if rest.status == "paused" and rest.step < rest.until_step:
            return  # paused by somebody else on its way: it comes to rest once more
        standing = (self._standing(rest), order, rest.job)
        rung.arrived += 1
        insort(rung.standings, standing)
        if state.jobs[rest.job].until_step > rung.step:
            rung.sent_on += 1
        elif rest.status == "paused" and standing[0] < HOPELESS:
            rung.candidates += 1
            heappush(rung.queue, standing)

    def _standing(self, rest: Settled) -> float:
        if rest.status in ("failed", "dropped"):
            return HOPELESS
        if rest.value is None:
            return UNTOLD
        return HOPELESS if math.isnan(rest.value) else self._sign * rest.value

    # -- deciding --------------------------------------------------------------------------------------------------
    def cut_off(self, state: RunView) -> Iterator[d.Decision]:
        """Drop whoever can never be sent on, so that its checkpoints can go.

        Later arrivals only push a trial down, so a trial is out as soon as it ranks behind the largest share that a
        rung can ever send on. `most` counts who may still arrive on a rung: those there, those on their way, those
        below who may be sent on, and those not yet on the ladder.
        """
        most = self.trials
        for rung in self._sending.values():
            share = max(1, most // self._eta)
            while rung.standings and (len(rung.standings) > share or rung.standings[-1][0] == HOPELESS):
                value, _, job_id = rung.standings.pop()
                job = state.jobs[job_id]
                if job.until_step > rung.step or job.status == "finished":
                    continue
                if value < HOPELESS:
                    rung.candidates -= 1
                if not job.over:
                    yield d.DropJob(job=job_id, why=_verdict(rung, value, share, most))
            most = rung.sent_on + rung.candidates + most - rung.arrived

    def send_on(self, state: RunView) -> Iterator[d.Decision]:
        """One trial up, from the highest rung that may send one; nothing if none may."""
        most = self.trials
        ready: tuple[Rung, Rung, Standing, int] | None = None
        for rung, above in zip(self._rungs, self._rungs[1:], strict=False):
            self._forget_dropped(state, rung)
            if rung.queue:
                rank = bisect_left(rung.standings, rung.queue[0])
                if rank < self._quota(rung.arrived, most, self._eta):
                    ready = rung, above, rung.queue[0], rank
            most = rung.sent_on + rung.candidates + most - rung.arrived
        if ready is None:
            return
        rung, above, (_, _, job_id), rank = ready
        heappop(rung.queue)
        rung.sent_on += 1
        rung.candidates -= 1
        part = {2: "half", 3: "third", 4: "quarter"}.get(self._eta, f"1/{self._eta}")
        among = f"among the best {part}" if rung.arrived >= self._eta else "the best of too few to divide"
        why = f"{_nth(rank + 1)} of {rung.arrived} at step {rung.step}: {among}, goes on to step {above.step}"
        yield d.TagJob(job=job_id, tags={"rung": self._rungs.index(above)}, why=why)
        yield d.RunJob(job=job_id, until_step=above.step, slots=state.jobs[job_id].slots, why=why)

    @property
    def first_step(self) -> int:
        return self._rungs[0].step

    def _forget_dropped(self, state: RunView, rung: Rung) -> None:
        """Somebody else may have dropped the next in the queue while it rested: its place goes to the one behind."""
        while rung.queue and state.jobs[rung.queue[0][2]].over:
            standing = heappop(rung.queue)
            index = bisect_left(rung.standings, standing)
            if index < len(rung.standings) and rung.standings[index] == standing:  # else it was cut off before
                del rung.standings[index]
                rung.candidates -= 1


def _verdict(rung: Rung, value: float, share: int, most: int) -> str:
    if value == HOPELESS:
        return f"its metric at step {rung.step} is not a number that could win"
    return f"behind the best {share} of {rung.arrived} at step {rung.step}: of {most} no more than {share} can go on"


def _nth(number: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
    if number <= len(words):
        return words[number - 1]
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


BRACKET = "bracket"


class Climb:
    """The ladders of a search and how much of `state.settled` they have read: a memo, rebuilt whenever it is missing."""

    def __init__(self, ladders: list[Ladder]) -> None:
        self.ladders = ladders
        self._read = 0

    def catch_up(self, state: RunView) -> None:
        rests = state.settled
        for order in range(self._read, len(rests)):
            rest = rests[order]
            self.ladders[int(state.jobs[rest.job].tags.get(BRACKET) or 0)].read(state, order, rest)
        self._read = len(rests)


@dataclass(frozen=True)
class Halving(ABC):
    """Base of the searches on rungs: each says which ladders it has, the rest is the same."""

    eta: int = 3
    """The best 1/eta of a rung are promoted."""
    grace_steps: int = 1
    """The lowest first rung: every trial trains so many steps before it is compared."""
    sampler: Sampler = RANDOM_SAMPLER
    """Where new trials come from."""
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        """Drop trials that can no longer be promoted, promote those that can, and fill free slots with new trials."""
        if state.phase != "running":
            return
        progress = state.memo(self, lambda: Climb(self.ladders(state)))
        progress.catch_up(state)
        for ladder in progress.ladders:
            yield from ladder.cut_off(state)
        while has_room(state):
            decided = len(state.decided)
            for ladder in progress.ladders:
                yield from ladder.send_on(state)
                if len(state.decided) > decided:
                    break
            else:
                if len(state.jobs) >= planned(state.spec):
                    return
                yield from _new_trial(state, progress.ladders, self.sampler)

    @abstractmethod
    def ladders(self, state: RunView) -> list[Ladder]: ...


def _new_trial(state: RunView, ladders: list[Ladder], sampler: Sampler) -> Iterator[d.Decision]:
    spec, number, job = state.spec, len(state.jobs), state.next_job()
    bracket, last_of_bracket = 0, ladders[0].trials
    while number >= last_of_bracket:
        bracket += 1
        last_of_bracket += ladders[bracket].trials
    tags: Tags = {"rung": 0} if len(ladders) == 1 else {BRACKET: bracket, "rung": 0}
    step = ladders[bracket].first_step
    config, origin = supplied(state, number, job, sampler)
    yield d.AddJob(
        job=job,
        config=config,
        tags=tags,
        why=f"{number + 1} of {planned(spec)}, {origin}: nobody is ready to go on",
    )
    yield d.RunJob(job=job, until_step=step, slots=spec.slots, why=f"its first rung is step {step} of {spec.max_steps}")
