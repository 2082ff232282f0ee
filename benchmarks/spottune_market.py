"""The markets of the SpotTune benchmark: recorded prices of six machine types like those of the paper's Table III.

Prices of 2016 are of the auction years: a machine whose maximum price is exceeded is preempted two minutes later.
Prices of 2025 never cross a maximum, so machines are preempted at random, at a stated rate. Billing is the paper's in
both: by the second, and free of charge for a machine that Amazon preempts within its first hour.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from benchmarks.datasets import data_folder
from shoestring.kernel.types import Listing
from shoestring.market.catalog import catalog
from shoestring.market.price_files import read_prices
from shoestring.market.prices import PriceBook
from shoestring.market.simulated.lifetimes import HOUR_S, ExponentialLifetime
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import DrawnLifetimes, Earliest, Never, PriceCrossing, Revoker

ECUS = {
    "r3.large": 6.5,
    "m1.xlarge": 8.0,
    "d2.xlarge": 14.0,
    "c1.xlarge": 20.0,
    "d2.2xlarge": 28.0,
    "r4.large": 7.0,
    "r3.xlarge": 13.0,
    "r4.xlarge": 13.5,
    "m4.2xlarge": 26.0,
    "r4.2xlarge": 27.0,
    "m4.4xlarge": 53.5,
}
"""Their speed as Amazon used to publish it: EC2 compute units of the whole machine."""
SLOWEST_ECUS = 6.5
SPEED_EXPONENT = 0.7
"""Twice the units are 1.6 times the speed: in the paper's Figure 6, too, speed does not keep up with size."""
WEEK_S = 7 * 24 * HOUR_S
"""The first week of a recording is for tuning, the next is held out, and so on: markets are calm for weeks and then
volatile for weeks, and both should be in either."""
RUN_S = 36 * HOUR_S
"""A study may take so long; it ends in the week in which it began."""


@dataclass(frozen=True)
class Market:
    """A recording and the rate of preemptions for reasons that are not in it."""

    name: str
    file: str
    machines: tuple[str, ...]
    interruptions_per_hour: float = 0.0

    @property
    def cheapest(self) -> str:
        """By list price, as in the paper."""
        return min(self.machines, key=lambda name: catalog.machine("aws", name).on_demand_usd_per_hour)

    @property
    def fastest(self) -> str:
        return max(self.machines, key=ECUS.__getitem__)

    def starts(self, book: PriceBook, count: int, *, choosing: bool) -> list[float]:
        """Start times spread evenly over the held-out weeks, or over those for tuning."""
        begin, end = book.span()
        weeks = range(0 if choosing else 1, int((end - begin) // WEEK_S), 2)
        each_s = WEEK_S - RUN_S
        apart_s = len(weeks) * each_s / count
        places = [divmod(index * apart_s, each_s) for index in range(count)]
        return [begin + weeks[int(nth)] * WEEK_S + into_s for nth, into_s in places]


PRICES_2016 = "spot_aws_us-east-1_2016-02_04.parquet"
LIKE_TABLE_III = ("r3.large", "d2.xlarge", "m1.xlarge", "c1.xlarge", "d2.2xlarge", "m4.4xlarge")
"""The recording has one of the paper's types. These have as many CPUs as those of Table III, in its order; of several
such types, the one with the most similar memory."""
PRICES_2025 = "spot_aws_us-east-1_2025-03.parquet"
TABLE_III = ("r4.large", "r3.xlarge", "r4.xlarge", "m4.2xlarge", "r4.2xlarge", "m4.4xlarge")
MARKETS = {
    market.name: market
    for market in (
        Market("2016", PRICES_2016, LIKE_TABLE_III),
        Market("2025", PRICES_2025, TABLE_III, interruptions_per_hour=0.02),
        Market("2025_rough", PRICES_2025, TABLE_III, interruptions_per_hour=0.1),
    )
}


def read_book(market: Market) -> PriceBook:
    return read_prices(data_folder() / market.file, machines=market.machines)


def provider(
    market: Market,
    book: PriceBook,
    seed: int,
    machines: Collection[str] | None = None,
    kinds: Collection[bool] = (True, False),
) -> SimulatedProvider:
    """The market of one run. `machines`: only these types; `kinds`: spot, on demand or both."""
    offers = [offer for offer in book if offer.spot and (machines is None or offer.machine in machines)]
    listings: list[Listing] = []
    for offer in offers:
        found = catalog.machine("aws", offer.machine)
        if offer.zone in found.zones:
            listings += [catalog.listing(found, offer.zone, spot=spot) for spot in kinds]
    traces = {listing.offer: book.trace(listing.offer) for listing in listings if listing.offer.spot}
    by_chance: Revoker = Never()
    if market.interruptions_per_hour:
        by_chance = DrawnLifetimes(ExponentialLifetime(HOUR_S / market.interruptions_per_hour), seed)
    whole = PriceBook(traces, listings)
    return SimulatedProvider(listings, whole, Earliest(PriceCrossing(whole, listings), by_chance), seed=seed)


def speed(machine: str) -> float:
    """As a multiple of that of the slowest."""
    return float((ECUS[machine] / SLOWEST_ECUS) ** SPEED_EXPONENT)
