"""Labelled examples: what predictors are trained on and scored by.

A maximum price is drawn in one of several ways, because a predictor trained on one way only is bad at the others. An
example is used only if its label is decided before the end of the prices it may know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoestring.errors import DataError
from shoestring.models.revocation.bids import ABOVE_MARKET
from shoestring.models.revocation.model import Queries
from shoestring.models.revocation.price_arrays import DAY_S, HOUR_S, MINUTE_S, Flags, Floats, Ints, Markets

LEAST_DELTA, MOST_DELTA = 1e-5, 0.2
"""The interval of the paper from which a random maximum exceeds the present price, in dollars."""
WARM_UP_S = DAY_S
"""No example from the first day of a market: there is too little past to compute features from."""


@dataclass(frozen=True, eq=False)
class Examples:
    queries: Queries
    revoked: Flags

    def __len__(self) -> int:
        return len(self.revoked)


def fluctuation(markets: Markets, market: Ints, at: Floats) -> Floats:
    """Trimmed mean of |price change| from minute to minute in the past hour.  Paper: SpotTune Alg. 2.

    Differs from the paper: divided by the number of changes summed, of which the printed 0.6 L is slightly short;
    minutes before the first record repeat its price. Where most minutes see no change this is 0, as it is in print.
    """
    minutes = at[:, None] - MINUTE_S * np.arange(60, -1, -1)
    begin = markets.times[markets.first[market]]
    prices = markets.price_at(np.repeat(market, 61), np.maximum(minutes, begin[:, None]).ravel()).reshape(-1, 61)
    deltas = np.sort(np.abs(np.diff(prices[:, :-1], axis=1)), axis=1)
    L = deltas.shape[1]
    kept = [i for i in range(L) if 0.2 * L < i < 0.8 * L]
    mean: Floats = deltas[:, kept].mean(axis=1)
    return mean


Maximum = Callable[[Markets, Ints, Floats, np.random.Generator], Floats]
"""(markets, market, at, rng) -> the maximum price of each."""


def _absolute(markets: Markets, market: Ints, at: Floats, rng: np.random.Generator) -> Floats:
    return markets.price_at(market, at) + rng.uniform(LEAST_DELTA, MOST_DELTA, len(at))


def _relative(markets: Markets, market: Ints, at: Floats, rng: np.random.Generator) -> Floats:
    return markets.price_at(market, at) + rng.uniform(LEAST_DELTA, MOST_DELTA, len(at)) * markets.on_demand[market]


def _fluctuating(markets: Markets, market: Ints, at: Floats, _: np.random.Generator) -> Floats:
    return markets.price_at(market, at) + fluctuation(markets, market, at)


def _bid(markets: Markets, market: Ints, at: Floats, _: np.random.Generator) -> Floats:
    return markets.price_at(market, at) * (1.0 + ABOVE_MARKET)


def _on_demand(markets: Markets, market: Ints, _at: Floats, _: np.random.Generator) -> Floats:
    return markets.on_demand[market]


MAXIMA: Mapping[str, Maximum] = {
    "absolute": _absolute,
    "relative": _relative,
    "fluctuation": _fluctuating,
    "on_demand": _on_demand,
    "bid": _bid,
}
"""absolute: as printed, up to 20 cents above the price · relative: up to a fifth of the on-demand price above it ·
fluctuation: Alg. 2, at the edge of what happens · on_demand: the most that a lease without a maximum pays ·
bid: that of `refund_seeking`, just above the price."""
MIXTURE = ("absolute", "relative", "fluctuation", "on_demand")
"""What models are trained on."""


def draw(
    markets: Markets,
    begin: float,
    end: float,
    count: int,
    rng: np.random.Generator,
    *,
    maxima: Sequence[str] = MIXTURE,
    within_s: Callable[[int], Floats] | float = HOUR_S,
    only: Sequence[int] | None = None,
) -> Examples:
    """About `count` examples of [begin, end), in all markets or `only` some, each with a random one of `maxima`.

    Every label is decided a minute before `end`, so a model tested from `end` on has seen nothing of that time.
    Times at which the price is above the maximum are left out: there is no machine to lose then.
    """
    candidates = range(len(markets)) if only is None else only
    spans = {one: (max(begin, markets.span(one)[0] + WARM_UP_S), min(end, markets.span(one)[1])) for one in candidates}
    usable = np.array([one for one, (low, high) in spans.items() if high - low > HOUR_S], dtype=np.int64)
    if not len(usable):
        raise DataError("the prices are too short to learn from", hint="give a day and several hours at least")
    market = rng.choice(usable, count)
    within = np.full(count, within_s) if isinstance(within_s, float | int) else within_s(count)
    low = np.array([spans[one][0] for one in market])
    high = np.array([spans[one][1] for one in market]) - within - MINUTE_S
    at = rng.uniform(low, np.maximum(high, low))
    kind = rng.integers(len(maxima), size=count)
    ceiling = np.empty(count)
    for index, name in enumerate(maxima):
        mine = np.flatnonzero(kind == index)
        ceiling[mine] = MAXIMA[name](markets, market[mine], at[mine], rng)
    queries = Queries.about(markets, market, at, ceiling, within)
    fair = np.flatnonzero((high > low) & (queries.price_now() <= ceiling))
    queries = queries.pick(fair)
    return Examples(queries, revoked(queries))


def revoked(queries: Queries) -> Flags:
    """The label: did the price exceed the maximum within `within_s`? This looks ahead, models must not."""
    labels = [_revoked(queries.pick(slice(begin, begin + 4096))) for begin in range(0, len(queries), 4096)]
    return np.concatenate(labels) if labels else np.empty(0, dtype=np.bool_)


def _revoked(queries: Queries) -> Flags:
    ahead = queries.markets.windows(queries.market, queries.at, queries.at + queries.within_s)
    highest: Floats = ahead.highest(ahead.price)
    return highest > queries.max_usd_per_hour


def mixed_times(rng: np.random.Generator) -> Callable[[int], Floats]:
    """Half of the examples have a horizon of an hour, the others of five minutes to six hours, log-uniform."""

    def draw_times(count: int) -> Floats:
        times = np.exp(rng.uniform(np.log(300.0), np.log(6 * HOUR_S), count))
        return np.where(rng.random(count) < 0.5, HOUR_S, times)

    return draw_times
