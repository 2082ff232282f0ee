"""What the guard reserves is an upper bound of the invoice."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.kernel.types import Offer, PriceHistory
from shoestring.market.billing import billing_rule, new_lease_usd

OFFER = Offer(provider="aws", zone="us-east-1a", machine="m6i.xlarge", spot=True)
START = 1.74e9
RULES = ["per_second", "per_hour", "aws_spot", "gcp_preemptible", "free"]
CAUSES = ["released", "revoked", "expired", "lost"]
seconds = st.floats(0.0, 20_000.0)
usd = st.floats(0.001, 30.0)


@st.composite
def leases(draw):
    """A price path, a ceiling that also caps it, and start <= now <= end <= until of a lease under it."""
    times = sorted({START, *(START + s for s in draw(st.lists(seconds, max_size=25)))})
    path = [draw(usd) for _ in times]
    ceiling = draw(usd)
    started, now, ended, until = sorted(START + draw(seconds) for _ in range(4))
    return times, path, ceiling, started, now, ended, until


def known(times, path, until):
    seen = [(t, p) for t, p in zip(times, path, strict=True) if t <= until]
    return PriceHistory(
        offer=OFFER, times=tuple(t for t, _ in seen), usd_per_hour=tuple(p for _, p in seen), until=until
    )


@given(leases(), st.sampled_from(RULES), st.sampled_from(CAUSES))
def test_no_invoice_exceeds_the_worst_case_known_before(lease, name, cause):
    times, path, ceiling, started, now, ended, until = lease
    rule = billing_rule(name)
    worst = rule.worst_usd(started, known(times, path, now), now, until, ceiling)
    bill = rule.charge(started, ended, known(times, path, math.inf), cause, ceiling_usd_per_hour=ceiling)
    assert bill.charged_usd <= worst
    assert bill.charged_usd + bill.refunded_usd <= worst


@given(leases(), st.sampled_from(RULES))
def test_the_bound_holds_for_a_machine_that_starts_late(lease, name):
    times, path, ceiling, asked, granted, ended, until = lease
    rule = billing_rule(name)
    worst = rule.worst_usd(asked, known(times, path, asked), asked, until, ceiling)
    bill = rule.charge(granted, ended, known(times, path, math.inf), "released", ceiling_usd_per_hour=ceiling)
    assert bill.charged_usd <= worst


@given(leases(), st.sampled_from(RULES), seconds)
def test_a_longer_lease_is_never_bound_lower(lease, name, more):
    times, path, ceiling, started, now, _, until = lease
    rule = billing_rule(name)
    prices = known(times, path, now)
    shorter = rule.worst_usd(started, prices, now, until, ceiling)
    assert shorter <= rule.worst_usd(started, prices, now, until + more, ceiling)


@given(leases(), st.sampled_from(RULES))
def test_waiting_never_raises_the_bound(lease, name):
    times, path, ceiling, started, now, later, until = lease
    rule = billing_rule(name)
    before = rule.worst_usd(started, known(times, path, now), now, until, ceiling)
    assert rule.worst_usd(started, known(times, path, later), later, until, ceiling) <= before * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("per_second", 0.30),  # 1800 s at 0.20 USD/h, 1200 s at the ceiling of 0.60: 0.10 + 0.20
        ("per_hour", 0.20),  # the hour that has begun keeps its price
        ("free", 0.0),
    ],
)
def test_the_bound_of_a_lease_half_way(name, expected):
    prices = PriceHistory(offer=OFFER, times=(0.0,), usd_per_hour=(0.20,), until=1800.0)
    assert billing_rule(name).worst_usd(0.0, prices, 1800.0, 3000.0, 0.60) == pytest.approx(expected)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("held_s", [10.0, 100.0, 4000.0])
def test_the_bill_of_a_new_lease_is_that_of_its_invoice(name, held_s):
    invoice = billing_rule(name).charge(0.0, held_s, known([0.0], [2.0], math.inf), "released")
    assert new_lease_usd(name, held_s, 2.0) == pytest.approx(invoice.charged_usd)
