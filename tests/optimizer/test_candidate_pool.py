"""Spaces too large to be used whole: sampled anew at every turn, with what was run always in the sample."""

from __future__ import annotations

import numpy as np
import pytest

import shoestring as ss
from shoestring.errors import SpecError
from shoestring.optimizer.candidate_pool import DRAWN, Whole, pool_of
from shoestring.optimizer.optimizer import Optimizer
from shoestring.space.space import from_plain

RANGES = {"rate": ss.log(1e-5, 1e-1), "width": ss.integer(1, 1000, log=True), "kind": ss.choice("a", "b", "c")}
MANY = {"a": ss.integer(0, 99), "b": ss.integer(0, 99)}


def test_a_small_space_is_used_whole() -> None:
    pool = pool_of({"a": ss.integer(0, 9), "b": ss.integer(0, 9)}, None)
    assert isinstance(pool, Whole)
    assert len(pool.candidates((0,), [])) == pool.size == 100


@pytest.mark.parametrize("space", [RANGES, MANY], ids=["endless", "many"])
def test_what_was_run_keeps_its_row_and_equal_turns_sample_the_same(space: dict[str, object]) -> None:
    pool = pool_of(space, None)
    first = pool.candidates((0, 0), [])
    run = [first.configs[7], first.configs[3]]
    assert [pool.remember(config) for config in run] == [0, 1]
    assert pool.remember(dict(reversed(run[0].items()))) == 0
    drawn = pool.candidates((0, 1), run[:1])
    assert list(drawn.configs[:2]) == run
    assert 0.9 * DRAWN < len(drawn) <= DRAWN + 2
    other = pool_of(space, None)
    for config in run:
        other.remember(config)
    assert other.candidates((0, 1), run[:1]).configs == drawn.configs
    assert pool.candidates((0, 2), run[:1]).configs != drawn.configs
    for config in drawn.configs:
        from_plain(space).check(config)


@pytest.mark.parametrize("space", [RANGES, MANY], ids=["endless", "many"])
def test_half_of_a_sample_is_near_the_best(space: dict[str, object]) -> None:
    pool = pool_of(space, None)
    best = pool.candidates((0, 0), []).configs[5]
    row = pool.remember(best)
    drawn = pool.candidates((0, 1), [best])
    ranges = [column for column, number in enumerate(drawn.parameter) if (drawn.parameter == number).sum() == 1]
    apart = np.abs(drawn.x[:, ranges] - drawn.x[row, ranges]).max(axis=1)
    assert (apart < 0.25).mean() > 0.45
    assert (apart > 0.3).mean() > 0.2


def test_values_outside_of_the_space_are_refused() -> None:
    with pytest.raises(SpecError, match="not in the space"):
        pool_of(RANGES, None).remember({"rate": 3.0, "width": 7, "kind": "a"})
    with pytest.raises(SpecError, match="not among the"):
        pool_of(MANY, None).remember({"a": 3, "b": 100})


def test_the_minimum_of_a_continuous_function_is_found_closely() -> None:
    one = Optimizer({"x": ss.uniform(-5, 10), "y": ss.uniform(0, 15)}, minimize="value")
    for _ in range(24):
        suggestion = one.ask()
        x, y = (float(suggestion.config[name]) for name in "xy")  # type: ignore[arg-type]
        branin = (
            (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10
        )
        one.tell(suggestion, value=branin)
    assert min(seen.objective for seen in one.observations) < 0.3979 + 0.3


def test_the_initial_design_in_a_continuous_space_is_spread() -> None:
    one = Optimizer({"x": ss.uniform(0, 1), "y": ss.uniform(0, 1)}, minimize="value", fractions=[0.1, 1.0])
    first = [one.ask() for _ in range(4)]
    for name in "xy":
        places = sorted(int(4 * float(suggestion.config[name])) for suggestion in first)  # type: ignore[arg-type]
        assert len(set(places)) >= 3


def test_conditional_spaces_with_ranges_are_sampled() -> None:
    space = {"kind": ss.choice("sgd", "adam"), "momentum": ss.uniform(0.5, 0.99, when={"kind": "sgd"})}
    one = Optimizer(space, minimize="loss", fractions=[0.1, 1.0], method="trimtuner")
    for _ in range(8):
        suggestion = one.ask()
        loss = abs(float(suggestion.config.get("momentum", 0.3)) - 0.9) + 0.1  # type: ignore[arg-type]
        one.tell(suggestion, loss=loss, seconds=suggestion.fraction)
    assert one.best().config["kind"] == "sgd"
