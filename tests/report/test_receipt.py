"""The receipt adds up, to the cent, whatever the charges."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from shoestring.kernel.records import Account
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Offer
from shoestring.report.receipt import Amount, apportion, receipt_of

DOLLARS = st.floats(min_value=0, max_value=1e5, allow_nan=False)


def offer(machine: str = "m5.large", zone: str = "a", spot: bool = True) -> Offer:
    return Offer(provider="aws", zone=zone, machine=machine, spot=spot)


def run_that_cost(accounts: dict[Offer, Account], **facts: float) -> RunState:
    state = RunState()
    state.spec = RunSpec(name="shop", metric="loss", budget_usd=20.0, deadline_s=6 * 3600.0)
    state.now = 3600.0
    state.accounts = accounts
    state.spent_usd = math.fsum(account.charged_usd for account in accounts.values())
    for name, value in facts.items():
        setattr(state, name, value)
    return state


@given(st.lists(DOLLARS, max_size=30), st.sampled_from([2, 4]))
def test_rows_as_shown_sum_to_the_total_as_shown(amounts: list[float], places: int) -> None:
    total, shares = apportion(amounts, places)
    assert sum(shares) == total
    assert total == round(math.fsum(amounts) * 10**places)
    for amount, share in zip(amounts, shares, strict=True):
        assert abs(share - amount * 10**places) < 1.001


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), DOLLARS, DOLLARS, DOLLARS), max_size=20))
def test_every_column_of_a_receipt_adds_up(lines: list[tuple[str, str, float, float, float]]) -> None:
    accounts = {
        offer(machine, f"{zone}{i}"): Account(leases=1, charged_usd=c, refunded_usd=r, on_demand_usd=o)
        for i, (machine, zone, c, r, o) in enumerate(lines)
    }
    receipt = receipt_of(run_that_cost(accounts))
    for column in ("charged", "refunded", "on_demand"):
        assert sum(getattr(row, column).units for row in receipt.rows) == getattr(receipt, column).units
    assert abs(receipt.charged.usd - math.fsum(a.charged_usd for a in accounts.values())) <= 0.005 + 1e-9


def test_thirds_of_a_cent_are_apportioned_not_lost() -> None:
    assert apportion([1.0 / 3, 1.0 / 3, 1.0 / 3], 2) == (100, [34, 33, 33])


def test_zones_of_one_machine_type_are_one_row_and_kinds_are_two() -> None:
    accounts = {
        offer(zone="a"): Account(leases=2, seconds=3600, charged_usd=1.0),
        offer(zone="b"): Account(leases=1, seconds=1800, charged_usd=0.5),
        offer(spot=False): Account(leases=1, seconds=600, charged_usd=3.0),
    }
    rows = receipt_of(run_that_cost(accounts)).rows
    assert [(row.spot, row.leases, row.hours, str(row.charged)) for row in rows] == [
        (False, 1, 600 / 3600, "$3.00"),
        (True, 3, 1.5, "$1.50"),
    ]


def test_amounts_below_a_dollar_show_hundredths_of_a_cent() -> None:
    receipt = receipt_of(run_that_cost({offer(): Account(leases=1, charged_usd=0.01234)}))
    assert str(receipt.charged) == "$0.0123"


def test_a_run_free_of_charge_shows_plain_zeros() -> None:
    receipt = receipt_of(run_that_cost({}))
    assert str(receipt.charged) == "$0.00"
    assert receipt.rows == ()


def test_the_summary_has_cost_preemptions_and_on_demand_cost() -> None:
    accounts = {offer(): Account(leases=4, charged_usd=7.42, on_demand_usd=31.1)}
    receipt = receipt_of(run_that_cost(accounts, revocations=3, lost_steps=5, lost_s=660.0))
    assert receipt.summary == "$7.42 of $20.00 · 3 preemptions, 11m of work lost (5 steps) · on-demand: $31.10"


def test_text_and_page_have_the_same_amounts_and_names_are_escaped() -> None:
    accounts = {offer("<b>big</b>"): Account(leases=1, charged_usd=2.5, on_demand_usd=4.0)}
    receipt = receipt_of(run_that_cost(accounts))
    assert "$2.50" in str(receipt)
    assert "$4.00" in str(receipt)
    page = receipt._repr_html_()
    assert "<b>big" not in page
    assert "&lt;b&gt;big" in page
    assert "$2.50" in page


def test_plain_data_has_dollars_as_numbers() -> None:
    plain = receipt_of(run_that_cost({offer(): Account(leases=1, charged_usd=2.5)})).to_plain()
    assert plain["charged_usd"] == 2.5
    assert plain["rows"][0]["charged_usd"] == 2.5
    assert plain["rows"][0]["machine"] == "m5.large"


def test_thousands_are_grouped() -> None:
    assert str(Amount(units=123456789)) == "$1,234,567.89"
