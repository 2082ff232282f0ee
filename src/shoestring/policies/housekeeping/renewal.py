"""Leases are prepaid in slices. Renewal prepays the next slice at half time, as long as the guard allows it.

A machine whose controller has died is not renewed and ends by itself: this bounds the cost of a dead controller. On a
machine that can no longer be paid, segments are halted `wind_down_s` before its end, so that their work is saved while
there is money. Their workers do the same by themselves, and placement starts nothing later than that.
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
LEAVE = "leave:"
LAST_CALLS = 2.0
"""The last attempt to prepay more comes this many times `wind_down_s` before the end: before workers begin to leave."""


@dataclass(frozen=True)
class Renewal:
    wants: ClassVar[frozenset[Waker]] = frozenset((e.LeaseGranted, e.TimerFired))

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        match event:
            case e.LeaseGranted(lease=lease) if lease in state.leases:
                yield from self._granted(state, lease)
            case e.TimerFired(name=name) if name.startswith(RENEW):
                yield from self._renew(state, LeaseId(name.removeprefix(RENEW)))
            case e.TimerFired(name=name) if name.startswith(LAST_CALL):
                yield from self._last_call(state, LeaseId(name.removeprefix(LAST_CALL)))
            case e.TimerFired(name=name) if name.startswith(LEAVE):
                yield from self._leave(state, LeaseId(name.removeprefix(LEAVE)))

    def _granted(self, state: RunView, lease_id: LeaseId) -> Iterator[d.Decision]:
        """A machine that came up late has little prepaid time left, and placement may have started a trial on it."""
        lease = state.leases[lease_id]
        if lease.segments and lease.end_by - state.now <= state.spec.wind_down_s:
            yield from self._renew(state, lease_id)
        else:
            yield self._next_wake(state, lease_id)

    def _renew(self, state: RunView, lease_id: LeaseId) -> Iterator[d.Decision]:
        lease = state.leases.get(lease_id)
        if lease is None or not lease.usable or state.phase != "running":
            return
        yield self._next_slice(state, lease)
        yield self._next_look(state, lease)

    def _last_call(self, state: RunView, lease_id: LeaseId) -> Iterator[d.Decision]:
        """Try once more: most of what was reserved at the maximum price is free again."""
        lease = state.leases.get(lease_id)
        if lease is None:
            return
        if lease.segments and lease.usable and state.phase == "running":
            before = lease.end_by
            yield self._next_slice(state, lease)
            if lease.end_by - before > state.spec.wind_down_s:
                yield self._next_look(state, lease)
                return
        yield self._leave_at(state, lease)

    def _leave(self, state: RunView, lease_id: LeaseId) -> Iterator[d.Decision]:
        """Save while it is paid."""
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
        last_call = lease.end_by - LAST_CALLS * state.spec.wind_down_s
        if last_call <= state.now:
            return self._leave_at(state, lease)
        return d.WakeAt(
            name=f"{LAST_CALL}{lease.id}",
            at=last_call,
            about=lease.id,
            why="not renewed for a whole slice: try once more before the prepaid time ends",
        )

    def _leave_at(self, state: RunView, lease: Lease) -> d.WakeAt:
        return d.WakeAt(
            name=f"{LEAVE}{lease.id}",
            at=max(state.now, lease.end_by - state.spec.wind_down_s),
            about=lease.id,
            why="not renewed: save before the prepaid time ends",
        )

    def _next_wake(self, state: RunView, lease_id: LeaseId) -> d.WakeAt:
        spec = state.spec
        # At half time; where trials save for long, soon enough that none of them begins to leave before.
        before_s = max(spec.slice_s / 2, min(LAST_CALLS * spec.wind_down_s, (spec.slice_s + spec.wind_down_s) / 2))
        return d.WakeAt(
            name=f"{RENEW}{lease_id}",
            at=max(state.now, state.leases[lease_id].end_by - before_s),
            about=lease_id,
            why="prepaid time is half over then",
        )


def _busy(segments: int) -> str:
    return f"{segments} running" if segments else "idle, kept for the next job"
