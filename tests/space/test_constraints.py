"""Constraints as users write them."""

from __future__ import annotations

import math

import pytest

from shoestring.errors import SpecError
from shoestring.space.constraints import Constraint, parse, parse_all


@pytest.mark.parametrize(
    ("words", "constraint"),
    [
        ("cost <= 0.10", Constraint("cost", 0.10)),
        ("cost<=$0.10", Constraint("cost", 0.10)),
        ("time <= 2h", Constraint("seconds", 7200.0)),
        ("seconds <= 90", Constraint("seconds", 90.0)),
        ("predict_ms <= 5", Constraint("predict_ms", 5.0)),
        (" recall >= 8e-1 ", Constraint("recall", 0.8, at_most=False)),
    ],
)
def test_constraints_are_read_as_they_are_written(words: str, constraint: Constraint) -> None:
    assert parse(words) == constraint


@pytest.mark.parametrize(
    "words", ["cost", "cost < 3", "cost <= ", "<= 3", "cost <= 1 <= 2", "cost == 3", "recall >= much", "a <= nan", 7]
)
def test_an_invalid_constraint_is_refused_with_an_example(words: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(words)
    assert refused.value.hint


def test_what_is_shown_can_be_read_back() -> None:
    for words in ("cost <= $0.10", "seconds <= 2h", "recall >= 0.8"):
        assert str(parse(words)) == words
        assert parse(str(parse(words))) == parse(words)


def test_a_band_is_two_constraints_and_the_same_constraint_twice_is_an_error() -> None:
    assert len(parse_all(["share >= 0.2", "share <= 0.8"])) == 2
    with pytest.raises(SpecError, match="limit the same"):
        parse_all(["cost <= 1", "cost <= 2"])
    assert parse_all("cost <= 1") == (Constraint("cost", 1.0),)


@pytest.mark.parametrize("text", ["cost <= 2", "recall >= 2"])
def test_a_value_at_the_limit_satisfies_it(text: str) -> None:
    limit = parse(text)
    assert [limit.holds(value) for value in (1.9, 2.0, 2.1)] == [limit.at_most, True, not limit.at_most]


def test_a_miss_is_relative_to_the_limit() -> None:
    assert parse("cost <= 2").miss(3.0) == pytest.approx(0.5)
    assert parse("recall >= 0.8").miss(0.6) == pytest.approx(0.25)
    assert parse("recall >= 0.8").miss(0.9) == 0.0
    assert parse("cost <= 2").miss(math.nan) == math.inf
    assert not parse("cost <= 2").holds(math.nan)
