"""The interfaces World (of the controller) and Backend (of the live world)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from shoestring.kernel.decisions import Decision, ExtendLease, PlanSaves, RequestLease, StartSegment
from shoestring.kernel.events import Event
from shoestring.kernel.history import RecordedEvents
from shoestring.kernel.policy import PriceFeed
from shoestring.kernel.types import LeaseId, SegmentId


class World(Protocol):
    """Supplies events and carries out decisions, on a virtual or a real clock."""

    @property
    def feed(self) -> PriceFeed: ...

    def attach(self, past: RecordedEvents) -> None:
        """After any (re)start: redeliver unrecorded events, re-issue orders that may not have been carried out, release
        unknown machines."""
        ...

    def next_event(self) -> Event:
        """The next event: delivered at least once; the next call acknowledges it."""
        ...

    def carry_out(self, decision: Decision) -> None:
        """At once, idempotent by decision id; never raises for errors of the cloud."""
        ...


class Backend(Protocol):
    """A place that provides machines: what LiveWorld drives. Times are seconds of the run's clock."""

    def acquire(self, request: RequestLease) -> None: ...

    def extend(self, extension: ExtendLease) -> None: ...

    def release(self, lease: LeaseId) -> None: ...

    def start(self, segment: StartSegment) -> None: ...

    def plan_saves(self, plan: PlanSaves) -> None: ...

    def signal(self, segment: SegmentId, action: Literal["save", "halt"], grace_s: float) -> None:
        """Make user code save, or save and stop; after `grace_s` a halted segment is killed."""
        ...

    def poll(self) -> Iterable[Event]:
        """All new events since the last call; repeating an event is fine, losing one is not."""
        ...

    def inventory(self) -> Iterable[LeaseId]:
        """All leases of this run that still cost money."""
        ...

    def close(self) -> None:
        """Close the handles of this process; machines and user code keep running."""
        ...
