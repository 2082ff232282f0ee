"""The built-in default markets: prices as they were under auction, and as they are today.

Calibrated on real prices of us-east-1; a test holds the generators to these figures where the files are available.

Auction (49 series, February to April 2016):
- gaps between records: median 193 s (quartiles 86 and 432 s);
- quiet markets, four of five: around 0.13 of on-demand, moves of 0.6 %, a spell above on-demand once a month;
- busy markets, one of five: around 0.29 of on-demand, moves of 2 %, 2.2 spells a day above on-demand, each of 16 min
  at the median and 95 min on average, at 1.2 times on-demand at the median and 10 times in the top tenth; within a
  spell the price hardly moves (two records), so 2 % of their records but 15 % of their time lie above on-demand.

Modern (300 series, March 2025): a record every 6.8 h (3.3 a day); each series keeps its own level, 0.38 of on-demand
on average, all within 0.10 and 0.64; moves of 0.3 % that tend to continue in one direction. Prices do not predict
revocation in this market: machines are preempted when capacity is needed, see `provider.SimulatedProvider.modern`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from random import Random

from shoestring.errors import SpecError
from shoestring.kernel.types import Listing, Offer
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.random_streams import generator

DAY_S = 86400.0
DEFAULT_START = 1740960000.0
"""2025-03-03 00:00 UTC, a Monday: markets have to begin somewhere, and never at the present."""

Series = tuple[list[float], list[float]]


def auction(
    listings: Iterable[Listing], *, seed: int = 0, start: float = DEFAULT_START, days: float = 14.0
) -> PriceBook:
    """A market of the auction years: calm phases with small frequent moves, and spikes above on-demand."""
    return _book("auction", _auction_series, listings, seed, start, days)


def modern(
    listings: Iterable[Listing], *, seed: int = 0, start: float = DEFAULT_START, days: float = 31.0
) -> PriceBook:
    """A market of today: smooth, always below on-demand."""
    return _book("modern", _modern_series, listings, seed, start, days)


def flat(listings: Iterable[Listing], share: float, *, start: float = DEFAULT_START, days: float = 31.0) -> PriceBook:
    """One constant price, a share of the on-demand price."""
    listings = tuple(listings)
    times = (start, start + days * DAY_S)
    traces = {
        item.offer: PriceTrace(item.offer, times, (share * item.on_demand_usd_per_hour,) * 2)
        for item in listings
        if item.offer.spot
    }
    return PriceBook(traces, listings)


def _book(
    era: str,
    series: Callable[[Random, float, float], Series],
    listings: Iterable[Listing],
    seed: int,
    start: float,
    days: float,
) -> PriceBook:
    if not (days > 0 and math.isfinite(days)):
        raise SpecError(f"days={days!r} of synthetic prices must be a positive number")
    listings = tuple(listings)
    traces: dict[Offer, PriceTrace] = {}
    for listing in listings:
        offer = listing.offer
        if offer.spot:
            rng = generator(seed, era, offer.provider, offer.zone, offer.machine)
            times, shares = series(rng, start, start + days * DAY_S)
            dollars = [round(share * listing.on_demand_usd_per_hour, 6) for share in shares]
            traces[offer] = PriceTrace(offer, times, dollars)
    return PriceBook(traces, listings)


def _auction_series(rng: Random, start: float, end: float) -> Series:
    """Shares of on-demand: ln share = level + x, x' = memory * x + N(0, step^2), and spells above on-demand."""
    busy = rng.random() < 0.2
    level = math.log(0.29 if busy else 0.13) + rng.gauss(0.0, 0.2)
    step, memory, spells_per_day = (0.028, 0.998, 2.2) if busy else (0.009, 0.997, 0.03)
    spread = step / math.sqrt(1.0 - memory * memory)
    away = rng.gauss(0.0, spread)
    next_spell = start + rng.expovariate(spells_per_day / DAY_S)
    at = start
    times: list[float] = []
    shares: list[float] = []
    while at < end:
        if at >= next_spell:
            at = _spell(rng, at, min(end, at + _spell_length_s(rng)), times, shares)
            next_spell = at + rng.expovariate(spells_per_day / DAY_S)
            continue
        times.append(at)
        shares.append(math.exp(min(level + away, -0.02)))
        away = memory * away + rng.gauss(0.0, step)
        at = min(at + max(10.0, rng.lognormvariate(math.log(193.0), 1.25)), max(next_spell, at + 10.0))
    return times, shares


def _spell_length_s(rng: Random) -> float:
    return min(2 * DAY_S, max(60.0, rng.lognormvariate(math.log(980.0), 1.9)))


def _spell(rng: Random, at: float, end: float, times: list[float], shares: list[float]) -> float:
    """One spell above on-demand: the price jumps up, may change once or twice, and falls at `end`."""
    while at < end:
        times.append(at)
        shares.append(min(10.0, 1.01 + rng.lognormvariate(math.log(0.4), 2.0)))
        at += rng.uniform(0.4, 1.4) * (end - at) if end - at > 60.0 else end - at
    return end


def _modern_series(rng: Random, start: float, end: float) -> Series:
    """Shares of on-demand: ln share' = ln share + m', m' = memory * m + N(0, step^2), within the observed band."""
    lowest, highest = math.log(0.10), math.log(0.64)
    log_share = math.log(min(0.60, max(0.12, rng.gauss(0.377, 0.075))))
    move, memory, step = 0.0, 0.6, 0.0036
    at = start
    times: list[float] = []
    shares: list[float] = []
    while at < end:
        times.append(at)
        shares.append(math.exp(log_share))
        move = memory * move + rng.gauss(0.0, step)
        if not lowest < log_share + move < highest:
            move = -move
        log_share += move
        at += max(600.0, rng.lognormvariate(math.log(24300.0), 0.38))
    return times, shares
