"""Markets: the price records of many offers as flat arrays, and thousands of windows of them at once.

Law: a price holds until the next record. Nothing here interpolates between two records: on the way up that would show a
price before it could be known, which makes every predictor look better than it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoestring.errors import DataError
from shoestring.kernel.types import Offer, PriceHistory
from shoestring.market.prices import PriceBook, utc

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


@dataclass(frozen=True, eq=False)
class Markets:
    """Records of market m are `times[first[m]:first[m + 1]]`, ascending, and the prices beside them."""

    offers: tuple[Offer, ...]
    on_demand: Floats
    """On-demand price per hour: the unit in which markets are compared."""
    first: Ints
    times: Floats
    prices: Floats
    paid: Floats
    """Dollar-hours from a market's first record to each, so that a mean is a difference and not a loop over records."""
    moved: Floats
    """Total variation of the price in dollars, from a market's first record to each."""

    def __len__(self) -> int:
        return len(self.offers)

    @staticmethod
    def of(histories: Iterable[PriceHistory], on_demand: Mapping[Offer, float]) -> Markets:
        """From what a policy knows: histories up to now."""
        known = list(histories)
        return _flat(
            [one.offer for one in known], [one.times for one in known], [one.usd_per_hour for one in known], on_demand
        )

    @staticmethod
    def of_book(book: PriceBook, on_demand: Mapping[Offer, float]) -> Markets:
        """From whole series, to train and to test on. Offers without an on-demand price are left out."""
        traces = [book.trace(offer) for offer in book if offer in on_demand]
        return _flat(
            [one.offer for one in traces],
            [one.times for one in traces],
            [one.usd_per_hour for one in traces],
            on_demand,
        )

    def span(self, market: int) -> tuple[float, float]:
        """The times of a market's first and last record."""
        return float(self.times[self.first[market]]), float(self.times[self.first[market + 1] - 1])

    def record_at(self, market: Ints, at: Floats) -> Ints:
        """The record in force at each time. A time before the first record is a DataError."""
        found = np.empty(len(at), dtype=np.int64)
        for one in np.unique(market):
            low, high = self.first[one], self.first[one + 1]
            mine = market == one
            found[mine] = low + np.searchsorted(self.times[low:high], at[mine], side="right") - 1
            if np.any(found[mine] < low):
                raise DataError(
                    f"no price of {self.offers[one]} is known at {utc(float(at[mine].min()))}",
                    hint="choose a later time, or load older prices",
                )
        return found

    def price_at(self, market: Ints, at: Floats) -> Floats:
        return self.prices[self.record_at(market, at)]

    def paid_until(self, record: Ints, at: Floats) -> Floats:
        """Dollars an instance would have cost from the market's first record on; `record` is the one in force."""
        return self.paid[record] + self.prices[record] * (at - self.times[record]) / HOUR_S

    def highest(self, low: Ints, high: Ints) -> Floats:
        """The highest price among the records `low` to `high`, both included, of each of many ranges."""
        # From the latest range to the earliest: what lies between two ranges is then never read.
        order = np.argsort(-low, kind="stable")
        ends = np.stack((low[order], high[order] + 1), axis=1).ravel()
        found = np.empty(len(low))
        if len(low):
            found[order] = np.maximum.reduceat(np.append(self.prices, 0.0), ends)[::2]
        return found

    def windows(self, market: Ints, begin: Floats, end: Floats) -> Windows:
        """All records in force at some time of [begin, end], for each of many windows.

        A window that begins before the first record begins with it.
        """
        begin = np.minimum(np.maximum(begin, self.times[self.first[market]]), end)
        low, high = self.record_at(market, begin), self.record_at(market, end)
        counts = high - low + 1
        heads = np.concatenate(([0], np.cumsum(counts)[:-1]))
        owner = np.repeat(np.arange(len(market)), counts)
        index = np.arange(int(counts.sum())) - np.repeat(heads - low, counts)
        since = np.maximum(self.times[index], begin[owner])
        until = np.append(since[1:], 0.0)
        until[heads + counts - 1] = end
        return Windows(owner=owner, heads=heads, since=since, until=until, price=self.prices[index])


@dataclass(frozen=True, eq=False)
class Windows:
    """Records of many windows, one after the other, each held from `since` to `until` within its own."""

    owner: Ints
    heads: Ints
    """Where each window begins: there is at least one record in every window."""
    since: Floats
    until: Floats
    price: Floats

    def total(self, values: npt.NDArray[np.generic]) -> Floats:
        """The sum of a value over the records of each window."""
        sums: Floats = np.add.reduceat(np.asarray(values, dtype=np.float64), self.heads)
        return sums

    def highest(self, values: Floats) -> Floats:
        tops: Floats = np.maximum.reduceat(values, self.heads)
        return tops


def _flat(
    offers: Sequence[Offer],
    times: Sequence[Sequence[float]],
    prices: Sequence[Sequence[float]],
    on_demand: Mapping[Offer, float],
) -> Markets:
    for offer, known in zip(offers, times, strict=True):
        if offer not in on_demand:
            raise DataError(f"the on-demand price of {offer} is not known", hint="give it, or leave the offer out")
        if not known:
            raise DataError(f"no price of {offer} is known yet", hint="try again once there is one")
    if not offers:
        raise DataError("there are no prices", hint="check machines and zones")
    stamps = [np.asarray(known, dtype=np.float64) for known in times]
    levels = [np.asarray(known, dtype=np.float64) for known in prices]
    return Markets(
        offers=tuple(offers),
        on_demand=np.array([on_demand[offer] for offer in offers], dtype=np.float64),
        first=np.concatenate(([0], np.cumsum([len(known) for known in stamps]))).astype(np.int64),
        times=np.concatenate(stamps),
        prices=np.concatenate(levels),
        # Summed market by market from its own start: bit for bit the same, whatever comes later or in other markets.
        paid=np.concatenate([_running(p[:-1] * np.diff(t) / HOUR_S) for t, p in zip(stamps, levels, strict=True)]),
        moved=np.concatenate([_running(np.abs(np.diff(p))) for p in levels]),
    )


def _running(steps: Floats) -> Floats:
    return np.concatenate(([0.0], np.cumsum(steps)))
