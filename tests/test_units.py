"""Money, time and numbers: parsing and showing."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.errors import SpecError
from shoestring.units import parse_duration_s, parse_usd, show_bytes, show_duration, show_number, show_text, show_usd


@pytest.mark.parametrize(
    ("written", "usd"),
    [
        ("$20", 20.0),
        (20, 20.0),
        (0.5, 0.5),
        ("20 USD", 20.0),
        ("20.5", 20.5),
        ("$ 1,000.50", 1000.5),
        (" 3 dollars ", 3.0),
        ("20$", 20.0),
        ("$.75", 0.75),
        ("1e-5", 1e-5),
        (0, 0.0),
    ],
)
def test_dollars_are_read_as_people_write_them(written, usd):
    assert parse_usd(written) == usd


@pytest.mark.parametrize(
    "nonsense",
    ["lots", "", "$", ".", "20,5", "€20", "1,00", True, None, [20], math.nan, "nan", math.inf, 10**400, "$-1"],
)
def test_an_invalid_amount_names_field_value_and_hint(nonsense):
    with pytest.raises(SpecError) as caught:
        parse_usd(nonsense, field="budget")
    assert "budget=" in str(caught.value)
    assert repr(nonsense) in str(caught.value)
    assert "budget='$20'" in caught.value.hint


@pytest.mark.parametrize("written", [-1, "-5", "-5 USD"])
def test_a_negative_budget_is_refused(written):
    with pytest.raises(SpecError, match="is negative"):
        parse_usd(written)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("6h", 21600.0),
        ("2d", 172800.0),
        ("90m", 5400.0),
        ("1h30m", 5400.0),
        ("1h 30min", 5400.0),
        ("2h10", 7800.0),
        ("1m30", 90.0),
        ("45s", 45.0),
        ("1.5 hours", 5400.0),
        ("1 week 2 days", 777600.0),
        (3600, 3600.0),
        ("3600", 3600.0),
        (0.5, 0.5),
        ("1:30:00", 5400.0),
        ("36:00:05", 129605.0),
        (timedelta(hours=2), 7200.0),
    ],
)
def test_times_are_read_as_people_write_them(written, seconds):
    assert parse_duration_s(written) == seconds


@pytest.mark.parametrize(
    "nonsense",
    ["soon", "", "h", "5ms", "1:30", "1:75:00", "30m1h", "1h1h", "10d5", "1h30 5", True, None, math.inf, "nan"],
)
def test_an_invalid_duration_names_field_value_and_hint(nonsense):
    with pytest.raises(SpecError) as caught:
        parse_duration_s(nonsense, field="time_limit")
    assert "time_limit=" in str(caught.value)
    assert "time_limit='90m'" in caught.value.hint


@pytest.mark.parametrize("past", [-1, "-3600", timedelta(hours=-1)])
def test_a_negative_deadline_is_refused(past):
    with pytest.raises(SpecError, match=r"deadline=.* is negative"):
        parse_duration_s(past)


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (1.5, "$1.50"),
        (20, "$20.00"),
        (0, "$0.00"),
        (1234.567, "$1,234.57"),
        (0.125, "$0.12"),
        (0.099, "$0.099"),
        (0.09999, "$0.10"),
        (0.0999999, "$0.10"),
        (0.0042, "$0.0042"),
        (0.05, "$0.05"),
        (0.00001, "$0.00001"),
        (0.0031 / 60, "$0.000052"),
        (1e-9, "$1e-9"),
        (-7.42, "-$7.42"),
    ],
)
def test_amounts_show_cents_and_small_ones_two_digits(usd, shown):
    assert show_usd(usd) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (0.25, "0.25s"),
        (45, "45s"),
        (59.7, "1m"),
        (90, "1m30"),
        (660, "11m"),
        (3599.6, "1h"),
        (7800, "2h10"),
        (18120, "5h02"),
        (21600, "6h"),
        (94200, "26h10"),
        (172799, "2d"),
        (187200, "2d4h"),
        (-90, "-1m30"),
        (math.inf, "for ever"),
    ],
)
def test_durations_show_the_two_largest_units(seconds, shown):
    assert show_duration(seconds) == shown


@given(st.floats(min_value=0, max_value=1e9))
def test_a_shown_duration_can_be_parsed_again(seconds):
    again = parse_duration_s(show_duration(seconds))
    assert again == pytest.approx(seconds, rel=0.06, abs=0.006)
    assert show_duration(again) == show_duration(seconds)


@given(st.floats(min_value=0, max_value=1e9))
def test_a_shown_amount_can_be_parsed_again(usd):
    assert parse_usd(show_usd(usd)) == pytest.approx(usd, rel=0.06)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0614, "0.0614"),
        (0.083, "0.083"),
        (0, "0"),
        (1 / 3, "0.3333"),
        (12.0, "12"),
        (12345.678, "12346"),
        (1.2e-5, "1.2e-5"),
        (-3e9, "-3e9"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
    ],
)
def test_numbers_are_short(value, shown):
    assert show_number(value) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (86_000, "86 kB"),
        (999_600, "1.0 MB"),
        (50e6, "50 MB"),
        (3.42e9, "3.4 GB"),
        (1.5e15, "1,500.0 TB"),
    ],
)
def test_sizes_are_shown_with_two_significant_digits(size, shown):
    assert show_bytes(size) == shown


# -- text -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["\x1b[2J", "a\rb", "\x00", "\x7f", "\x9b0m", "\u202e", "\u2066", "\u2028", "\ud800"])
def test_what_a_terminal_would_obey_is_escaped(text: str) -> None:
    shown = show_text(text)
    assert shown.isprintable()
    assert shown.encode().decode("unicode_escape") == text


def test_plain_text_stays_as_it_is() -> None:
    for text in ("lr 0.1", "Größe 3 µm · ok", "日本語 🙂", "a\u00a0b"):
        assert show_text(text) == text
