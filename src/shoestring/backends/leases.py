"""Leases: the leases of a run, from their requests to their bills: what every backend keeps in the same way.

Where machines come from is up to a `MachineSource`. What it sees is recorded here, in `leases/<id>/lease.json` where
there is a run folder, before anything follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from shoestring.backends.lease_record import NEVER, LeaseRecord
from shoestring.backends.machines import MachineEnd, MachineSource, Notice, Sighting
from shoestring.errors import DamagedFile, PermanentError
from shoestring.kernel.decisions import ExtendLease, RequestLease
from shoestring.kernel.events import Event, RevocationNoticed
from shoestring.kernel.types import Denial, EndCause, LeaseId, Offer
from shoestring.storage.checkpoints.folder_copy import make_folder
from shoestring.worker.task import read_json, set_aside, write_json
from shoestring.world.live.clock import RunClock

_RECORD = "lease.json"
_JUST_BEFORE_S = 1e-3


class Charges(Protocol):
    @property
    def charged_usd(self) -> float: ...

    @property
    def refunded_usd(self) -> float: ...


class Biller(Protocol):
    def bill(
        self, offer: Offer, max_usd_per_hour: float | None, started: float, ended: float, cause: EndCause
    ) -> Charges: ...


class LeaseTimes(NamedTuple):
    """When machines end, at the latest: the earliest of each of several leases."""

    end_by: float
    notice_at: float
    gone_at: float


class Leases:
    def __init__(self, machines: MachineSource, billing: Biller, clock: RunClock, folder: Path | None = None) -> None:
        """`folder`: of the run's leases, if they outlive this process."""
        self._machines = machines
        self._billing = billing
        self._clock = clock
        self._folder = folder
        self._records: dict[LeaseId, LeaseRecord] = {}
        self._notices: dict[LeaseId, Notice] = {}
        """The latest the source has said, also of the future where it draws it."""
        self._unreported: dict[LeaseId, int] = {}
        """Leases with events still to report, and how many of their events were reported."""
        self._damaged: set[LeaseId] = set()
        """Leases whose record cannot be read. Those that are open in the journal are given to `mend`."""
        for path in sorted(folder.glob(f"*/{_RECORD}")) if folder is not None else ():
            try:
                self._recall(read_json(path, LeaseRecord))
            except DamagedFile as error:
                self._damaged.add(LeaseId(path.parent.name))
                set_aside(path, error)

    def mend(self, request: RequestLease, granted_at: float, notice: RevocationNoticed | None) -> bool:
        """A lease that is open in the journal: its record is made anew from that if it is missing or cannot be read."""
        if request.lease in self._records:
            return False
        record = LeaseRecord(request=request, end_by=request.end_by, requested_at=granted_at, answered_at=granted_at)
        if notice is not None:
            record.notice_at, record.gone_at = notice.at, notice.gone_at
        self._write(record)
        self._recall(record)
        return True

    def knows(self, lease: LeaseId) -> bool:
        return lease in self._records

    def _recall(self, record: LeaseRecord) -> None:
        self._machines.recall(record)
        record.forget_after(self._clock.now())
        self._add(record)
        if record.open:
            self._see(record, self._clock.now())

    def _add(self, record: LeaseRecord) -> None:
        self._records[record.request.lease] = record
        self._unreported[record.request.lease] = 0

    # -- orders --------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        again = request.lease in self._records or request.lease in self._damaged
        if request.lease not in self._records:
            record = LeaseRecord(request=request, end_by=request.end_by, requested_at=self._clock.now())
            self._write(record)
            self._add(record)
        record = self._records[request.lease]
        if not record.pending:
            return
        try:
            self._machines.request(record, again=again)
        except PermanentError:
            self._deny(record, "quota", self._clock.now())
            self.let_go(request.lease)
            raise
        self._see(record, self._clock.now())

    def add_ended(self, request: RequestLease, granted_at: float, ended_at: float) -> None:
        """A lease whose machine ended with an earlier process."""
        self._add(LeaseRecord(request=request, end_by=request.end_by, answered_at=granted_at))
        self.end(request.lease, ended_at, "released")

    def extend(self, extension: ExtendLease) -> bool:
        """False if the lease is over, or due."""
        record = self._records.get(extension.lease)
        if record is None or not record.open or self._due(record)[0] <= self._clock.now():
            return False
        record.end_by = max(record.end_by, extension.end_by)
        self._write(record)
        self._keep(record)
        return True

    def release_now(self, lease: LeaseId) -> tuple[float, EndCause] | None:
        """When and why a lease ends that is released now; None if it is over."""
        record = self._records.get(lease)
        if record is None or not record.open:
            return None
        now = self._clock.now()
        due, cause = self._due(record)
        return (due, cause) if due <= now else (now, "released")

    def end(self, lease: LeaseId, at: float, cause: EndCause) -> None:
        """Record the end and the bill; the machine is still to be let go. One that never came up is free of charge, and
        was denied if its prepaid time is over."""
        record = self._records[lease]
        if record.pending and cause == "expired":
            self._deny(record, "no_capacity", self._clock.now())
            return
        record.ended_at, record.cause = at, cause
        if at >= record.answered_at:
            request = record.request
            started = record.answered_at if record.billed_from is None else record.billed_from
            bill = self._billing.bill(request.offer, request.max_usd_per_hour, started, at, cause)
            record.charged_usd, record.refunded_usd = bill.charged_usd, bill.refunded_usd
        self._write(record)

    def let_go(self, lease: LeaseId) -> None:
        self._machines.release(lease)

    def _deny(self, record: LeaseRecord, reason: Denial, at: float, because: str = "") -> None:
        record.deny(reason, at, because)
        self._write(record)

    # -- what happens --------------------------------------------------------------------------------------------------
    def update(self, now: float) -> list[tuple[LeaseId, MachineEnd]]:
        """Record what the source sees. Returns the machines that ended without an order."""
        self._machines.update(self.open_leases())
        lost = [(lease, self._see(self._records[lease], now)) for lease in self._unreported]
        return [(lease, end) for lease, end in lost if end is not None]

    def _see(self, record: LeaseRecord, now: float) -> MachineEnd | None:
        if not record.open:
            return None
        lease, seen = record.request.lease, self._machines.look(record)
        if record.pending:
            self._note_answer(record, seen, now)
            if record.pending or not record.open:
                return None
        if seen.notice is not None:
            self._notices[lease] = seen.notice
        self._note_notice(record, now)
        if now >= self._due(record)[0]:
            return None  # its end was known before
        self._keep(record)
        return seen.ended

    def _note_answer(self, record: LeaseRecord, seen: Sighting, now: float) -> None:
        if seen.answered_at is not None and seen.answered_at <= now and seen.denied is None:
            record.answered_at, record.billed_from = seen.answered_at, seen.billed_from
            self._write(record)
        elif seen.answered_at is not None and seen.answered_at <= now and seen.denied is not None:
            self._deny(record, seen.denied, seen.answered_at, seen.denied_because)
            self.let_go(record.request.lease)
        elif seen.ended is not None:
            self._deny(record, "no_capacity", now)
            self.let_go(record.request.lease)

    def _note_notice(self, record: LeaseRecord, now: float) -> None:
        notice = self._notices.get(record.request.lease)
        if notice is not None and record.notice_at == NEVER and notice.at <= now:
            record.notice_at, record.gone_at = notice
            self._write(record)

    def _keep(self, record: LeaseRecord) -> None:
        self._machines.keep_until(record.request.lease, self._due(record)[0])

    def lose(self, lease: LeaseId, at: float, cause: EndCause) -> None:
        """A machine ended without an order. A notice comes too late for the workers, but it keeps policies from
        starting anything on it, when SegmentEnded arrives before LeaseEnded."""
        record = self._records[lease]
        if not record.open:
            return
        if cause in ("revoked", "lost"):
            record.notice_at, record.gone_at = min(record.notice_at, at - _JUST_BEFORE_S), min(record.gone_at, at)
        self.end(lease, at, cause)

    def overdue(self, now: float) -> Iterator[tuple[LeaseId, float, EndCause]]:
        for lease in list(self._unreported):
            record = self._records[lease]
            due, cause = self._due(record)
            if record.open and due <= now:
                yield lease, due, cause

    def new_events(self, now: float) -> Iterator[Event]:
        for lease, reported in list(self._unreported.items()):
            events = list(self._records[lease].events_until(now))
            yield from events[reported:]
            self._unreported[lease] = len(events)
            if events and not self._records[lease].open:
                del self._unreported[lease]

    # -- questions -----------------------------------------------------------------------------------------------------
    def open_leases(self) -> list[LeaseId]:
        return [lease for lease, record in self._records.items() if record.open]

    def is_open(self, lease: LeaseId) -> bool:
        return lease in self._records and self._records[lease].open

    def usable(self, leases: Iterable[LeaseId], now: float) -> bool:
        return all(self._usable(lease, now) for lease in leases)

    def _usable(self, lease: LeaseId, now: float) -> bool:
        record = self._records.get(lease)
        return record is not None and record.open and record.answered_at <= now < self._due(record)[0]

    def granted_at(self, lease: LeaseId) -> float:
        return self._records[lease].answered_at

    def times(self, leases: Iterable[LeaseId]) -> LeaseTimes:
        """When the machines of a segment end, and when that is announced, as far as it is known."""
        records = [self._records[lease] for lease in leases if lease in self._records]
        end_by = min((record.end_by for record in records), default=self._clock.now())
        notices = [self._notice(record) for record in records]
        announced = [notice.at for notice in notices if notice.at < notice.gone_at]
        return LeaseTimes(
            end_by, min(announced, default=NEVER), min((notice.gone_at for notice in notices), default=NEVER)
        )

    def ends_at(self, leases: Iterable[LeaseId], now: float) -> float:
        """When the first of these machines ended or was due to end, or now."""
        records = (self._records[lease] for lease in leases if lease in self._records)
        ends = (min(self._due(x)[0], now) if x.ended_at is None else x.ended_at for x in records)
        return min(ends, default=now)

    def _notice(self, record: LeaseRecord) -> Notice:
        seen = self._notices.get(record.request.lease, Notice(NEVER, NEVER))
        return Notice(min(seen.at, record.notice_at), min(seen.gone_at, record.gone_at))

    def _due(self, record: LeaseRecord) -> tuple[float, EndCause]:
        """When the lease ends unless it is extended or released, and why."""
        gone_at = self._notice(record).gone_at
        return (gone_at, "revoked") if gone_at <= record.end_by else (record.end_by, "expired")

    def close(self) -> None:
        """Machines keep running; the folder holds everything that is known."""
        self._machines.close(leased=bool(self.open_leases()))
        self._records.clear()
        self._unreported.clear()

    def _write(self, record: LeaseRecord) -> None:
        if self._folder is not None:
            folder = self._folder / record.request.lease
            make_folder(folder)
            write_json(folder / _RECORD, record)
