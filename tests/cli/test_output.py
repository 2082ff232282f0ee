"""How tables are printed."""

from __future__ import annotations

from shoestring.cli.output import aligned


def test_words_are_aligned_to_the_left_and_numbers_to_the_right() -> None:
    lines = [("recipe", "cost", "done"), ("asha", "$0.04", "2h"), ("random", "$11.96", "")]
    assert aligned(lines) == ["recipe    cost  done", "asha     $0.04    2h", "random  $11.96"]
    assert aligned(lines, to_the_left=2) == ["recipe  cost    done", "asha    $0.04     2h", "random  $11.96"]
