"""The markets of the SpotTune benchmark: recorded prices of six machine types like those of the paper's Table III.

Prices of 2016 are of the auction years: a machine whose maximum price is exceeded is preempted two minutes later.
Prices of 2025 never cross a maximum, so machines are preempted at random, at a stated rate. Billing is the paper's in
both: by the second, and free of charge for a machine that Amazon preempts within its first hour.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from benchmarks import datasets
from shoestring.errors import DataError
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
RUN_S = 36 * HOUR_S
"""A study may take so long."""
HISTORY_S = 3 * 24 * HOUR_S
"""What placements that learn from prices look back at."""


@dataclass(frozen=True)
class Market:
    """A recording and the rate of preemptions for reasons that are not in it."""

    name: str
    recording: str
    """In datasets.toml; of held-out prices, the name of the file."""
    machines: tuple[str, ...]
    interruptions_per_hour: float = 0.0

    @property
    def auction(self) -> bool:
        """Does the price decide which machines are preempted?"""
        return not self.interruptions_per_hour

    @property
    def path(self) -> Path:
        if datasets.held_out() is not None:
            return datasets.reported_folder() / self.recording
        return datasets.data_folder() / datasets.price_file(self.recording)

    @property
    def cheapest(self) -> str:
        """By list price, as in the paper."""
        return min(self.machines, key=lambda name: catalog.machine("aws", name).on_demand_usd_per_hour)

    @property
    def fastest(self) -> str:
        return max(self.machines, key=ECUS.__getitem__)

    def windows(self, book: PriceBook, role: datasets.Role) -> list[tuple[float, float]]:
        """The weeks of this role; of held-out prices everything after the first days, which are history."""
        if datasets.held_out() is None:
            return datasets.weeks(self.recording, role)
        begin, end = book.span()
        return [(min(begin + HISTORY_S, end - RUN_S), end)]

    def starts(self, book: PriceBook, count: int, *, choosing: bool) -> list[float]:
        """Start times spread evenly over the weeks for reporting, or over those for choosing; a study ends in the week
        in which it began."""
        weeks = self.windows(book, "choosing" if choosing else "reporting")
        each_s = weeks[0][1] - weeks[0][0] - RUN_S
        apart_s = len(weeks) * each_s / count
        places = [divmod(index * apart_s, each_s) for index in range(count)]
        return [weeks[int(nth)][0] + into_s for nth, into_s in places]


LIKE_TABLE_III = ("r3.large", "d2.xlarge", "m1.xlarge", "c1.xlarge", "d2.2xlarge", "m4.4xlarge")
"""The recording has one of the paper's types. These have as many CPUs as those of Table III, in its order; of several
such types, the one with the most similar memory."""
TABLE_III = ("r4.large", "r3.xlarge", "r4.xlarge", "m4.2xlarge", "r4.2xlarge", "m4.4xlarge")
MARKETS = {
    market.name: market
    for market in (
        Market("2016", "2016", LIKE_TABLE_III),
        Market("2025", "2025", TABLE_III, interruptions_per_hour=0.02),
        Market("2025_rough", "2025", TABLE_III, interruptions_per_hour=0.1),
    )
}
MOST_MACHINES = 6
"""Types of a held-out file, as many as in the paper."""


def markets() -> dict[str, Market]:
    """Those of the benchmark; with --held-out one for each price file in the folder."""
    if datasets.held_out() is None:
        return MARKETS
    return {market.name: market for market in map(_of_file, datasets.files("spot_aws*"))}


def _of_file(path: Path) -> Market:
    """Types whose speed is known, the slowest first. Where no price is ever above the on-demand price it decides
    nothing, and machines are preempted at random."""
    book = read_prices(path)
    types = sorted({offer.machine for offer in book if offer.machine in ECUS}, key=ECUS.__getitem__)[:MOST_MACHINES]
    if not types:
        raise DataError(f"{path} has none of the types whose speed is known", hint=f"known: {', '.join(ECUS)}")
    crossed = any(
        max(book.trace(offer).usd_per_hour) > catalog.machine("aws", offer.machine).on_demand_usd_per_hour
        for offer in book
        if offer.machine in types
    )
    return Market(path.name.split(".")[0], path.name, tuple(types), 0.0 if crossed else 0.02)


def read_book(market: Market) -> PriceBook:
    return read_prices(market.path, machines=market.machines)


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
