"""The market of machines one really has: observed prices, and bills without assumed refunds."""

import math

from shoestring.kernel.types import Offer
from shoestring.market.own import NodeType, OwnMarket

NODE = NodeType(
    label="spot", machine="m", provider="aws", zone="a", spot=True, usd_per_hour=3.6, list_usd_per_hour=7.2,
    billing="aws_spot",
)  # fmt: skip
OFFER = Offer(provider="aws", zone="a", machine="m", spot=True)


def test_a_price_is_valid_until_another_is_observed():
    prices = OwnMarket([NODE], [3.6]).book
    assert prices.observe(OFFER, 100.0, 1.8)
    assert not prices.observe(OFFER, 200.0, 1.8), "the same price is nothing new"
    assert not prices.observe(OFFER, 50.0, 9.9), "and the past is billed already"
    assert [prices.usd_per_hour(OFFER, at) for at in (0.0, 99.0, 100.0, 1e9)] == [3.6, 3.6, 1.8, 1.8]
    assert prices.history(OFFER, 50.0).usd_per_hour == (3.6,)


def test_a_machine_that_is_gone_is_billed_in_full():
    """In its first hour Amazon refunds what it preempts itself; that the machine is gone does not say who ended it."""
    market = OwnMarket([NODE], [3.6])
    bill = market.bill(OFFER, None, 0.0, 1000.0, "revoked")
    assert math.isclose(bill.charged_usd, 1.0)
    assert bill.refunded_usd == 0.0


def test_a_price_above_the_list_price_is_billed_at_the_list_price():
    market = OwnMarket([NODE], [3.6])
    market.book.observe(OFFER, 1000.0, 100.0)
    assert math.isclose(market.bill(OFFER, None, 0.0, 2000.0, "released").charged_usd, 1.0 + 2.0)


def test_prices_may_be_needed_for_ever():
    market = OwnMarket([NODE], [3.6])
    market.book.require([OFFER], 0.0, 1e12)
    assert (market.start, market.end) == (0.0, math.inf)
