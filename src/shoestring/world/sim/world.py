"""SimWorld: the event heap. Jumps from one future event to the next; the code above it is the same as in a live run.

Laws: everything follows from the seed and the decisions (no clock, no global random state); a decision takes effect at
the time of the event it answers, so the next step of a segment is put on the heap only after that event has been
answered; when a machine ends, its segments end first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush, heappushpop
from typing import Any

import msgspec

from shoestring.errors import JournalDamaged, ShoestringError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.background import run_task
from shoestring.kernel.codec import encode_turn
from shoestring.kernel.history import RecordedEvents
from shoestring.kernel.policy import PriceFeed
from shoestring.kernel.types import EndCause, LeaseId, SegmentCause, SegmentId
from shoestring.market.simulated.provider import Grant, SimulatedProvider
from shoestring.world.sim.segment import SimSegment, follow_up
from shoestring.world.sim.workload import Latencies, SnapshotAt, Workload

_EXTERNAL = (e.RunStarted, e.UserAsked, e.PolicyBroke)


class _SimLease(msgspec.Struct, kw_only=True):
    request: d.RequestLease
    end_by: float
    granted_at: float | None = None
    over: bool = False
    segments: dict[SegmentId, None] = {}


class SimWorld:
    """A provider, a workload and a heap of the events to come unless a decision changes them."""

    def __init__(
        self, provider: SimulatedProvider, workload: Workload, latencies: Latencies | None = None, *, start: float
    ) -> None:
        self.provider = provider
        self.workload = workload
        self.latencies = latencies or Latencies()
        self.now = start
        self._heap: list[tuple[float, int, Callable[[float, Any], e.Event | None], Any]] = []
        self._pushed = 0
        self._on_step = self._stepped
        self._due: deque[e.Event] = deque()
        """Events of the current time, which come before anything on the heap."""
        self._answered: SimSegment | None = None
        """The segment of the report returned last: it continues once that report has been answered."""
        self._leases: dict[LeaseId, _SimLease] = {}
        self._segments: dict[SegmentId, SimSegment] = {}
        self._timers: dict[str, float] = {}
        self._orders: dict[type, Callable[[Any], None]] = {
            d.RequestLease: self._request,
            d.ExtendLease: self._extend,
            d.ReleaseLease: self._release,
            d.StartSegment: self._start,
            d.PlanSaves: self._plan_saves,
            d.SaveCheckpoint: self._save,
            d.HaltSegment: self._halt,
            d.WakeAt: self._wake_at,
            d.Think: self._run_background,
        }

    @property
    def feed(self) -> PriceFeed:
        return self.provider.feed

    # -- World -----------------------------------------------------------------------------------------------------
    def attach(self, past: RecordedEvents) -> None:
        """Simulate the recorded run again, turn by turn: the heap then holds the events still to come."""
        for entry in past.entries:
            recorded = entry.event
            if isinstance(recorded, _EXTERNAL):
                self.now = max(self.now, recorded.at)
            else:
                event = self.next_event()
                if not _same(event, recorded):
                    raise JournalDamaged(
                        f"entry {entry.seq} records {recorded!r}, but this simulation gives {event!r}",
                        hint="resume with the same market, workload and seed as before, or start a new run",
                    )
            for decision in entry.decisions:
                self.carry_out(decision)

    def next_event(self) -> e.Event:
        segment, next_step = self._answered, None
        if segment is not None:
            self._answered = None
            if segment.undisturbed and segment.step < segment.until_step and self.now < segment.save_at:  # usual
                self._pushed += 1
                next_step = (self.now + segment.step_s, self._pushed, self._on_step, segment)
            elif segment.open:
                self._continue(segment)
        while True:
            if self._due:
                if next_step is not None:
                    heappush(self._heap, next_step)
                return self._due.popleft()
            if next_step is not None:  # push and pop in one: reports are most of the traffic
                at, _, happen, subject = heappushpop(self._heap, next_step)
                next_step = None
            elif self._heap:
                at, _, happen, subject = heappop(self._heap)
            else:
                raise ShoestringError("the simulated world has no events left, and the run is not over")
            if at > self.now:
                self.now = at
            event = happen(at, subject)
            if event is not None:
                return event

    def carry_out(self, decision: d.Decision) -> None:
        order = self._orders.get(type(decision))
        if order is not None:
            order(decision)

    def _push(self, at: float, happen: Callable[[float, Any], e.Event | None], subject: Any) -> None:
        self._pushed += 1
        heappush(self._heap, (at, self._pushed, happen, subject))

    # -- machines --------------------------------------------------------------------------------------------------
    def _request(self, request: d.RequestLease) -> None:
        self._leases[request.lease] = lease = _SimLease(request=request, end_by=request.end_by)
        outcome = self.provider.grant(request, self.now)
        if isinstance(outcome, Grant):
            self._push(outcome.at, self._granted, lease)
        else:
            self._push(min(self.now + self.provider.denial_s, lease.end_by), self._denied, (lease, outcome))

    def _denied(self, at: float, subject: Any) -> e.Event | None:
        lease, reason = subject
        if lease.over:
            return None
        lease.over = True
        del self._leases[lease.request.lease]
        return e.LeaseDenied(at=at, lease=lease.request.lease, reason=reason)

    def _granted(self, at: float, lease: _SimLease) -> e.Event | None:
        if lease.over:
            return None
        lease.granted_at = at
        request = lease.request
        self._push(lease.end_by, self._expired, lease)
        revocation = self.provider.revocation(request.lease, request.offer, at, request.max_usd_per_hour)
        if revocation is not None:
            notice_at, gone_at = revocation
            if notice_at < gone_at:
                self._push(notice_at, self._noticed, (lease, gone_at))
            self._push(gone_at, self._revoked, lease)
        return e.LeaseGranted(at=at, lease=request.lease)

    def _noticed(self, at: float, subject: Any) -> e.Event | None:
        lease, gone_at = subject
        if lease.over:
            return None
        for segment_id in lease.segments:
            self._segments[segment_id].halt()
        return e.RevocationNoticed(at=at, lease=lease.request.lease, gone_at=gone_at)

    def _revoked(self, at: float, lease: _SimLease) -> e.Event | None:
        return self._end(at, lease, "revoked")

    def _expired(self, at: float, lease: _SimLease) -> e.Event | None:
        if lease.end_by > at:  # extended since
            self._push(lease.end_by, self._expired, lease)
            return None
        return self._end(at, lease, "expired")

    def _extend(self, extension: d.ExtendLease) -> None:
        lease = self._leases.get(extension.lease)
        if lease is not None:
            lease.end_by = extension.end_by

    def _release(self, order: d.ReleaseLease) -> None:
        lease = self._leases.get(order.lease)
        if lease is not None:
            self._push(min(lease.end_by, self.now + self.latencies.release_s), self._released, lease)

    def _released(self, at: float, lease: _SimLease) -> e.Event | None:
        return self._end(at, lease, "released")

    def _end(self, at: float, lease: _SimLease, cause: EndCause) -> e.Event | None:
        if lease.over:
            return None
        lease.over = True
        request = lease.request
        del self._leases[request.lease]
        for segment_id in list(lease.segments):
            self._due.append(self._close(self._segments[segment_id], at, "lost"))
        charged = refunded = 0.0
        if lease.granted_at is not None:
            bill = self.provider.bill(request.offer, request.max_usd_per_hour, lease.granted_at, at, cause)
            charged, refunded = bill.charged_usd, bill.refunded_usd
        self._due.append(
            e.LeaseEnded(at=at, lease=request.lease, cause=cause, charged_usd=charged, refunded_usd=refunded)
        )
        return None

    # -- user code -------------------------------------------------------------------------------------------------
    def _start(self, order: d.StartSegment) -> None:
        if any(lease not in self._leases for lease in order.leases):  # it has just ended: LeaseEnded is due
            step = 0 if order.resume_from is None else order.resume_from.step
            self._due.append(e.SegmentEnded(at=self.now, segment=order.segment, step=step, cause="lost"))
            return
        offers = {self._leases[lease].request.offer for lease in order.leases}
        resume = order.resume_from
        workload = self.workload.on(order.fraction)
        gb = workload.checkpoint_gb or 0.0
        possible = () if workload.snapshots is None or not order.fractions else workload.snapshots(order.config)
        snapshots = tuple(snapshot for snapshot in possible if snapshot.fraction in order.fractions)
        segment = SimSegment(
            order=order,
            step=0 if resume is None else resume.step,
            step_s=max(  # the slowest machine of a gang sets its pace
                workload.seconds_per_step(order.config, self.provider.listing(offer), order.slots) for offer in offers
            ),
            save_s=self.latencies.save_s(gb),
            curve=workload.curve(order.config),
            snapshots=snapshots,
            trouble=workload.trouble,
            until_step=order.until_step if workload.steps is None else workload.steps(order.config),
            exits=workload.steps is not None,
            saves=workload.checkpoint_gb is not None,
            undisturbed=workload.trouble is None and not snapshots,
            checkpoint_bytes=int(gb * 1e9),
        )
        self._segments[order.segment] = segment
        for lease_id in order.leases:
            self._leases[lease_id].segments[order.segment] = None
        restore_s = self.latencies.restore_s(gb) if resume is not None else 0.0
        self._push(self.now + self.latencies.start_s + restore_s, self._ready, segment)
        if order.time_limit_s is not None:
            self._push(self.now + order.time_limit_s, self._overran, segment)

    def _ready(self, at: float, segment: SimSegment) -> e.Event | None:
        if not segment.open:
            return None
        segment.begin(at)
        self._answered = segment
        return e.SegmentStarted(at=at, segment=segment.order.segment)

    def _continue(self, segment: SimSegment) -> None:
        """Put the next event of this segment on the heap, given its orders so far."""
        match follow_up(segment, self.now):
            case "step":
                for in_s, snapshot in segment.next_snapshots():
                    self._push(self.now + in_s, self._snapshot, (segment, snapshot))
                self._push(self.now + segment.step_s, self._stepped, segment)
            case "save":
                self._push(self.now + segment.save_s, self._saved, segment)
            case "hang":
                pass
            case cause:
                self._due.append(self._close(segment, self.now, cause))

    def _stepped(self, at: float, segment: SimSegment) -> e.Event | None:
        if not segment.open:
            return None
        segment.step += 1
        self._answered = segment
        order = segment.order
        return e.JobReported(
            at=at, segment=order.segment, job=order.job, step=segment.step, metrics=segment.curve(segment.step)
        )

    def _snapshot(self, at: float, subject: tuple[SimSegment, SnapshotAt]) -> e.Event | None:
        segment, snapshot = subject
        if not segment.open:
            return None
        order = segment.order
        return e.SnapshotReported(
            at=at,
            segment=order.segment,
            job=order.job,
            step=segment.step + 1,
            fraction=snapshot.fraction,
            metrics=snapshot.metrics,
        )

    def _saved(self, at: float, segment: SimSegment) -> e.Event | None:
        if not segment.open:
            return None
        self._answered = segment
        return segment.saved(at)

    def _killed(self, at: float, segment: SimSegment) -> e.Event | None:
        return self._close(segment, at, "lost") if segment.open else None

    def _overran(self, at: float, segment: SimSegment) -> e.Event | None:
        return self._close(segment, at, "overran") if segment.open else None

    def _close(self, segment: SimSegment, at: float, cause: SegmentCause) -> e.SegmentEnded:
        segment.open = segment.undisturbed = False
        order = segment.order
        del self._segments[order.segment]
        for lease_id in order.leases:
            lease = self._leases.get(lease_id)
            if lease is not None:
                lease.segments.pop(order.segment, None)
        return e.SegmentEnded(at=at, segment=order.segment, step=segment.step, cause=cause)

    def _plan_saves(self, plan: d.PlanSaves) -> None:
        segment = self._segments.get(plan.segment)
        if segment is not None:
            segment.plan_saves(plan.every_s, self.now)

    def _save(self, order: d.SaveCheckpoint) -> None:
        segment = self._segments.get(order.segment)
        if segment is not None:
            segment.request_save()

    def _halt(self, order: d.HaltSegment) -> None:
        segment = self._segments.get(order.segment)
        if segment is not None:
            segment.halt()
            self._push(self.now + order.grace_s, self._killed, segment)

    # -- timers and background tasks -------------------------------------------------------------------------------
    def _wake_at(self, order: d.WakeAt) -> None:
        self._timers[order.name] = order.at
        self._push(max(self.now, order.at), self._fired, order)

    def _fired(self, at: float, order: d.WakeAt) -> e.Event | None:
        if self._timers.get(order.name) != order.at:  # moved since
            return None
        if order.about is not None and order.about not in self._leases:
            return None
        del self._timers[order.name]
        return e.TimerFired(at=at, name=order.name)

    def _run_background(self, order: d.Think) -> None:
        answer = run_task(order.question, order.given)
        self._push(self.now + order.modelled_s, self._background_done, (order.name, answer))

    def _background_done(self, at: float, subject: Any) -> e.Event:
        name, answer = subject
        return e.ThoughtReady(at=at, name=name, answer=answer)


def _same(event: e.Event, recorded: e.Event) -> bool:
    """Equal, or equal once encoded: NaN is not equal to itself, and a journal returns a tuple as a list."""
    return event == recorded or encode_turn(event, ()) == encode_turn(recorded, ())
