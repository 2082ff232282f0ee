"""The features of a market, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shoestring.errors import DataError
from shoestring.kernel.types import PriceHistory
from shoestring.models.revocation.examples import draw, fluctuation, revoked
from shoestring.models.revocation.features import LOOK_BACK_S, NAMES, ended_so, minute_records, summary
from shoestring.models.revocation.price_arrays import Markets
from tests.models.revocation_markets import DAY, START, auction, market, offer, question

HOUR = 3600.0


def told(markets: Markets, at: float, maximum: float, within_s: float = HOUR) -> dict[str, float]:
    return dict(zip(NAMES, summary(question(markets, at, maximum, within_s))[0].tolist(), strict=True))


def test_a_price_holds_until_the_next_record() -> None:
    markets = market([0, 600], [0.2, 0.8])
    row = minute_records(markets, np.array([0]), np.array([START + 599.0]))[0]
    assert (row[:, 0] == 0.2).all(), "no line is drawn to a price that nobody knows yet"
    assert minute_records(markets, np.array([0]), np.array([START + 600.0]))[0, -1, 0] == 0.8


def test_the_six_features_of_a_minute() -> None:
    markets = market([0, 3 * HOUR, 3 * HOUR + 1800], [0.2, 0.4, 0.3])
    price, mean, changes, held_s, workday, hour = minute_records(
        markets, np.array([0]), np.array([START + 3.75 * HOUR])
    )[0, -1]
    assert (price, changes, held_s, workday, hour) == (0.3, 2, 900, 1, 3)
    assert mean == pytest.approx((0.2 * 900 + 0.4 * 1800 + 0.3 * 900) / 3600)


def test_the_first_of_sixty_minutes_is_59_minutes_ago() -> None:
    markets = market([0, HOUR], [0.2, 0.4])
    row = minute_records(markets, np.array([0]), np.array([START + HOUR + 59 * 60.0]))[0]
    assert row.shape == (60, 6)
    assert (row[:, 0] == 0.4).all()
    earlier = minute_records(markets, np.array([0]), np.array([START + HOUR + 58 * 60.0]))[0]
    assert earlier[:2, 0].tolist() == [0.2, 0.4]


def test_summary_features_are_shares_of_the_on_demand_price() -> None:
    cheap = told(market([0, 2 * HOUR], [0.2, 0.4]), 3 * HOUR, 0.5)
    dear = told(market([0, 2 * HOUR], [2.0, 4.0], on_demand=10.0), 3 * HOUR, 5.0)
    assert cheap == pytest.approx(dear)
    assert cheap["price"] == 0.4
    assert cheap["maximum"] == 0.5
    assert cheap["held_for"] == 1.0
    assert cheap["mean_day"] == pytest.approx((0.2 * 2 + 0.4) / 3)


def test_spells_above_the_maximum_are_counted() -> None:
    row = told(market([0, 2 * HOUR, 3 * HOUR], [0.2, 0.9, 0.2]), 6 * HOUR, 0.5)
    assert row["above_day"] == pytest.approx(1 / 6)
    assert row["crossings_day"] == 1
    assert row["crossings_hour"] == 0
    assert row["since_above_day"] == pytest.approx(np.log1p(3.0))
    assert row["since_above_hour"] == pytest.approx(np.log1p(LOOK_BACK_S["hour"] / HOUR)), "not in this window"


def test_leases_that_would_have_ended_are_those_begun_less_than_h_before_a_crossing() -> None:
    queries = question(market([0, 2 * HOUR, 3 * HOUR], [0.2, 0.9, 0.2]), 6 * HOUR, 0.5)
    seen = queries.markets.windows(queries.market, queries.at - DAY, queries.at)
    ended, begun = ended_so(queries, seen)
    assert ended[0] == HOUR, "those of the second hour"
    assert begun[0] == 4 * HOUR, "two hours before the spell and two after it; the last hour is not decided yet"


def test_the_fluctuation_leaves_out_the_extremes_of_the_past_hour() -> None:
    minutes = list(range(0, 3601, 60))
    steady = market(minutes, [1.0 + 0.01 * (index % 2) for index in range(61)])
    assert fluctuation(steady, np.array([0]), np.array([START + HOUR])) == pytest.approx(0.01)
    one_spike = market([0, 1800, 1860], [1.0, 9.0, 1.0])
    assert fluctuation(one_spike, np.array([0]), np.array([START + HOUR]))[0] == 0.0


def test_the_label_is_whether_the_price_exceeds_the_maximum_in_time() -> None:
    markets = market([0, 2 * HOUR, 5 * HOUR], [0.2, 0.9, 0.2])
    assert revoked(question(markets, HOUR, 0.5)).tolist() == [True]
    assert revoked(question(markets, HOUR - 1, 0.5)).tolist() == [False], "an hour ends a second before the crossing"
    assert revoked(question(markets, HOUR, 0.9)).tolist() == [False], "a price at the maximum is paid"


def test_no_example_is_within_61_minutes_of_the_end() -> None:
    markets = auction()
    end = START + 5 * DAY
    found = draw(markets, START, end, 2000, np.random.default_rng(0))
    assert found.queries.at.max() <= end - 61 * 60
    assert found.queries.at.min() >= START + DAY
    assert (found.queries.price_now() <= found.queries.max_usd_per_hour).all()


def test_a_time_before_the_first_record_is_refused() -> None:
    with pytest.raises(DataError, match=r"no price of m3\.large spot in us-east-1a is known at 2016-02-29"):
        summary(question(market([0], [0.2]), -60, 0.5))
    with pytest.raises(DataError, match=r"no price of m3\.large spot in us-east-1a is known yet"):
        Markets.of([PriceHistory(offer=offer(), times=(), usd_per_hour=(), until=0.0)], {offer(): 1.0})
