"""A ladder of rungs: trials are promoted from one step count to the next, the top share of each rung.

Successive halving, ASHA and the brackets of Hyperband are all this; they differ in when a rung may promote trials.

A ladder has no state of its own. It is a fold of `state.settled` (which trial settled on which rung with which value)
and of the status and target step of each job, so one that is rebuilt from the state gives the same decisions as one
that has followed it since the start. Searches keep it as a memo and read only new entries: in a study of 100,000 trials
an event costs a search in a sorted list, not a scan of all jobs. (Inserting a value into that list moves memory, 8
bytes for each trial that ranks behind: 7 microseconds in all with 33,000 of them.) When something else has pruned or
resumed a trial that a ladder counts as paused, it is read from the start.
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
    has_free_slot,
    next_config,
    planned,
)

Standing = tuple[float, int, JobId]
"""Smaller is better: the value, then the order of arrival."""
Quota = Callable[[int, int, int], int]
"""(arrived, most, eta) -> how many of those that arrived on a rung may be promoted, if `most` can ever arrive."""

HOPELESS = math.inf
UNREPORTED = 1.7e308
"""A trial without a report ranks behind all others, but unlike one that diverged or failed it may be promoted."""


def asynchronous_quota(arrived: int, most: int, eta: int) -> int:
    """The top 1/eta of those that have arrived, without waiting for the others."""
    return synchronous_quota(arrived, most, eta) or arrived // eta


def synchronous_quota(arrived: int, most: int, eta: int) -> int:
    """The top 1/eta of the rung once no more can arrive; at least one, so that a trial reaches max_steps."""
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
    """The trials that arrived at one step count, best first, as far as they still matter."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.arrived = 0
        self.promoted = 0
        self.standings: list[Standing] = []
        """Of all that arrived, the best; trials that can never be promoted are removed from the end."""
        self.candidates = 0
        """How many in the standings were not promoted and could be."""
        self.queue: list[Standing] = []
        """The same, as a heap; it may still hold some that were pruned since."""


