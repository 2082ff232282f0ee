"""Invalid input is an error with a hint."""

from __future__ import annotations

import math

import pytest

import shoestring as ss
from shoestring.errors import SpecError
from shoestring.optimizer.methods.registry import METHODS
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer

SPACE = {"x": ss.integer(1, 6)}


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.5, math.nan, "much"])
def test_fractions_outside_0_to_1_are_refused(fraction: object) -> None:
    with pytest.raises(SpecError, match="fraction"):
        Optimizer(SPACE, minimize="loss", fractions=[fraction, 1.0])  # type: ignore[list-item]
    with pytest.raises(SpecError, match="fraction"):
        Optimizer(SPACE, minimize="loss").tell(Suggestion({"x": 1}, fraction), loss=1.0)  # type: ignore[arg-type]


def test_all_of_the_data_is_always_among_the_fractions() -> None:
    one = Optimizer([{"x": 1}], minimize="loss", fractions=[0.5], method="random")
    assert one.ask().fraction == 1.0


def test_one_objective_must_be_named() -> None:
    for names in ({}, {"minimize": "loss", "maximize": "accuracy"}):
        with pytest.raises(SpecError, match="one objective"):
            Optimizer(SPACE, **names)


def test_an_unknown_method_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(SpecError) as refused:
        Optimizer(SPACE, minimize="loss", method="trimtunr")
    assert "trimtuner" in refused.value.hint


def test_a_constraint_on_a_metric_that_is_not_reported_is_an_error_at_once() -> None:
    one = Optimizer(SPACE, minimize="loss", constraints=["recall >= 0.8"])
    with pytest.raises(SpecError, match=r"recall has a constraint .* reports seconds, loss"):
        one.tell(one.ask(), loss=0.1, seconds=3.0)
    with pytest.raises(SpecError, match="loss is the objective"):
        one.tell(Suggestion({"x": 1}), recall=0.9)


@pytest.mark.parametrize("wrong", [{"seconds": -1.0}, {"cost": math.nan}, {"seconds": "long"}])
def test_times_and_costs_are_amounts(wrong: dict[str, object]) -> None:
    one = Optimizer(SPACE, minimize="loss")
    with pytest.raises(SpecError):
        one.tell(one.ask(), loss=0.1, **wrong)  # type: ignore[arg-type]


def test_only_candidates_can_be_observed() -> None:
    with pytest.raises(SpecError, match="not among the 6 candidates"):
        Optimizer(SPACE, minimize="loss").tell(Suggestion({"x": 7}), loss=1.0)


@pytest.mark.parametrize("price", [0.0, -1.0, math.nan])
def test_prices_must_be_positive(price: float) -> None:
    with pytest.raises(SpecError, match="usd_per_hour"):
        Optimizer(SPACE, minimize="loss", usd_per_hour=price)


def test_before_the_first_tell_there_is_no_best() -> None:
    with pytest.raises(SpecError, match="nothing can be recommended before the first tell"):
        Optimizer(SPACE, minimize="loss").best()


@pytest.mark.parametrize("method", METHODS)
def test_a_single_candidate_is_tried_and_is_the_answer(method: str) -> None:
    one = Optimizer([{"x": 1}], minimize="loss", fractions=[0.1, 1.0], constraints="cost <= 1", method=method)
    suggestion = Suggestion({})
    while suggestion.config != {"x": 1} or suggestion.fraction < 1.0:
        suggestion = one.ask()
        one.tell(suggestion, loss=0.5, cost=0.2 * suggestion.fraction)
    with pytest.raises(SpecError, match="no candidate is left"):
        one.ask()
    assert one.best().config == {"x": 1}
    assert one.best().feasible


@pytest.mark.parametrize("method", METHODS)
def test_where_nothing_is_feasible_the_answer_says_so_and_names_the_nearest_miss(method: str) -> None:
    one = Optimizer(SPACE, minimize="loss", constraints="cost <= 0.10", method=method)
    for _ in range(6):
        suggestion = one.ask()
        x = float(suggestion.config["x"])  # type: ignore[arg-type]
        one.tell(suggestion, loss=1.0 / x, cost=0.10 + 0.02 * x)
    answer = one.best()
    assert not answer.feasible
    # the one has no regard to limits, the other believes its trees against what was measured
    by_models_alone = {"fabolas": 6, "trimtuner_dt_as_printed": 2}
    assert answer.config == {"x": by_models_alone.get(method, 1)}
    assert "nearest miss violates cost <= $0.10: $0.12 (measured)" in answer.why


@pytest.mark.parametrize("method", METHODS)
def test_where_every_run_is_killed_it_continues_and_says_so(method: str) -> None:
    one = Optimizer(SPACE, minimize="loss", constraints="cost <= 0.10", method=method)
    for _ in range(6):
        one.tell(one.ask(), cost=0.10, killed=True)
    answer = one.best()
    assert not answer.feasible
    assert "killed at a limit" in answer.why


@pytest.mark.parametrize("method", METHODS)
def test_objectives_that_are_all_nan_do_not_stop_it(method: str) -> None:
    one = Optimizer(SPACE, minimize="loss", fractions=[0.2, 1.0], method=method)
    for _ in range(6):
        one.tell(one.ask(), loss=math.nan, seconds=1.0)
    if all(seen.fraction < 1.0 for seen in one.observations):
        with pytest.raises(SpecError, match="nothing to recommend"):
            one.best()
    else:
        assert "diverged" in one.best().why


@pytest.mark.parametrize("method", METHODS)
def test_equal_objectives_and_costs_of_nothing_do_not_stop_it(method: str) -> None:
    one = Optimizer(SPACE, minimize="loss", fractions=[0.2, 1.0], constraints="cost <= 1", method=method)
    for _ in range(6):
        one.tell(one.ask(), loss=0.0, cost=0.0, seconds=0.0)
    assert one.best().objective == pytest.approx(0.0, abs=1e-3)


def test_asking_without_telling_suggests_different_runs_until_none_is_left() -> None:
    one = Optimizer(SPACE, minimize="loss", fractions=[0.5, 1.0])
    found = [one.ask() for _ in range(12)]
    assert len({(str(suggestion.config), suggestion.fraction) for suggestion in found}) == 12
    with pytest.raises(SpecError, match="no candidate is left"):
        one.ask()
