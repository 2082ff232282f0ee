"""The count of rises relative to the price of each moment: by hand, against a plain count, and against the truth."""

from __future__ import annotations

import numpy as np
import pytest

from shoestring.models.revocation.examples import draw
from shoestring.models.revocation.frequency import EmpiricalFrequency
from shoestring.models.revocation.model import Queries
from shoestring.models.revocation.price_arrays import Markets
from shoestring.models.revocation.rises import RelativeRises
from shoestring.models.revocation.scores import scores
from tests.models.revocation_markets import DAY, START, auction, market, question

HOUR = 3600.0
NO_PRIOR = RelativeRises(past_s=2 * DAY, prior_s=0.0)


def counted(queries: Queries, one: int, every_s: float = 20.0) -> float:
    """The same by looking at every twenty seconds of the past."""
    trace, at, within = queries.markets, float(queries.at[one]), float(queries.within_s[one])
    market = int(queries.market[one])
    begin = max(at - NO_PRIOR.past_s, trace.span(market)[0])
    moments = np.arange(begin + every_s / 2, at - within, every_s)
    factor = queries.max_usd_per_hour[one] / queries.price_now()[one]
    ahead = trace.windows(np.full(len(moments), market), moments, moments + within)
    price = trace.price_at(np.full(len(moments), market), moments)
    return float(np.mean(ahead.highest(ahead.price) > factor * price))


def test_a_rise_counts_at_whatever_level_it_begins() -> None:
    # a tenth more after two hours and after four, at another level each; the last hour is not decided yet
    rising = market([0, 2 * HOUR, 3 * HOUR, 4 * HOUR], [0.20, 0.22, 0.50, 0.55])
    answer = RelativeRises(prior_s=2 * HOUR).chance(question(rising, 6 * HOUR, 1.02 * 0.55))[0]
    # of five decided hours the price rose by more than 2 % within the next in the second, third and fourth
    assert answer == pytest.approx((3 + 0.25 * 2) / (5 + 2))


def test_a_rise_by_less_than_the_factor_does_not_count() -> None:
    rising = market([0, 2 * HOUR, 3 * HOUR, 4 * HOUR], [0.20, 0.22, 0.50, 0.55])
    assert NO_PRIOR.chance(question(rising, 6 * HOUR, 2 * 0.55))[0] == pytest.approx(1 / 5)
    assert NO_PRIOR.chance(question(rising, 6 * HOUR, 3 * 0.55))[0] == 0.0


def test_without_a_past_the_chance_is_what_such_a_maximum_had_on_auctions() -> None:
    chances = [RelativeRises().chance(question(market([0], [0.2]), 60.0, 0.2 * (1 + rise)))[0] for rise in (0, 0.02, 1)]
    assert chances == pytest.approx([0.5, 0.25, 0.5 / 51])
    half_an_hour = RelativeRises().chance(question(market([0], [0.2]), 60.0, 0.2, within_s=1800.0))[0]
    assert half_an_hour == pytest.approx(1 - 0.5**0.5)


def test_above_the_maximum_the_loss_is_certain() -> None:
    assert RelativeRises().chance(question(market([0, HOUR], [0.2, 0.9]), 2 * HOUR, 0.5))[0] == 1.0


def test_it_counts_what_a_look_at_every_moment_counts() -> None:
    markets, rng = auction(), np.random.default_rng(4)
    where, at = rng.integers(len(markets), size=40), START + rng.uniform(DAY, 11 * DAY, 40)
    ceiling = markets.price_at(where, at) * rng.choice((1.0, 1.0005, 1.05, 2.0), 40)
    queries = Queries.about(markets, where, at, ceiling, rng.choice((900.0, HOUR, 5 * HOUR), 40))
    plain = [counted(queries, one) for one in range(len(queries))]
    np.testing.assert_allclose(NO_PRIOR.chance(queries), plain, atol=0.01)


def test_at_a_maximum_just_above_the_price_it_knows_the_rate_and_the_count_of_a_level_does_not() -> None:
    markets: Markets = auction(days=24)
    asked = draw(markets, START + 7 * DAY, START + 24 * DAY, 1500, np.random.default_rng(0), maxima=("bid",))
    by_rises, by_level = (model.chance(asked.queries) for model in (RelativeRises(), EmpiricalFrequency()))
    assert by_rises.mean() == pytest.approx(asked.revoked.mean(), abs=0.05)
    # rises of this market come at random: no model of it can be better than the base rate
    assert scores(by_rises, asked.revoked).skill > -0.05
    assert scores(by_level, asked.revoked).skill < -1.0
