"""Orders that a journal leaves pending: decisions that may not have been carried out, timers that have not fired."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.types import LeaseId, SegmentId


class PendingOrders:
    """The fold of a journal that a restarted live world needs: it re-issues all of this, idempotently."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.leases: dict[LeaseId, dict[type, d.Decision]] = {}
        """Open leases: the latest order of each kind."""
        self.granted_at: dict[LeaseId, float] = {}
        self.notices: dict[LeaseId, e.RevocationNoticed] = {}
        self.segments: dict[SegmentId, dict[type, d.Decision]] = {}
        self.drops: list[d.DropCheckpoint] = []
        self.background_tasks: dict[str, d.Think] = {}
        self.timers: dict[str, d.WakeAt] = {}
        for entry in entries:
            self._happened(entry.event)
            for decision in entry.decisions:
                self._decided(decision)

    def _happened(self, event: e.Event) -> None:
        match event:
            case e.LeaseGranted(lease=lease, at=at) if lease in self.leases:
                self.granted_at[lease] = at
            case e.RevocationNoticed(lease=lease) if lease in self.leases:
                self.notices[lease] = event
            case e.LeaseDenied(lease=lease) | e.LeaseEnded(lease=lease):
                self.leases.pop(lease, None)
                self.granted_at.pop(lease, None)
                self.notices.pop(lease, None)
                self.timers = {name: timer for name, timer in self.timers.items() if timer.about != lease}
            case e.SegmentEnded(segment=segment):
                self.segments.pop(segment, None)
            case e.CheckpointSaved(segment=segment) if segment in self.segments:
                self.segments[segment].pop(d.SaveCheckpoint, None)
            case e.ThoughtReady(name=name):
                self.background_tasks.pop(name, None)
            case e.TimerFired(name=name, at=at) if name in self.timers and self.timers[name].at <= at:
                del self.timers[name]
            case _:
                pass

    def _decided(self, decision: d.Decision) -> None:
        match decision:
            case d.RequestLease(lease=lease):
                self.leases[lease] = {d.RequestLease: decision}
            case d.ExtendLease(lease=lease) | d.ReleaseLease(lease=lease) if lease in self.leases:
                self.leases[lease][type(decision)] = decision
            case d.StartSegment(segment=segment):
                self.segments[segment] = {d.StartSegment: decision}
            case d.PlanSaves(segment=segment) | d.SaveCheckpoint(segment=segment) | d.HaltSegment(segment=segment) if (
                segment in self.segments
            ):
                self.segments[segment][type(decision)] = decision
            case d.DropCheckpoint():
                self.drops.append(decision)
            case d.Think(name=name):
                self.background_tasks[name] = decision
            case d.WakeAt(name=name):
                self.timers[name] = decision
            case _:
                pass

    def prepaid(self, lease: LeaseId) -> d.RequestLease:
        """The request of an open lease, with the end it has been extended to."""
        request, extension = self.leases[lease][d.RequestLease], self.leases[lease].get(d.ExtendLease)
        assert isinstance(request, d.RequestLease)
        if isinstance(extension, d.ExtendLease):
            return msgspec.structs.replace(request, end_by=extension.end_by, reserve_usd=extension.reserve_usd)
        return request

    def orders(self) -> Iterable[d.Decision]:
        """All orders to issue again: machines before what runs on them."""
        for orders in (*self.leases.values(), *self.segments.values()):
            yield from orders.values()
        yield from self.drops
        yield from self.background_tasks.values()
        yield from self.timers.values()
