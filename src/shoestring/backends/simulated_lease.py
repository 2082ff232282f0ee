"""LeaseRecord: the events of one lease under a simulated provider, in market time.

Everything in it follows from the request and the provider's answers, which are stored: a backend that reads the record
again, hours later, reports the same events with the same times, and the bill stops when the lease was due to end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import msgspec

from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import Event, LeaseDenied, LeaseEnded, LeaseGranted, RevocationNoticed
from shoestring.kernel.types import Denial, EndCause, LeaseId, Offer


class Granted(Protocol):
    @property
    def at(self) -> float: ...


class Charges(Protocol):
    @property
    def charged_usd(self) -> float: ...

    @property
    def refunded_usd(self) -> float: ...


class Provider(Protocol):
    """What a backend needs of the market it simulates (`market.simulated.SimulatedProvider`)."""

    @property
    def denial_s(self) -> float: ...

    def grant(self, request: RequestLease, now: float) -> Granted | Denial: ...

    def revocation(
        self, lease: LeaseId, offer: Offer, granted_at: float, max_usd_per_hour: float | None
    ) -> tuple[float, float] | None: ...

    def bill(
        self, offer: Offer, max_usd_per_hour: float | None, started: float, ended: float, cause: EndCause
    ) -> Charges: ...


class LeaseRecord(msgspec.Struct, kw_only=True):
    """What is known of a lease so far. Plain data: the local backend keeps it in a file."""

    request: RequestLease
    end_by: float
    denied: Denial | None = None
    answered_at: float
    """When it is granted or denied."""
    notice_at: float = 1e18
    gone_at: float = 1e18
    """When the machine is preempted; if never, later than any time that is compared with it."""
    ended_at: float | None = None
    cause: EndCause = "released"
    charged_usd: float = 0.0
    refunded_usd: float = 0.0

    @classmethod
    def from_request(cls, provider: Provider, request: RequestLease, now: float) -> LeaseRecord:
        answer = provider.grant(request, now)
        if isinstance(answer, str):
            at = min(now + provider.denial_s, request.end_by)
            return cls(request=request, end_by=request.end_by, denied=answer, answered_at=at, ended_at=at)
        record = cls(request=request, end_by=request.end_by, answered_at=answer.at)
        revoked = provider.revocation(request.lease, request.offer, answer.at, request.max_usd_per_hour)
        if revoked is not None:
            record.notice_at, record.gone_at = revoked
        return record

    @property
    def open(self) -> bool:
        return self.ended_at is None

    def usable(self, now: float) -> bool:
        return self.open and self.answered_at <= now < self.due()[0]

    def due(self) -> tuple[float, EndCause]:
        """When the lease ends unless it is extended or released, and why."""
        return (self.gone_at, "revoked") if self.gone_at <= self.end_by else (self.end_by, "expired")

    def end(self, provider: Provider, at: float, cause: EndCause) -> None:
        """Compute the bill. A machine that never came up is free of charge."""
        self.ended_at, self.cause = at, cause
        if at >= self.answered_at:
            bill = provider.bill(self.request.offer, self.request.max_usd_per_hour, self.answered_at, at, cause)
            self.charged_usd, self.refunded_usd = bill.charged_usd, bill.refunded_usd

    def events_until(self, now: float) -> Iterator[Event]:
        """Every event of the lease up to now, in order; the list only ever grows."""
        lease = self.request.lease
        if self.denied is not None:
            if self.answered_at <= now:
                yield LeaseDenied(at=self.answered_at, lease=lease, reason=self.denied)
            return
        until = math.inf if self.ended_at is None else self.ended_at
        if self.answered_at <= min(now, until):
            yield LeaseGranted(at=self.answered_at, lease=lease)
        if self.notice_at <= min(now, until) and self.notice_at < self.gone_at:
            yield RevocationNoticed(at=self.notice_at, lease=lease, gone_at=self.gone_at)
        if self.ended_at is not None:
            yield LeaseEnded(
                at=self.ended_at,
                lease=lease,
                cause=self.cause,
                charged_usd=self.charged_usd,
                refunded_usd=self.refunded_usd,
            )
