"""How risky is each market now, and how was it recently? The table and the plot of `shoestring market show`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoestring.errors import DataError, SpecError
from shoestring.kernel.types import Offer
from shoestring.market.prices import utc
from shoestring.units import show_duration

if TYPE_CHECKING:
    from shoestring.models.revocation.model import Queries, RevocationModel
    from shoestring.models.revocation.price_arrays import Floats, Markets
    from shoestring.models.revocation.saved import SavedModel

WEEK_S = 7 * 86400.0
DRAWN = 400
"""Points of a plotted line."""


@dataclass(frozen=True)
class MarketNow:
    index: int
    offer: Offer
    usd_per_hour: float
    on_demand_usd_per_hour: float
    highest_usd_per_hour: float
    """In the week before."""
    max_usd_per_hour: float
    chance: float

    def to_plain(self) -> dict[str, Any]:
        plain = asdict(self)
        del plain["index"], plain["offer"]
        return {"machine": self.offer.machine, "zone": self.offer.zone, **plain}


def markets_now(
    markets: Markets, saved: SavedModel | None, maximum: float | None, within_s: float, at: float | None
) -> tuple[float, list[MarketNow]]:
    """The time of the query, and every market then, the riskiest first. Markets not recorded yet are left out."""
    import numpy as np

    spans = [markets.span(one) for one in range(len(markets))]
    now = max(high for _, high in spans) if at is None else at
    known = np.array([one for one, (low, _) in enumerate(spans) if low <= now], dtype=np.int64)
    if not len(known):
        first = min(low for low, _ in spans)
        raise SpecError(f"no market is recorded at {utc(now)}", hint=f"records start at {utc(first)}")
    queries = _queries(markets, known, np.full(len(known), now), maximum, within_s)
    week = markets.windows(known, queries.at - WEEK_S, queries.at)
    features = zip(known, queries.price_now(), week.highest(week.price), queries.max_usd_per_hour, strict=True)
    chances = _model(saved).chance(queries)
    rows = [
        MarketNow(
            int(one),
            markets.offers[one],
            float(price),
            float(markets.on_demand[one]),
            float(top),
            float(most),
            float(p),
        )
        for (one, price, top, most), p in zip(features, chances, strict=True)
    ]
    return now, sorted(rows, key=lambda row: (-row.chance, row.offer))


def draw_risk(
    path: Path,
    markets: Markets,
    saved: SavedModel | None,
    row: MarketNow,
    maximum: float | None,
    within_s: float,
    now: float,
    length_s: float,
) -> None:
    """The last days of one market, prices and chances, as an SVG file."""
    import numpy as np

    from shoestring.report.plots.revocation_risk import risk_picture

    begin = max(now - length_s, markets.span(row.index)[0])
    moments: Floats = np.linspace(begin, now, DRAWN)
    market = np.full(DRAWN, row.index)
    queries = _queries(markets, market, moments, maximum, within_s)
    seen = markets.windows(market[:1], np.array([begin]), np.array([now]))
    prices = [(float(at - begin), float(price)) for at, price in zip(seen.since, seen.price, strict=True)]
    picture = risk_picture(
        title=str(row.offer),
        since=utc(begin),
        prices=[*prices, (now - begin, prices[-1][1])],
        maximum=row.max_usd_per_hour,
        chances=list(zip((moments - begin).tolist(), _model(saved).chance(queries).tolist(), strict=True)),
        within=show_duration(within_s),
    )
    try:
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error


def _queries(markets: Markets, market: Any, at: Floats, maximum: float | None, within_s: float) -> Queries:
    import numpy as np

    from shoestring.models.revocation.model import Queries

    if not within_s > 0:
        raise SpecError("--within must be more than 0", hint="for example 1h or 30m")
    if maximum is not None and not 0 < maximum < float("inf"):
        raise SpecError(f"--max-price {maximum:g} is not a price", hint="give dollars per hour, more than 0")
    ceiling = markets.on_demand[market] if maximum is None else np.full(len(market), maximum)
    return Queries.about(markets, market, at, ceiling, within_s)


def _model(saved: SavedModel | None) -> RevocationModel:
    from shoestring.models.revocation.frequency import EmpiricalFrequency

    return EmpiricalFrequency() if saved is None else saved.model
