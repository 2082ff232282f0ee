"""The maximum price of `refund_seeking`, for the rule and for the tests of what it relies on."""

ABOVE_MARKET = 0.0005
"""How far the maximum is above the current price, as a share of it."""