class Ladder:
    def __init__(self, steps: tuple[int, ...], eta: int, trials: int, quota: Quota, *, minimize: bool) -> None:
        self.trials = trials
        self._eta, self._quota, self._sign = eta, quota, 1.0 if minimize else -1.0
        self._rungs = [Rung(step) for step in steps]
        self._promoting = {rung.step: rung for rung in self._rungs[:-1]}

    # -- reading ---------------------------------------------------------------------------------------------------
    def read(self, state: RunView, order: int, entry: Settled) -> None:
        """Record that a trial settled; `order` is its index in `state.settled`."""
        rung = self._promoting.get(entry.until_step)
        if rung is None:
            return
        if entry.status == "paused" and entry.step < entry.until_step:
            return  # paused by another policy on its way: it will settle again
        standing, job = (self._standing(entry), order, entry.job), state.jobs[entry.job]
        promoted = job.until_step > rung.step
        rung.arrived += 1
        if entry.status == "paused" and job.over and not promoted:
            return  # pruned since: the one behind has its rank
        insort(rung.standings, standing)
        if promoted:
            rung.promoted += 1
        elif entry.status == "paused" and standing[0] < HOPELESS:
            rung.candidates += 1
            heappush(rung.queue, standing)

    def _standing(self, entry: Settled) -> float:
        if entry.status in ("failed", "pruned"):
            return HOPELESS
        if entry.value is None:
            return UNREPORTED
        return HOPELESS if math.isnan(entry.value) else self._sign * entry.value

    # -- deciding --------------------------------------------------------------------------------------------------
    def prune(self, state: RunView) -> Iterator[d.Decision]:
        """Prune trials that can never be promoted, so that their checkpoints can be deleted.

        Later arrivals only push a trial down, so a trial is pruned as soon as it ranks behind the largest share that a
        rung can ever promote. `most` is how many may ever arrive on a rung: those there, those on their way, those
        below that may be promoted, and those not yet started.
        """
        most = self.trials
        for rung in self._promoting.values():
            share = max(1, most // self._eta)
            while rung.standings and (len(rung.standings) > share or rung.standings[-1][0] == HOPELESS):
                value, _, job_id = rung.standings.pop()
                job = state.jobs[job_id]
                if job.until_step > rung.step or job.status == "finished":
                    continue
                if value < HOPELESS:
                    rung.candidates -= 1
                if not job.over:
                    yield d.DropJob(job=job_id, why=_why_pruned(rung, value, share, most))
            most = rung.promoted + rung.candidates + most - rung.arrived

    def promote(self, state: RunView) -> Iterator[d.Decision]:
        """Promote one trial, from the highest rung that may promote one; nothing if none may."""
        most = self.trials
        ready: tuple[Rung, Rung, Standing, int] | None = None
        for rung, above in zip(self._rungs, self._rungs[1:], strict=False):
            while rung.queue and state.jobs[rung.queue[0][2]].over:
                heappop(rung.queue)
            if rung.queue:
                rank = bisect_left(rung.standings, rung.queue[0])
                if rank < self._quota(rung.arrived, most, self._eta):
                    ready = rung, above, rung.queue[0], rank
            most = rung.promoted + rung.candidates + most - rung.arrived
        if ready is None:
            return
        rung, above, (_, _, job_id), rank = ready
        heappop(rung.queue)
        rung.promoted += 1
        rung.candidates -= 1
        part = {2: "half", 3: "third", 4: "quarter"}.get(self._eta, f"1/{self._eta}")
        quota = f"in the top {part}" if rung.arrived >= self._eta else f"best of fewer than eta={self._eta}"
        why = f"ranked {rank + 1} of {rung.arrived} at step {rung.step}, {quota}"
        yield d.TagJob(job=job_id, tags={"rung": self._rungs.index(above)}, why=why)
        yield d.RunJob(job=job_id, until_step=above.step, slots=state.jobs[job_id].slots, why=why)

    @property
    def first_step(self) -> int:
        return self._rungs[0].step


def _why_pruned(rung: Rung, value: float, share: int, most: int) -> str:
    if value == HOPELESS:
        return f"pruned at step {rung.step}: its metric is NaN or infinite"
    return (
        f"pruned at step {rung.step}: not in the top {share} of {rung.arrived} so far, "
        f"at most {share} of {most} can be promoted"
    )


BRACKET = "bracket"


class LadderProgress:
    """The ladders of a search, and how much of `state.settled` they have read: a memo, rebuilt whenever it is
    missing."""

    def __init__(self, begin: Callable[[], list[Ladder]]) -> None:
        self._begin = begin
        self._restart()

    def _restart(self) -> None:
        self.ladders = self._begin()
        self._read = self._paused = 0

    def catch_up(self, state: RunView) -> None:
        """Read what is new. Trials become paused by settling, and leave that status by this search's own decisions: if
        the number of them says otherwise, something else decided, and what was read does not hold."""
        settled = state.settled
        newly = sum(settled[order].status == "paused" for order in range(self._read, len(settled)))
        if state.count("paused") != self._paused + newly:
            self._restart()
        for order in range(self._read, len(settled)):
            entry = settled[order]
            self.ladders[int(state.jobs[entry.job].tags.get(BRACKET) or 0)].read(state, order, entry)
        self._read = len(settled)
        self.decided(state)

    def decided(self, state: RunView) -> None:
        """To be called after the search's own decisions, which the ladders know."""
        self._paused = state.count("paused")


@dataclass(frozen=True)
class Halving(ABC):
    """Base of the searches on rungs: each subclass defines its ladders, the rest is shared."""

    eta: int = 3
    """The top 1/eta of a rung are promoted."""
    grace_steps: int = 1
    """The lowest first rung: every trial trains so many steps before it is ranked."""
    sampler: Sampler = RANDOM_SAMPLER
    """Where new trials come from."""
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        """Prune trials that can no longer be promoted, promote those that can, and fill free slots with new trials."""
        if state.phase != "running":
            return
        progress = state.memo(self, lambda: LadderProgress(lambda: self.ladders(state)))
        progress.catch_up(state)
        for ladder in progress.ladders:
            yield from ladder.prune(state)
        yield from self._fill(state, progress.ladders)
        progress.decided(state)

    def _fill(self, state: RunView, ladders: list[Ladder]) -> Iterator[d.Decision]:
        while has_free_slot(state):
            decided = len(state.decided)
            for ladder in ladders:
                yield from ladder.promote(state)
                if len(state.decided) > decided:
                    break
            else:
                if len(state.jobs) >= planned(state.spec):
                    return
                yield from _new_trial(state, ladders, self.sampler)

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
    config, origin = next_config(state, number, job, sampler)
    yield d.AddJob(
        job=job,
        config=config,
        tags=tags,
        why=f"trial {number + 1} of {planned(spec)}, {origin}: no trial is ready for promotion",
    )
    yield d.RunJob(job=job, until_step=step, slots=spec.slots, why=f"first rung: step {step} of {spec.max_steps}")
