"""RunView: the read-only view of the state that policies and the guard get, and their source of randomness.

Prices can be queried only up to the event being handled: there is no argument for later ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeVar, cast

from shoestring.kernel.decisions import Decision, Refused
from shoestring.kernel.records import (
    Account,
    GivenBack,
    Job,
    Latency,
    Lease,
    Pace,
    Phase,
    Segment,
    Setback,
    Settled,
    Timing,
    Where,
)
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import JobId, LeaseId, Listing, Offer, PriceHistory, SegmentId

T = TypeVar("T")


class RunView:
    __slots__ = ("_state",)

    def __init__(self, state: RunState) -> None:
        self._state = state

    # -- the run ---------------------------------------------------------------------------------------------------
    @property
    def spec(self) -> RunSpec:
        return self._state.the_spec

    @property
    def now(self) -> float:
        return self._state.now

    @property
    def started_at(self) -> float:
        return self._state.started_at

    @property
    def deadline_at(self) -> float:
        return self._state.deadline_at

    @property
    def phase(self) -> Phase:
        return self._state.phase

    @property
    def ending(self) -> str:
        return self._state.ending

    @property
    def decided(self) -> Sequence[Decision]:
        """What was decided in this turn so far, by the policies before and by the current one."""
        return self._state.decided

    @property
    def timers(self) -> Mapping[str, float]:
        return self._state.timers

    @property
    def background_tasks(self) -> Collection[str]:
        """Names of those that have not returned yet."""
        return self._state.background_tasks.keys()

    # -- jobs ------------------------------------------------------------------------------------------------------
    @property
    def jobs(self) -> Mapping[JobId, Job]:
        return self._state.jobs

    @property
    def waiting(self) -> Collection[JobId]:
        """Jobs that are to run and have no machine, in the order in which they began to wait."""
        return self._state.waiting.keys()

    def count(self, status: str) -> int:
        return self._state.by_status[status]

    @property
    def best(self) -> JobId | None:
        return self._state.best

    @property
    def settled(self) -> Sequence[Settled]:
        """Every time a job settled, in order: what a search learns from. Only ever appended to."""
        return self._state.settled

    def next_job(self) -> JobId:
        return JobId(f"j{len(self._state.jobs)}")

    # -- machines --------------------------------------------------------------------------------------------------
    @property
    def leases(self) -> Mapping[LeaseId, Lease]:
        return self._state.leases

    @property
    def with_free_slots(self) -> Collection[LeaseId]:
        """Usable leases with at least one free slot."""
        return self._state.with_free_slots.keys()

    @property
    def idle(self) -> Collection[LeaseId]:
        """Usable leases with nothing on them, longest idle first."""
        return self._state.idle.keys()

    @property
    def pending(self) -> Collection[LeaseId]:
        """Leases requested and not yet granted."""
        return self._state.pending.keys()

    @property
    def in_hand(self) -> int:
        """Leases that count against `max_machines`: not those on notice or being released, so that they can be
        replaced."""
        return len(self._state.leases) - len(self._state.on_notice)

    @property
    def segments(self) -> Mapping[SegmentId, Segment]:
        return self._state.segments

    @property
    def draining(self) -> Collection[SegmentId]:
        """Open segments whose job is paused, pruned or to run on other slots, and which are not halted yet."""
        return self._state.draining.keys()

    def segments_on(self, lease: LeaseId) -> list[Segment]:
        held = self._state.leases.get(lease)
        return [] if held is None else [self._state.segments[s] for s in held.segments]

    def next_lease(self) -> LeaseId:
        return LeaseId(f"l{self._state.leases_made}")

    def next_segment(self) -> SegmentId:
        return SegmentId(f"s{self._state.segments_made}")

    # -- market ----------------------------------------------------------------------------------------------------
    @property
    def listings(self) -> Mapping[Offer, Listing]:
        return self._state.listings

    @property
    def largest_slots(self) -> int:
        """Slots of the largest machine the run may rent."""
        return self._state.largest_slots

    @property
    def places(self) -> int:
        """How many trials of one worker can run at once: on each of `max_machines` machines of the largest type, as
        many as fit whole. Where configurations name machines, each trial has its own.

        The one count of all that depends on it: how many trials a search keeps waiting, and behind which of them
        placement counts a trial as queued."""
        spec = self._state.the_spec
        if spec.space.roles:
            return spec.max_machines
        return max(1, spec.max_machines * (self._state.largest_slots // spec.slots))

    def usd_per_hour(self, offer: Offer) -> float:
        """The price now."""
        if self._state.feed is None:
            raise RuntimeError("this run has no price feed")
        return self._state.feed.usd_per_hour(offer, self._state.now)

    def history(self, offer: Offer) -> PriceHistory:
        """Prices up to now."""
        if self._state.feed is None:
            raise RuntimeError("this run has no price feed")
        return self._state.feed.history(offer, self._state.now)

    # -- speed -----------------------------------------------------------------------------------------------------
    def paces(self, job: Job) -> dict[Where, Pace]:
        """How fast a trial trains, in steps of `max_steps`, its open segment included.

        A job of a bag is done when its code ends, at whatever step: once it has finished, what it did everywhere is
        scaled so that all of it is `max_steps`. Until then an open-ended one tells nothing about its length."""
        paces, spec = self.reported_paces(job), self._state.spec
        if spec is None or not spec.until_exit:
            return paces
        if job.status != "finished":
            return {} if spec.open_ended else paces
        scale = spec.max_steps / job.step if job.step else 1
        return {where: Pace(pace.steps * scale, pace.seconds) for where, pace in paces.items()}

    def reported_paces(self, job: Job) -> dict[Where, Pace]:
        """All that a trial has reported about its speed, in the steps it reported, its open segment included."""
        paces = {where: pace for where, pace in job.paces.items() if pace.steps > 0 and pace.seconds > 0}
        if job.segment is not None:
            segment = self._state.segments[job.segment]
            now, where = segment.pace, (segment.machine, segment.slots)
            if now.steps > 0 and now.seconds > 0:
                before = paces.get(where)
                paces[where] = now if before is None else Pace(before.steps + now.steps, before.seconds + now.seconds)
        return paces

    @property
    def timings(self) -> Mapping[Latency, Timing]:
        """How long machines and trials took to start, and checkpoints to be saved, since the run began."""
        return self._state.timings

    # -- money -----------------------------------------------------------------------------------------------------
    @property
    def spent_usd(self) -> float:
        """Billed so far."""
        return self._state.spent_usd

    @property
    def reserved_usd(self) -> float:
        return self._state.reserved_usd

    @property
    def accounts(self) -> Mapping[Offer, Account]:
        return self._state.accounts

    @property
    def refused(self) -> Refused | None:
        return self._state.refused

    @property
    def refusals(self) -> int:
        return self._state.refusals

    @property
    def denials(self) -> int:
        return self._state.denials

    @property
    def denied_at(self) -> Mapping[Offer, float]:
        return self._state.denied_at

    @property
    def setbacks(self) -> Mapping[Offer, Setback]:
        """Offers whose latest requests gave no machine to work on."""
        return self._state.setbacks

    @property
    def given_back(self) -> GivenBack:
        return self._state.given_back

    @property
    def last_lease_at(self) -> float:
        """When a lease was last requested, granted, denied or ended."""
        return self._state.last_lease_at

    # -- cache --------------------------------------------------------------------------------------
    def memo(self, owner: Hashable, derive: Callable[[], T]) -> T:
        """A cache: what `owner` derived from this state before, or derives now.

        For work that can be resumed (reading on in `settled`), not for memory: it is lost in a crash, and a policy must
        decide the same without it (`PolicySuite` clears it at every turn).
        """
        memos = self._state.memos
        if owner not in memos:
            memos[owner] = derive()
        return cast(T, memos[owner])

    # -- randomness ----------------------------------------------------------------------------------------------------
    def rng(self, label: str) -> random.Random:
        """A generator made from (seed, label, entry): the same on every replay; two draws need two labels."""
        return random.Random(stable_seed(self._state.seed, label, self._state.seq))

    def fixed_rng(self, label: str) -> random.Random:
        """A generator made from (seed, label) alone: the same at every call. The tenth trial of a seed is the same
        configuration in whatever order events arrive."""
        return random.Random(stable_seed(self._state.seed, label))


def stable_seed(*parts: object) -> int:
    """The same number for the same parts, on every machine and in every process (unlike `hash`)."""
    return int.from_bytes(blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest(), "big")
