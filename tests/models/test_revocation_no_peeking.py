"""No predictor sees the future: with all later prices scrambled, every prediction is bit for bit the same."""

from __future__ import annotations

import numpy as np
import pytest

from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.models.revocation.examples import revoked
from shoestring.models.revocation.frequency import EmpiricalFrequency
from shoestring.models.revocation.logistic import fit_logistic
from shoestring.models.revocation.model import Queries, RevocationModel, chance_of
from shoestring.models.revocation.price_arrays import Floats, Markets
from shoestring.models.revocation.rises import RelativeRises
from shoestring.models.revocation.trees import fit_trees
from tests.models.revocation_markets import DAY, START, auction_book, examples

NOW = START + 8 * DAY


class Peeking:
    """The control: it knows what happens."""

    def chance(self, queries: Queries, /) -> Floats:
        return revoked(queries).astype(np.float64)


class Interpolating:
    """The other control: it interpolates to the next record, as if the price were known beforehand."""

    def chance(self, queries: Queries, /) -> Floats:
        markets = queries.markets
        now = markets.record_at(queries.market, queries.at)
        after = np.minimum(now + 1, markets.first[queries.market + 1] - 1)
        share = (queries.at - markets.times[now]) / np.maximum(markets.times[after] - markets.times[now], 1.0)
        between = markets.prices[now] + share * (markets.prices[after] - markets.prices[now])
        return np.clip(between / queries.max_usd_per_hour, 0.0, 1.0)


def futures() -> tuple[Markets, Markets]:
    """The same market up to now, with two futures; the second has other records at other times."""
    book, on_demand = auction_book()
    rng = np.random.default_rng(1)

    def scrambled(trace: PriceTrace) -> PriceTrace:
        times = [time for time in trace.times if time <= NOW]
        prices = list(trace.usd_per_hour[: len(times)])
        later = np.sort(rng.uniform(NOW + 1, NOW + 4 * DAY, 500))
        return PriceTrace(trace.offer, [*times, *later], [*prices, *rng.uniform(0.001, 9.0, 500)])

    other = PriceBook({offer: scrambled(book.trace(offer)) for offer in book})
    return Markets.of_book(book, on_demand), Markets.of_book(other, on_demand)


def ask(model: RevocationModel, markets: Markets) -> Floats:
    rng = np.random.default_rng(2)
    market = rng.integers(len(markets), size=300)
    at = rng.uniform(NOW - DAY, NOW, 300)
    at[:100] = NOW
    ceiling = markets.on_demand[market] * rng.uniform(0.1, 1.2, 300)
    return model.chance(Queries.about(markets, market, at, ceiling, 4 * 3600.0))


@pytest.fixture(scope="module")
def models() -> dict[str, RevocationModel]:
    book, on_demand = auction_book()
    found = examples(Markets.of_book(book, on_demand), 2000)
    return {
        "trees": fit_trees(found, rounds=20),
        "logistic": fit_logistic(found),
        "frequency": EmpiricalFrequency(),
        "rises": RelativeRises(),
    }


@pytest.mark.parametrize("name", ["trees", "logistic", "frequency", "rises"])
def test_scrambling_later_prices_changes_no_prediction(models: dict[str, RevocationModel], name: str) -> None:
    here, there = futures()
    assert (ask(models[name], here) == ask(models[name], there)).all()


@pytest.mark.parametrize("control", [Peeking(), Interpolating()], ids=["peeking", "interpolating"])
def test_a_model_that_peeks_is_detected(control: RevocationModel) -> None:
    here, there = futures()
    assert (ask(control, here) != ask(control, there)).any()


@pytest.mark.parametrize("name", ["trees", "logistic", "frequency", "rises"])
def test_a_policy_that_knows_the_past_alone_gets_the_same_prediction(
    models: dict[str, RevocationModel], name: str
) -> None:
    book, on_demand = auction_book()
    markets = Markets.of_book(book, on_demand)
    for index, offer in enumerate(markets.offers):
        ceiling = 0.4 * on_demand[offer]
        queries = Queries.about(markets, np.array([index]), np.array([NOW]), np.array([ceiling]))
        alone = chance_of(
            models[name],
            book.history(offer, NOW),
            on_demand_usd_per_hour=on_demand[offer],
            max_usd_per_hour=ceiling,
        )
        assert alone == models[name].chance(queries)[0]
