"""PriceTrace and PriceBook: whole price series, for the side of the simulated provider.

Law: policies never get a trace. They get a PriceHistory, cut at the event being handled, through the book's PriceFeed
interface. The last price of a series holds for ever, so a replay of a file must call `require` first.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from shoestring.errors import DataError
from shoestring.kernel.types import Listing, Offer, PriceHistory
from shoestring.market.billing import HOUR_S, metered_usd


class PriceTrace:
    """The whole series of one offer. `times` ascend; a price holds until the next."""

    __slots__ = ("_cut", "_cut_prices", "_cut_times", "_highest", "offer", "times", "usd_per_hour")

    def __init__(self, offer: Offer, times: Sequence[float], usd_per_hour: Sequence[float]) -> None:
        if not times or len(times) != len(usd_per_hour):
            raise DataError(f"{offer}: {len(times)} times and {len(usd_per_hour)} prices make no price series")
        if any(later <= earlier for earlier, later in pairwise(times)):
            raise DataError(f"{offer}: the times of a price series must ascend")
        self.offer = offer
        self.times = tuple(times)
        self.usd_per_hour = tuple(usd_per_hour)
        self._highest = max(self.usd_per_hour)
        self._cut = -1
        self._cut_times: tuple[float, ...] = ()
        self._cut_prices: tuple[float, ...] = ()

    def at(self, at: float) -> float:
        return self.usd_per_hour[self._index(at)]

    def history(self, until: float) -> PriceHistory:
        """What could be known at `until`. Consecutive calls share one copy of the past."""
        cut = bisect_right(self.times, until)
        if cut != self._cut:
            self._cut, self._cut_times, self._cut_prices = cut, self.times[:cut], self.usd_per_hour[:cut]
        return PriceHistory(offer=self.offer, times=self._cut_times, usd_per_hour=self._cut_prices, until=until)

    def first_crossing(self, after: float, max_usd_per_hour: float) -> float:
        """The first time from `after` on at which the price is above a maximum; infinity if there is none."""
        if max_usd_per_hour >= self._highest:
            return math.inf
        if self.at(after) > max_usd_per_hour:
            return after
        for index in range(bisect_right(self.times, after), len(self.times)):
            if self.usd_per_hour[index] > max_usd_per_hour:
                return self.times[index]
        return math.inf

    def mean(self, start: float, end: float) -> float:
        """The time-weighted mean price from start to end."""
        if end <= start:
            return self.at(start)
        return metered_usd(self, start, end) / (end - start) * HOUR_S

    def _index(self, at: float) -> int:
        index = bisect_right(self.times, at) - 1
        if index < 0:
            raise DataError(
                f"the prices of {self.offer} start at {utc(self.times[0])}, but are needed at {utc(at)}",
                hint="start the run later, load older prices, or leave this offer out",
            )
        return index


class PriceBook:
    """All series of a market. Implements `kernel.policy.PriceFeed`; on-demand prices are those of the listings."""

    def __init__(self, traces: Mapping[Offer, PriceTrace], listings: Iterable[Listing] = ()) -> None:
        self._traces = dict(traces)
        for listing in listings:
            if not listing.offer.spot:
                self._traces[listing.offer] = PriceTrace(listing.offer, (0.0,), (listing.on_demand_usd_per_hour,))

    def __iter__(self) -> Iterator[Offer]:
        return iter(self._traces)

    def __len__(self) -> int:
        return len(self._traces)

    def trace(self, offer: Offer) -> PriceTrace:
        try:
            return self._traces[offer]
        except KeyError:
            raise DataError(
                f"no prices of {offer} are loaded",
                hint="leave the offer out of the listings, or load a price file that has it",
            ) from None

    def usd_per_hour(self, offer: Offer, at: float) -> float:
        return self.trace(offer).at(at)

    def history(self, offer: Offer, until: float) -> PriceHistory:
        return self.trace(offer).history(until)

    def span(self) -> tuple[float, float]:
        """The time span that every spot series covers: (last first record, first last record)."""
        spot = [trace for trace in self._traces.values() if trace.offer.spot]
        if not spot:
            return 0.0, math.inf
        return max(trace.times[0] for trace in spot), min(trace.times[-1] for trace in spot)

    def require(self, offers: Iterable[Offer], start: float, until: float, *, beyond_s: float = 86400.0) -> None:
        """Raises DataError for a run whose prices are missing. The last price may be used for at most `beyond_s`."""
        for offer in offers:
            trace = self.trace(offer)
            trace.at(start)
            if offer.spot and until > trace.times[-1] + beyond_s:
                raise DataError(
                    f"the prices of {offer} end at {utc(trace.times[-1])}, but the run may last until {utc(until)}",
                    hint="start earlier, shorten the deadline, or load newer prices",
                )


def utc(at: float) -> str:
    """A time as text, for people."""
    try:
        return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{at:.0f} s"
