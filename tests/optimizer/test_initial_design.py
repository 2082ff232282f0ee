"""The initial design: spread over the space, and repeated while all objectives are equal."""

from __future__ import annotations

import shoestring as ss
from shoestring.optimizer.optimizer import Optimizer

SPACE = {"rate": ss.integer(0, 9), "width": ss.integer(0, 9)}
FRACTIONS = (1 / 16, 1 / 4, 1.0)


def first_runs(objectives: list[float], method: str = "trimtuner") -> list[tuple[float, str]]:
    """Fraction and reason of as many runs as there are objectives."""
    one = Optimizer(SPACE, maximize="accuracy", constraints="cost <= 1", fractions=FRACTIONS, seed=1, method=method)
    asked = []
    for accuracy in objectives:
        suggestion = one.ask()
        asked.append((suggestion.fraction, suggestion.why))
        one.tell(suggestion, accuracy=accuracy, cost=0.5 * suggestion.fraction)
    return asked


def test_while_all_objectives_are_equal_the_initial_design_is_repeated() -> None:
    asked = first_runs([0.1, 0.101, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9])
    assert all(why.startswith("initial design") for _, why in asked[:7])
    assert {fraction for fraction, _ in asked[:7]} == {FRACTIONS[0]}
    assert not asked[7][1].startswith("initial design")


def test_four_that_differ_are_enough() -> None:
    asked = first_runs([0.1, 0.4, 0.1, 0.1, 0.1])
    assert not asked[4][1].startswith("initial design")


def test_the_initial_design_is_repeated_a_limited_number_of_times() -> None:
    asked = first_runs([0.1] * 13)
    assert asked[11][1].startswith("initial design")
    assert not asked[12][1].startswith("initial design")


def test_baselines_have_an_initial_design_of_four() -> None:
    assert not first_runs([0.1] * 5, "eic")[4][1].startswith("initial design")
