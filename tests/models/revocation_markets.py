"""Synthetic markets for the tests of revocation models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from shoestring.kernel.types import Offer
from shoestring.market.catalog import catalog
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated import synthetic_prices as synthetic
from shoestring.models.revocation.examples import Examples, draw, mixed_times
from shoestring.models.revocation.model import Queries
from shoestring.models.revocation.price_arrays import Markets

DAY = 86400.0
START = 1_456_790_400.0
"""Tuesday, 1 March 2016, 00:00 UTC."""
NAMES = ("m3.medium", "m3.large", "r3.large", "m4.4xlarge")


def offer(machine: str = "m3.large", zone: str = "us-east-1a") -> Offer:
    return Offer(provider="aws", zone=zone, machine=machine, spot=True)


def market(times: Sequence[float], prices: Sequence[float], on_demand: float = 1.0) -> Markets:
    """One market; times in seconds after START."""
    trace = PriceTrace(offer(), [START + time for time in times], prices)
    return Markets.of_book(PriceBook({offer(): trace}), {offer(): on_demand})


def question(markets: Markets, at: float, maximum: float, within_s: float = 3600.0) -> Queries:
    return Queries.about(markets, np.array([0]), np.array([START + at]), np.array([maximum]), within_s)


@cache
def auction_book(days: float = 12.0, seed: int = 3) -> tuple[PriceBook, dict[Offer, float]]:
    listings = [catalog.listing(catalog.machine("aws", name), "us-east-1a", spot=True) for name in NAMES]
    book = synthetic.auction(listings, seed=seed, start=START, days=days)
    return book, {listing.offer: listing.on_demand_usd_per_hour for listing in listings}


@cache
def auction(days: float = 12.0, seed: int = 3) -> Markets:
    book, on_demand = auction_book(days, seed)
    return Markets.of_book(book, on_demand)


def examples(markets: Markets, count: int = 3000, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    return draw(markets, START, START + 60 * DAY, count, rng, within_s=mixed_times(rng))
