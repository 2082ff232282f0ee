"""What a lease costs: one small class per rule.

Laws, for every rule:
- `charge` reads no price after the lease's end.
- A price above the lease's ceiling is charged at the ceiling (providers never charge more than the maximum agreed,
  also during the notice after a price has crossed it).
- `refunded_usd` is what the same lease would have cost had we ended it ourselves, less what is charged.
- `worst_usd` is an upper bound of `charge`, and never falls as `until` grows: the guard reserves it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from shoestring.errors import DataError
from shoestring.kernel.types import BillingName, EndCause, Fact

HOUR_S = 3600.0
ROUNDING = 1.0 + 1e-9
"""A bound must hold in floating point too, where a sum of pieces may exceed the whole by its last digits."""


class Prices(Protocol):
    """A piecewise constant price: `times` ascend, each price holds until the next. PriceHistory and PriceTrace are."""

    @property
    def times(self) -> Sequence[float]: ...

    @property
    def usd_per_hour(self) -> Sequence[float]: ...


class Bill(Fact, frozen=True, kw_only=True):
    """`charged_usd` is final: refunds are already subtracted."""

    charged_usd: float
    refunded_usd: float = 0.0


class Billing(Protocol):
    def charge(
        self,
        started: float,
        ended: float,
        prices: Prices,
        cause: EndCause,
        *,
        ceiling_usd_per_hour: float = math.inf,
    ) -> Bill:
        """The invoice of a lease that is over."""
        ...

    def worst_usd(self, started: float, prices: Prices, now: float, until: float, ceiling_usd_per_hour: float) -> float:
        """The most a lease can cost if it runs until `until` at the ceiling from `now` on.

        `prices` need only reach up to `now`. A lease not granted yet has `started == now`.
        """
        ...


@dataclass(frozen=True, slots=True)
class PerSecond:
    """usd = integral of min(price, ceiling) over the lease, at least a minute. On-demand machines of both clouds."""

    minimum_s: float = 60.0
    refund_within_s: float = 0.0
    """A lease that the provider ends before this age is free of charge."""

    def charge(
        self,
        started: float,
        ended: float,
        prices: Prices,
        cause: EndCause,
        *,
        ceiling_usd_per_hour: float = math.inf,
    ) -> Bill:
        age_s = ended - started
        usd = metered_usd(prices, started, ended, ceiling_usd_per_hour)
        if age_s < self.minimum_s:
            # The missing seconds are charged at the last price: prices after the end are not known.
            usd += min(price_at(prices, ended), ceiling_usd_per_hour) * (self.minimum_s - age_s) / HOUR_S
        if cause == "revoked" and age_s < self.refund_within_s:
            return Bill(charged_usd=0.0, refunded_usd=usd)
        return Bill(charged_usd=usd)

    def worst_usd(self, started: float, prices: Prices, now: float, until: float, ceiling_usd_per_hour: float) -> float:
        end = max(until, now, started + self.minimum_s)
        seen_until = max(started, now)
        accrued = metered_usd(prices, started, seen_until, ceiling_usd_per_hour) if seen_until > started else 0.0
        return (accrued + ceiling_usd_per_hour * (end - seen_until) / HOUR_S) * ROUNDING


@dataclass(frozen=True, slots=True)
class AwsSpot(PerSecond):
    """Amazon since 2017: per second, free of charge if Amazon interrupts within the first hour."""

    refund_within_s: float = HOUR_S


@dataclass(frozen=True, slots=True)
class GcpPreemptible(PerSecond):
    """Google's spot and preemptible machines: per second, free of charge if preempted within the first minute.

    The 24 hours of legacy preemptible machines are not a billing rule: `Listing.max_life_s` ends the lease, and the
    invoice with it.
    """

    refund_within_s: float = 60.0


@dataclass(frozen=True, slots=True)
class PerHour:
    """Amazon's auction years: each hour begun, at the price when it began; a last hour cut short by Amazon is free."""

    def charge(
        self,
        started: float,
        ended: float,
        prices: Prices,
        cause: EndCause,
        *,
        ceiling_usd_per_hour: float = math.inf,
    ) -> Bill:
        begun = hours_begun(started, ended)
        usd = [min(price_at(prices, started + k * HOUR_S), ceiling_usd_per_hour) for k in range(begun)]
        if cause == "revoked" and ended < started + begun * HOUR_S:
            return Bill(charged_usd=math.fsum(usd[:-1]), refunded_usd=usd[-1])
        return Bill(charged_usd=math.fsum(usd))

    def worst_usd(self, started: float, prices: Prices, now: float, until: float, ceiling_usd_per_hour: float) -> float:
        begun = hours_begun(started, max(until, now))
        known = min(begun, int((now - started) // HOUR_S) + 1) if now > started else 0
        accrued = math.fsum(min(price_at(prices, started + k * HOUR_S), ceiling_usd_per_hour) for k in range(known))
        return (accrued + (begun - known) * ceiling_usd_per_hour) * ROUNDING


@dataclass(frozen=True, slots=True)
class Free:
    """The user's own machines."""

    def charge(self, *_: object, **__: object) -> Bill:
        return Bill(charged_usd=0.0)

    def worst_usd(self, *_: object, **__: object) -> float:
        return 0.0


_RULES: dict[BillingName, Billing] = {
    "per_second": PerSecond(),
    "per_hour": PerHour(),
    "aws_spot": AwsSpot(),
    "gcp_preemptible": GcpPreemptible(),
    "free": Free(),
}


def billing_rule(name: BillingName) -> Billing:
    return _RULES[name]


class _NothingCharged:
    """No prices: of a machine that is not leased yet."""

    times: Sequence[float] = ()
    usd_per_hour: Sequence[float] = ()


_NOTHING_CHARGED = _NothingCharged()


def new_lease_usd(billing: BillingName, held_s: float, usd_per_hour: float) -> float:
    """The bill of a machine that is leased now, at this price throughout, and released after `held_s`."""
    return billing_rule(billing).worst_usd(0.0, _NOTHING_CHARGED, 0.0, held_s, usd_per_hour)


def hours_begun(started: float, ended: float) -> int:
    """max(1, ceil(hours)): a lease that is released at once has begun its first hour."""
    return max(1, math.ceil((ended - started) / HOUR_S))


def price_at(prices: Prices, at: float) -> float:
    return prices.usd_per_hour[_index(prices, at)]


def metered_usd(prices: Prices, start: float, end: float, ceiling_usd_per_hour: float = math.inf) -> float:
    """The integral of min(price, ceiling) from start to end. Reads only the records in between."""
    times, usd_per_hour = prices.times, prices.usd_per_hour
    index, last, at, total = _index(prices, start), len(times) - 1, start, 0.0
    while at < end:
        until = min(times[index + 1], end) if index < last else end
        total += min(usd_per_hour[index], ceiling_usd_per_hour) * (until - at)
        at, index = until, index + 1
    return total / HOUR_S


def _index(prices: Prices, at: float) -> int:
    index = bisect_right(prices.times, at) - 1
    if index < 0:
        first = f"the first price is of {prices.times[0]:.0f}" if prices.times else "there are no prices"
        raise DataError(f"no price is known for the time {at:.0f}: {first}", hint="start later, or load older prices")
    return index
