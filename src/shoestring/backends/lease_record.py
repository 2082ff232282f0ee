"""LeaseRecord: what was observed of one lease, in market time: requested, granted or denied, noticed, ended, billed.

Nothing in it is foreseen. A backend that reads the record again, hours later, reports the same events with the same
times, and the bill stops when the lease ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import Event, LeaseDenied, LeaseEnded, LeaseGranted, RevocationNoticed
from shoestring.kernel.types import Denial, EndCause

NEVER = 1e18
"""The time of what has not happened: later than any time that is compared with it."""


class LeaseRecord(msgspec.Struct, kw_only=True):
    """Plain data, stored in the run's folder. Its fields are for ever."""

    request: RequestLease
    end_by: float
    """Prepaid until then."""
    requested_at: float = -NEVER
    denied: Denial | None = None
    denied_because: str = ""
    answered_at: float = NEVER
    """When it was granted or denied."""
    billed_from: float | None = None
    """Since when it has cost money, if that was before the grant."""
    notice_at: float = NEVER
    gone_at: float = NEVER
    """When the provider takes the machine back, once it has given notice of that."""
    ended_at: float | None = None
    cause: EndCause = "released"
    charged_usd: float = 0.0
    refunded_usd: float = 0.0

    @property
    def open(self) -> bool:
        return self.ended_at is None

    @property
    def pending(self) -> bool:
        return self.open and self.answered_at == NEVER

    def deny(self, reason: Denial, at: float, because: str = "") -> None:
        self.denied, self.denied_because, self.answered_at, self.ended_at = reason, because, at, at

    def forget_after(self, now: float) -> None:
        """Releases up to 0.1 recorded what the simulated provider had drawn for the future."""
        if self.open and self.answered_at > now:
            self.answered_at = NEVER
        if self.open and self.notice_at > now:
            self.notice_at = self.gone_at = NEVER

    def events_until(self, now: float) -> Iterator[Event]:
        """Every event of the lease up to now, in order; the list only ever grows."""
        lease = self.request.lease
        if self.denied is not None:
            if self.answered_at <= now:
                yield LeaseDenied(at=self.answered_at, lease=lease, reason=self.denied, detail=self.denied_because)
            return
        until = math.inf if self.ended_at is None else self.ended_at
        if self.answered_at <= min(now, until):
            yield LeaseGranted(at=self.answered_at, lease=lease, billed_from=self.billed_from)
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
