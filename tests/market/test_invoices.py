"""Invoices worked out by hand, for every billing rule."""

import pytest

from shoestring.errors import DataError
from shoestring.kernel.types import Offer, PriceHistory
from shoestring.market.billing import AwsSpot, Free, GcpPreemptible, PerHour, PerSecond, billing_rule, metered_usd

OFFER = Offer(provider="aws", zone="us-east-1a", machine="m6i.xlarge", spot=True)
HOUR = 3600.0


def prices(*records: tuple[float, float]) -> PriceHistory:
    times, usd = zip(*records, strict=True)
    return PriceHistory(offer=OFFER, times=times, usd_per_hour=usd, until=max(times))


FLAT = prices((0, 0.36))  # 0.36 USD/h is 0.0001 USD a second
STEP = prices((0, 0.36), (1800, 0.72))  # doubles after half an hour: 0.0001, then 0.0002 USD a second
CLIMB = prices((0, 0.10), (3600, 0.20), (7200, 0.40))  # a new price every hour

INVOICES = [
    # rule, prices, started, ended, cause, charged, refunded
    # -- per second, at least a minute
    (PerSecond(), FLAT, 0, 600, "released", 0.06, 0),  # 600 x 0.0001
    (PerSecond(), FLAT, 0, 60, "released", 0.006, 0),  # exactly the minimum: 60 x 0.0001
    (PerSecond(), FLAT, 0, 10, "released", 0.006, 0),  # 10 s used, 60 s charged
    (PerSecond(), FLAT, 0, 0, "lost", 0.006, 0),  # not a second used, 60 s charged
    (PerSecond(), FLAT, 0, 600, "revoked", 0.06, 0),  # no refund in this rule
    (PerSecond(), STEP, 0, 3600, "released", 0.54, 0),  # 1800 x 0.0001 + 1800 x 0.0002
    (PerSecond(), STEP, 1700, 1900, "expired", 0.03, 0),  # 100 x 0.0001 + 100 x 0.0002
    (PerSecond(), STEP, 1790, 1795, "released", 0.006, 0),  # minimum at the price of the end (0.0001), not of later
    (PerSecond(), STEP, 1790, 1810, "released", 0.011, 0),  # 10 x 0.0001 + 10 x 0.0002 + 40 more x 0.0002
    (PerSecond(minimum_s=0), FLAT, 0, 10, "released", 0.001, 0),  # 10 x 0.0001
    # -- Amazon's spot machines: free if interrupted in the first hour
    (AwsSpot(), FLAT, 0, 3599, "revoked", 0, 0.3599),  # one second short of the hour: all of it back
    (AwsSpot(), FLAT, 0, 3600, "revoked", 0.36, 0),  # the hour is over: charged in full
    (AwsSpot(), FLAT, 0, 30, "revoked", 0, 0.006),  # the minimum comes back too
    (AwsSpot(), FLAT, 0, 1800, "released", 0.18, 0),  # we ended it: 1800 x 0.0001
    (AwsSpot(), FLAT, 0, 1800, "expired", 0.18, 0),  # prepaid time over is our end, not Amazon's
    (AwsSpot(), FLAT, 0, 1800, "lost", 0.18, 0),  # broken is not interrupted
    (AwsSpot(), STEP, 0, 5400, "revoked", 0.90, 0),  # 1800 x 0.0001 + 3600 x 0.0002
    # -- Google: free if preempted in the first minute; a legacy machine's invoice ends at 24 h
    (GcpPreemptible(), FLAT, 0, 59, "revoked", 0, 0.006),  # 59 s, rounded up to the minimum, back
    (GcpPreemptible(), FLAT, 0, 60, "revoked", 0.006, 0),  # 60 x 0.0001
    (GcpPreemptible(), FLAT, 0, 45, "released", 0.006, 0),  # the minimum: 60 x 0.0001
    (GcpPreemptible(), FLAT, 0, 24 * HOUR, "revoked", 8.64, 0),  # 86400 x 0.0001
    # -- by the hour, as in the auction years
    (PerHour(), CLIMB, 0, 1, "released", 0.10, 0),  # an hour begun is an hour paid
    (PerHour(), CLIMB, 0, 3600, "released", 0.10, 0),  # exactly one hour
    (PerHour(), CLIMB, 0, 3601, "released", 0.30, 0),  # 0.10 + 0.20 for the second, just begun
    (PerHour(), CLIMB, 0, 9000, "released", 0.70, 0),  # 0.10 + 0.20 + 0.40
    (PerHour(), CLIMB, 0, 9000, "revoked", 0.30, 0.40),  # the third hour was cut short: free
    (PerHour(), CLIMB, 0, 1800, "revoked", 0, 0.10),  # the first hour was cut short
    (PerHour(), CLIMB, 0, 7200, "revoked", 0.30, 0),  # taken on the stroke: both hours were whole
    (PerHour(), CLIMB, 1800, 7200, "released", 0.30, 0),  # hours begin at 1800 (0.10) and at 5400 (0.20)
    # -- ours
    (Free(), FLAT, 0, 86400, "released", 0, 0),
]


@pytest.mark.parametrize(("rule", "series", "started", "ended", "cause", "charged", "refunded"), INVOICES)
def test_the_invoice_is_the_one_worked_out_by_hand(rule, series, started, ended, cause, charged, refunded):
    bill = rule.charge(float(started), float(ended), series, cause)
    assert bill.charged_usd == pytest.approx(charged, abs=1e-12)
    assert bill.refunded_usd == pytest.approx(refunded, abs=1e-12)


def test_a_price_above_the_ceiling_is_charged_at_the_ceiling():
    # 1800 x 0.0001 + 1800 x (0.54 / 3600 = 0.00015)
    bill = AwsSpot().charge(0.0, 3600.0, STEP, "released", ceiling_usd_per_hour=0.54)
    assert bill.charged_usd == pytest.approx(0.18 + 0.27)
    # 0.10 + 0.20 + min(0.40, 0.25)
    assert PerHour().charge(0.0, 9000.0, CLIMB, "released", ceiling_usd_per_hour=0.25).charged_usd == pytest.approx(
        0.55
    )


def test_every_name_has_its_rule():
    rules = {name: billing_rule(name) for name in ("per_second", "per_hour", "aws_spot", "gcp_preemptible", "free")}
    assert [type(rule) for rule in rules.values()] == [PerSecond, PerHour, AwsSpot, GcpPreemptible, Free]


def test_a_lease_before_the_first_price_cannot_be_billed():
    with pytest.raises(DataError, match="first price is of 500"):
        PerSecond().charge(0.0, 600.0, prices((500, 0.1)), "released")


def test_metering_touches_only_the_records_of_the_lease():
    class Counted(tuple):
        reads = 0

        def __getitem__(self, index):
            Counted.reads += 1
            return super().__getitem__(index)

    long = [(float(t), 0.1 + t % 7) for t in range(0, 1_000_000, 10)]
    times, usd = zip(*long, strict=True)

    class Series:
        pass

    series = Series()
    series.times, series.usd_per_hour = Counted(times), Counted(usd)
    metered_usd(series, 500_000.0, 500_100.0)
    assert Counted.reads < 100
