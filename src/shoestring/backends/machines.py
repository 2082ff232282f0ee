"""Where machines come from: the protocol MachineSource, and the simplest source of all, this computer.

A source reports what it sees of each machine; `Leases` keeps the record of it. Times are seconds of the run's clock.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from shoestring.backends.lease_record import LeaseRecord
from shoestring.kernel.types import Denial, EndCause, LeaseId


class Notice(NamedTuple):
    """The provider takes the machine back at `gone_at`, and says so at `at`."""

    at: float
    gone_at: float


class MachineEnd(NamedTuple):
    """How a machine ended without an order of ours."""

    cause: EndCause
    why: str
    log_line: str = ""
    """The last line of its log, if it failed."""


class Sighting(NamedTuple):
    """What is known of a machine now."""

    answered_at: float | None = None
    """When it was granted or denied, the same at every look; None while that is not known."""
    billed_from: float | None = None
    """Since when it costs money, if that is before it was granted; known with the grant."""
    denied: Denial | None = None
    denied_because: str = ""
    """In a sentence's words, if there is more to say."""
    notice: Notice | None = None
    """Only a simulated source knows one before its time."""
    ended: MachineEnd | None = None


class MachineSource(Protocol):
    """Every call returns at once. After a restart the source is given the open leases again (`recall`)."""

    def recall(self, record: LeaseRecord) -> None:
        """A lease of an earlier instance. One that has ended may still have a machine: that is released."""
        ...

    def request(self, record: LeaseRecord, *, again: bool) -> None:
        """Request a machine for this lease. `again`: an earlier request may have been received.

        PermanentError if no request of this run can succeed before a person acts.
        """
        ...

    def update(self, open_leases: Collection[LeaseId]) -> None:
        """Look around. Called at every poll."""
        ...

    def look(self, record: LeaseRecord) -> Sighting: ...

    def keep_until(self, lease: LeaseId, at: float) -> None:
        """The machine is prepaid until then, and ends then by itself."""
        ...

    def release(self, lease: LeaseId) -> None: ...

    def close(self, *, leased: bool) -> None:
        """Close the handles of this process. `leased`: some leases are open, and their machines keep running."""
        ...


class ThisComputer:
    """A machine that is there at once and never goes."""

    def recall(self, record: LeaseRecord) -> None: ...

    def request(self, record: LeaseRecord, *, again: bool) -> None: ...

    def update(self, open_leases: Collection[LeaseId]) -> None: ...

    def look(self, record: LeaseRecord) -> Sighting:
        return Sighting(answered_at=record.requested_at)

    def keep_until(self, lease: LeaseId, at: float) -> None: ...

    def release(self, lease: LeaseId) -> None: ...

    def close(self, *, leased: bool) -> None: ...
