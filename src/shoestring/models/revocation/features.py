"""The features of a market, from records up to the time of the query and no later one.

Two sets. `minute_records` is SpotTune's: six features of each of the last minutes. `summary` is ours: features that
mean the same in a market of a cent and in one of ten dollars an hour, so that one model can learn from all.
"""

from __future__ import annotations

import numpy as np

from shoestring.models.revocation.model import Queries
from shoestring.models.revocation.price_arrays import DAY_S, HOUR_S, MINUTE_S, Floats, Ints, Markets, Windows

MINUTES = 60
"""59 past records and the present one."""
LOOK_BACK_S = {"hour": HOUR_S, "day": DAY_S, "week": 7 * DAY_S}
CHUNK = 512
"""Queries whose windows are held in memory at once."""

NAMES = (
    *("price", "maximum", "headroom", "held_for", "within", "hour_of_day", "workday"),
    *(
        f"{figure}_{window}"
        for window in LOOK_BACK_S
        for figure in ("mean", "highest", "moved", "changes", "above", "crossings", "ended_so", "since_above")
    ),
)
"""The columns of `summary`."""


def clock(at: Floats) -> tuple[Floats, Floats]:
    """Hour of the day and whether it is a workday, in UTC. The epoch began on a Thursday."""
    weekday = np.floor(at / DAY_S + 3) % 7
    return np.floor(at % DAY_S / HOUR_S), (weekday < 5).astype(np.float64)


def minute_records(markets: Markets, market: Ints, at: Floats, minutes: int = MINUTES) -> Floats:
    """The six features of the paper for each of the last minutes, the present one last: (queries, minutes, 6).

    Price, average price and number of changes of the past hour, seconds since the price was set, workday, hour.
    Minutes before the first record repeat it.
    """
    queries = np.repeat(market, minutes)
    moments = (at[:, None] - MINUTE_S * np.arange(minutes - 1, -1, -1)).ravel()
    moments = np.maximum(moments, markets.times[markets.first[queries]])
    now = markets.record_at(queries, moments)
    hour_ago = np.maximum(moments - HOUR_S, markets.times[markets.first[queries]])
    then = markets.record_at(queries, hour_ago)
    spent = markets.paid_until(now, moments) - markets.paid_until(then, hour_ago)
    lasted = moments - hour_ago
    price = markets.prices[now]
    mean = np.where(lasted > 0, spent / np.maximum(lasted, 1e-9) * HOUR_S, price)
    hour, workday = clock(moments)
    features = (price, mean, (now - then).astype(np.float64), moments - markets.times[now], workday, hour)
    return np.stack(features, axis=1).reshape(len(at), minutes, 6)


def summary(queries: Queries) -> Floats:
    """One row of `NAMES` for each query; prices as shares of the on-demand price, times in hours."""
    rows = [_summary(queries.pick(slice(begin, begin + CHUNK))) for begin in range(0, len(queries), CHUNK)]
    return np.concatenate(rows) if rows else np.empty((0, len(NAMES)))


def _summary(queries: Queries) -> Floats:
    markets, on_demand = queries.markets, queries.markets.on_demand[queries.market]
    now = markets.record_at(queries.market, queries.at)
    price = markets.prices[now]
    hour, workday = clock(queries.at)
    columns = [
        price / on_demand,
        queries.max_usd_per_hour / on_demand,
        np.log(np.maximum(queries.max_usd_per_hour, 1e-9) / price),
        (queries.at - markets.times[now]) / HOUR_S,
        np.log(queries.within_s / HOUR_S),
        hour,
        workday,
    ]
    for length in LOOK_BACK_S.values():
        columns += _window_figures(queries, now, length)
    return np.stack(columns, axis=1)


def _window_figures(queries: Queries, now: Ints, length: float) -> list[Floats]:
    markets, on_demand = queries.markets, queries.markets.on_demand[queries.market]
    begin = np.maximum(queries.at - length, markets.times[markets.first[queries.market]])
    then = markets.record_at(queries.market, begin)
    lasted = queries.at - begin
    spent = markets.paid_until(now, queries.at) - markets.paid_until(then, begin)
    mean = np.where(lasted > 0, spent / np.maximum(lasted, 1e-9) * HOUR_S, markets.prices[now])
    highest = markets.highest(then, now)
    features = np.zeros((4, len(queries)))
    features[3] = np.log1p(length / HOUR_S)
    # Single records are read only where the price was above the maximum at all.
    risky = np.flatnonzero(highest > queries.max_usd_per_hour)
    if len(risky):
        features[:, risky] = _figures_above(queries.pick(risky), length)
    return [
        mean / on_demand,
        np.log(highest / np.maximum(queries.max_usd_per_hour, 1e-9)),
        (markets.moved[now] - markets.moved[then]) / on_demand,
        (now - then).astype(np.float64),
        *features,
    ]


def _figures_above(queries: Queries, length: float) -> Floats:
    """Share of time above the maximum, crossings, share of leases that would have ended, hours since the last."""
    seen = queries.markets.windows(queries.market, queries.at - length, queries.at)
    held = seen.until - seen.since
    above = seen.price > queries.max_usd_per_hour[seen.owner]
    crossed = above & ~np.roll(above, 1)
    crossed[seen.heads] = False
    ended, begun = ended_so(queries, seen)
    last = seen.highest(np.where(above, seen.until, -np.inf))
    return np.stack(
        (
            seen.total(above * held) / np.maximum(seen.total(held), 1e-9),
            seen.total(crossed),
            ended / np.maximum(begun, 1.0),
            np.log1p((queries.at - last) / HOUR_S),
        )
    )


def ended_so(queries: Queries, seen: Windows) -> tuple[Floats, Floats]:
    """Seconds of each window from which a lease with this maximum was gone within h, and seconds it could begin at.

    A second counts only if all of its following h seconds lie in the window: later ones are not decided yet.
    """
    ceiling, within = queries.max_usd_per_hour[seen.owner], queries.within_s[seen.owner]
    above = seen.price > ceiling
    decided = np.minimum(seen.until, queries.at[seen.owner] - within)
    open_for = np.where(above, 0.0, np.maximum(decided - seen.since, 0.0))
    place = np.arange(len(above))
    following = np.minimum.accumulate(np.where(above, place, len(above))[::-1])[::-1]
    inside = np.minimum(following, len(above) - 1)
    gone_at = np.where((following < len(above)) & (seen.owner[inside] == seen.owner), seen.since[inside], np.inf)
    too_late = np.maximum(seen.since, gone_at - within)
    ended = np.where(above, 0.0, np.maximum(decided - too_late, 0.0))
    return seen.total(ended), seen.total(open_for)
