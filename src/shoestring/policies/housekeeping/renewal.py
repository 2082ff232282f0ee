"""Leases are prepaid in slices. Renewal prepays the next slice at half time, as long as the guard allows it.

A machine whose controller has died is not renewed and ends by itself: this bounds the cost of a dead controller. On a
machine that can no longer be paid, segments are halted in time, so that their work is saved while there is money.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Lease
from shoestring.kernel.types import LeaseId
from shoestring.kernel.view import RunView

RENEW = "renew:"
LAST_CALL = "last-call:"


@dataclass(frozen=True)
class Renewal:
    wants: ClassVar[frozenset[Waker]] = frozenset((e.LeaseGranted, e.TimerFired))

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        match event:
            case e.LeaseGranted(lease=lease) if lease in state.leases:
                yield self._next_wake(state, lease)
            case e.TimerFired(name=name) if name.startswith(RENEW):
                yield from self._renew(state, LeaseId(name.removeprefix(RENEW)))
            case e.TimerFired(name=name) if name.startswith(LAST_CALL):
                yield from self._last_call(state, LeaseId(name.removeprefix(LAST_CALL)))

    def _renew(self, state: RunView, lease_id: LeaseId) -> Iterator[d.Decision]:
        lease = state.leases.get(lease_id)
        if lease is None or not lease.usable or state.phase != "running":
            return
        yield self._next_slice(state, lease)
        yield self._next_look(state, lease)

    def _last_call(self, state: RunView, lease_id: LeaseId) -> Iterator[d.Decision]:
        """Try once more: most of what was reserved at the maximum price is free again. Else save while it is paid."""
        lease = state.leases.get(lease_id)
        if lease is None or not lease.segments:
            return
        if lease.usable and state.phase == "running":
            before = lease.end_by
            yield self._next_slice(state, lease)
            if lease.end_by - before > state.spec.wind_down_s:
                yield self._next_look(state, lease)
                return
        for segment in state.segments_on(lease_id):
            if not segment.halting:
                yield d.HaltSegment(
                    segment=segment.id,
                    grace_s=state.spec.wind_down_s,
                    why="the prepaid time of its machine ends, and the budget pays no more",
                )

    def _next_slice(self, state: RunView, lease: Lease) -> d.ExtendLease:
        return d.ExtendLease(
            lease=lease.id,
            end_by=state.now + state.spec.slice_s,
            why=f"{_busy(len(lease.segments))}: prepay the next slice",
        )

    def _next_look(self, state: RunView, lease: Lease) -> d.WakeAt:
        """After an extension, whole, cut short or refused."""
        if lease.end_by >= state.now + state.spec.slice_s:
            return self._next_wake(state, lease.id)
        return d.WakeAt(
            name=f"{LAST_CALL}{lease.id}",
            at=max(state.now, lease.end_by - state.spec.wind_down_s),
            about=lease.id,
            why="not renewed for a whole slice: save before the prepaid time ends",
        )

    def _next_wake(self, state: RunView, lease_id: LeaseId) -> d.WakeAt:
        half_time = state.leases[lease_id].end_by - state.spec.slice_s / 2
        return d.WakeAt(
            name=f"{RENEW}{lease_id}",
            at=max(state.now, half_time),
            about=lease_id,
            why="prepaid time is half over then",
        )


def _busy(segments: int) -> str:
    return f"{segments} running" if segments else "idle, kept for the next job"
