"""Traces know everything; histories only what was known."""

import math
from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.errors import DataError
from shoestring.market.catalog import catalog
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated import synthetic_prices as synthetic


@pytest.fixture
def trace(spot):
    return PriceTrace(spot, (0.0, 100.0, 300.0), (0.1, 0.4, 0.2))


def test_a_price_holds_until_the_next(trace):
    assert [trace.at(t) for t in (0, 99.9, 100, 299, 300, 1e9)] == [0.1, 0.1, 0.4, 0.4, 0.2, 0.2]


def test_a_series_that_starts_too_late_says_when_it_starts(trace):
    with pytest.raises(DataError, match="start at 1970-01-01 00:00 UTC") as error:
        trace.at(-60.0)
    assert "start the run later" in error.value.hint


def test_a_history_ends_at_the_requested_time(trace):
    history = trace.history(299.0)
    assert (history.times, history.usd_per_hour, history.until) == ((0.0, 100.0), (0.1, 0.4), 299.0)
    assert trace.history(-1.0).times == ()


def test_neighbouring_histories_share_their_past(trace):
    assert trace.history(150.0).times is trace.history(200.0).times


def test_the_first_crossing_is_found(trace):
    assert trace.first_crossing(0.0, 0.3) == 100.0
    assert trace.first_crossing(150.0, 0.3) == 150.0  # above already
    assert trace.first_crossing(300.0, 0.3) == math.inf
    assert trace.first_crossing(0.0, 0.4) == math.inf  # at the maximum is not above it


def test_the_mean_is_weighted_by_time(trace):
    assert trace.mean(50.0, 350.0) == pytest.approx((50 * 0.1 + 200 * 0.4 + 50 * 0.2) / 300)
    assert trace.mean(100.0, 100.0) == 0.4


@pytest.mark.parametrize(
    ("times", "prices"), [((), ()), ((1.0, 1.0), (0.1, 0.2)), ((2.0, 1.0), (0.1, 0.2)), ((1.0,), ())]
)
def test_an_invalid_series_is_refused(spot, times, prices):
    with pytest.raises(DataError):
        PriceTrace(spot, times, prices)


def test_on_demand_has_the_price_of_the_listing():
    listing = catalog.listing(catalog.machine("aws", "m6i.xlarge"), "us-east-1a", spot=False)
    book = PriceBook({}, [listing])
    assert book.usd_per_hour(listing.offer, 1.7e9) == 0.192
    assert book.history(listing.offer, 1.7e9).usd_per_hour == (0.192,)


def test_an_offer_without_prices_is_named(spot):
    with pytest.raises(DataError, match=r"no prices of m6i\.xlarge spot in us-east-1a"):
        PriceBook({}).usd_per_hour(spot, 0.0)


def test_a_run_longer_than_the_prices_is_refused_before_it_starts(trace, spot):
    book = PriceBook({spot: trace})
    assert book.span() == (0.0, 300.0)
    book.require([spot], 0.0, 86400.0)
    with pytest.raises(DataError, match="but the run may last until 1970-01-03"):
        book.require([spot], 0.0, 2 * 86400.0)
    with pytest.raises(DataError, match="but are needed at"):
        book.require([spot], -86400.0, 0.0)


def spliced(past: PriceBook, at: float, future: PriceBook) -> PriceBook:
    """One market up to and including `at`, another one from there on."""
    traces = {}
    for offer in past:
        before, after = past.trace(offer), future.trace(offer)
        here, there = bisect_right(before.times, at), bisect_left(after.times, math.nextafter(at, math.inf))
        prices = before.usd_per_hour[:here] + after.usd_per_hour[there:]
        traces[offer] = PriceTrace(offer, before.times[:here] + after.times[there:], prices)
    return PriceBook(traces)


@given(at=st.floats(0.0, 3 * 86400.0), seed=st.integers(0, 20))
def test_another_future_changes_no_history(at, seed):
    listing = catalog.listing(catalog.machine("aws", "m6i.xlarge"), "us-east-1a", spot=True)
    book = synthetic.auction([listing], seed=seed, start=0.0, days=3)
    other = spliced(book, at, synthetic.auction([listing], seed=seed + 1000, start=0.0, days=3))
    for before in (at, at / 2, at / 7):
        assert book.history(listing.offer, before) == other.history(listing.offer, before)
        assert book.usd_per_hour(listing.offer, before) == other.usd_per_hour(listing.offer, before)
