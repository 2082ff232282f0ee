"""What the controller and the live world ask of the outside."""

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
        """After any (re)start: redeliver what was not recorded, re-issue what may not have been done, end strays."""
        ...

    def next_event(self) -> Event:
        """The next happening: at least once, and asking again acknowledges the last one."""
        ...

    def carry_out(self, decision: Decision) -> None:
        """At once, idempotent by decision id; never raises for the cloud's sake."""
        ...


class Backend(Protocol):
    """A place where machines are: what LiveWorld drives. Times are seconds of the run's clock."""

    def acquire(self, request: RequestLease) -> None: ...

    def extend(self, extension: ExtendLease) -> None: ...

    def release(self, lease: LeaseId) -> None: ...

    def start(self, segment: StartSegment) -> None: ...

    def plan_saves(self, plan: PlanSaves) -> None: ...

    def signal(self, segment: SegmentId, wish: Literal["save", "halt"], grace_s: float) -> None:
        """Ask user code to save, or to save and stop; after `grace_s` a halted segment is killed."""
        ...

    def poll(self) -> Iterable[Event]:
        """Everything new since the last call; repeating is fine, losing is not."""
        ...

    def inventory(self) -> Iterable[LeaseId]:
        """Everything of this run that still costs money."""
        ...

    def close(self) -> None:
        """Let go of handles of this process; machines and user code go on."""
        ...
