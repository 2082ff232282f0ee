"""Leave a spot machine after a time: save, stop, release it, and start on another.

Where a machine that is preempted in its first hour is free of charge, no later hour on the same machine can be free. A
new lease begins a new first hour, and is a new choice among all offers.

Trials that share a machine, and gangs on several, stay: the first to stop would start again where it was. So do trials
that have not made a step on this machine: one that moves more often than it trains makes no progress.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Lease
from shoestring.kernel.types import LeaseId
from shoestring.kernel.view import RunView
from shoestring.market.billing import new_lease_usd
from shoestring.models.speed.progress import reports_left
from shoestring.policies.placement.renting.facts import free_usd
from shoestring.units import show_duration

ROTATE = "rotate:"
HOUR_S = 3600.0
LOOK_AGAIN_S = 600.0
"""How long a trial that could not move is left alone, at least; else as long as it has overstayed: steps may take days,
and trials that share a machine stay for good."""
LAST_SHARE = 0.2
"""In this last share of the time to the deadline trials stay where they are. New machines are on-demand by then, or
soon will be, and there is no time left for a start."""


@dataclass(frozen=True)
class Stay:
    """How long a trial may have a machine."""

    longest_s: float = HOUR_S
    lead_s: float = 180.0
    """How long before the end it is halted: for the current step, and for the save."""
    done_soon_s: float = 600.0
    """A trial that needs no longer than this stays until it is done: a move would cost more than it could save. An idle
    machine with no more time than this is released rather than used."""

    @classmethod
    def of(cls, longest_s: float) -> Self:
        """In the proportions of an hour."""
        return cls(longest_s, longest_s / 20, longest_s / 6)

    @property
    def halt_s(self) -> float:
        """The age at which a machine is left."""
        return self.longest_s - self.lead_s


@dataclass(frozen=True)
class Rotation:
    """Comes before the placement in the chain, which then finds another machine for the halted trial.

    Paper: SpotTune Alg. 1 l.31-35, corrected

    Differs from the paper: a machine is left before its hour is over, not after it, when nothing can be refunded any
    more. A trial that is nearly done stays, and so do all near the deadline or without money for another machine.
    """

    stay: Stay = Stay()
    wants: ClassVar[frozenset[Waker]] = frozenset({e.LeaseGranted, e.SegmentEnded, e.TimerFired, d.RunJob})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase == "running":
            yield from leave_in_time(state, event, self.stay, lambda lease: lease.offer.spot)


def leave_in_time(state: RunView, event: e.Event, stay: Stay, rotates: Callable[[Lease], bool]) -> Iterator[d.Decision]:
    """What is due now on all machines for which `rotates` is true. Idle ones are released before a trial starts
    there."""
    for lease in [state.leases[lease_id] for lease_id in state.idle]:
        if rotates(lease) and _age_s(state, lease) >= stay.halt_s - stay.done_soon_s and _can_move(state, lease):
            yield d.ReleaseLease(
                lease=lease.id, why=f"released: idle, and its {show_duration(stay.longest_s)} are nearly over"
            )
    match event:
        case e.LeaseGranted(lease=lease_id) if lease_id in state.leases and rotates(state.leases[lease_id]):
            yield _look(lease_id, state.now + stay.halt_s, f"its {show_duration(stay.longest_s)} are over soon")
        case e.TimerFired(name=name) if name.startswith(ROTATE):
            held = state.leases.get(LeaseId(name.removeprefix(ROTATE)))
            if held is not None and held.usable:
                yield from _leave(state, held, stay)


def _leave(state: RunView, lease: Lease, stay: Stay) -> Iterator[d.Decision]:
    segments = state.segments_on(lease.id)
    alone = len(segments) == 1 and len(segments[0].leases) == 1
    again_s = max(LOOK_AGAIN_S, _age_s(state, lease) - stay.halt_s)
    if alone and _can_move(state, lease):
        (segment,) = segments
        pace = segment.pace
        step_s = pace.seconds / pace.steps if pace.steps else math.inf
        left = segment.until_step - segment.step
        left_s = step_s * (reports_left(state, segment.step) if state.spec.until_exit else left)
        if left_s <= stay.done_soon_s:
            again_s = max(left_s, 1.0)
        elif pace.steps and not segment.halting and segment.id not in state.draining:
            yield d.HaltSegment(
                segment=segment.id,
                grace_s=max(state.spec.slice_s, 3 * step_s),  # time to finish the current step, which would be lost
                why=f"moved to another machine: it has had {lease.id} for {show_duration(_age_s(state, lease))}",
            )
    yield _look(lease.id, state.now + again_s, "look again: the trial on it may have to move")


def _look(lease: LeaseId, at: float, why: str) -> d.WakeAt:
    return d.WakeAt(name=f"{ROTATE}{lease}", at=at, about=lease, why=why)


def _age_s(state: RunView, lease: Lease) -> float:
    return 0.0 if lease.granted_at is None else state.now - lease.granted_at


def _can_move(state: RunView, lease: Lease) -> bool:
    """Is there time, and money for a slice of a machine like this beside what this one may still cost?"""
    if state.deadline_at - state.now < LAST_SHARE * state.spec.deadline_s:
        return False
    listing = state.listings[lease.offer]
    ceiling = listing.ceiling_usd_per_hour(lease.max_usd_per_hour)
    return new_lease_usd(listing.billing, state.spec.slice_s, ceiling) <= free_usd(state)
