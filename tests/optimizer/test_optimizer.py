"""Ask and tell: it finds the feasible optimum for less, is reproducible, and reports its uncertainty."""

from __future__ import annotations

import math
from functools import cache

import pytest

import shoestring as ss
from shoestring.optimizer.methods.registry import METHODS
from shoestring.optimizer.methods.trimtuner import MOST_SMALL_RUNS
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer
from shoestring.optimizer.posterior import Posteriors
from tests.optimizer.synthetic import (
    FRACTIONS,
    LIMIT_USD,
    error,
    optimizer,
    price,
    quality,
    run,
    space_for,
    spent_until_good,
    usd,
)


@cache
def asked(seed: int, method: str, runs: int, look: bool = False) -> tuple[Suggestion, ...]:
    """So many suggestions, each told; with calls of `best` in between or not."""
    one = optimizer(seed=seed, method=method, space=space_for(method))
    found = []
    for _ in range(runs):
        found.append(one.ask())
        run(one, found[-1])
        if look:
            one.best()
    return tuple(found)


def test_it_finds_the_feasible_optimum_for_less_than_full_data_runs() -> None:
    ours = spent_until_good(optimizer(), budget_usd=0.2)
    theirs = spent_until_good(optimizer(method="eic"), budget_usd=0.4)
    assert ours < min(theirs, 0.2)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_and_tells_give_the_same_asks_whether_best_is_called_or_not(method: str) -> None:
    assert asked(3, method, 9) == asked(3, method, 9, look=True)
    assert asked(3, method, 9)[:4] != asked(4, method, 4)


def test_it_begins_with_small_fractions_that_differ() -> None:
    first = asked(0, "trimtuner", 4)
    assert {suggestion.fraction for suggestion in first} == {FRACTIONS[0]}
    assert len({str(suggestion.config) for suggestion in first}) == 4


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_suggested_twice_also_while_runs_are_pending(method: str) -> None:
    one = optimizer(method=method, space=space_for(method))
    under_way: list[Suggestion] = []
    seen = set()
    for turn in range(16):
        suggestion = one.ask()
        assert suggestion.why
        seen.add((str(suggestion.config), suggestion.fraction))
        under_way.append(suggestion)
        if turn >= 6:  # six runs are always under way
            run(one, under_way.pop(0))
    assert len(seen) == 16


def test_the_baselines_use_the_full_data() -> None:
    for method in ("eic", "eic_usd", "eic_usd_2", "random"):
        assert {suggestion.fraction for suggestion in asked(0, method, 6)} == {1.0}


def test_a_stable_incumbent_is_measured_and_small_runs_are_anchored() -> None:
    found = asked(0, "trimtuner", 30)
    full = [turn for turn, suggestion in enumerate(found) if suggestion.fraction == 1.0]
    assert full
    assert max(b - a for a, b in zip([-1, *full], [*full, len(found)], strict=True)) <= MOST_SMALL_RUNS + 1


def test_what_it_recommends_is_feasible_and_says_what_was_measured() -> None:
    one = optimizer(seed=1)
    for _ in range(30):
        run(one, one.ask())
    answer = one.best()
    assert answer.feasible
    assert quality(answer.config) > 0.0
    (outlook,) = answer.constraints
    assert answer.measured
    assert outlook.measured
    assert outlook.probability == answer.probability == 1.0
    assert answer.objective == pytest.approx(error(answer.config))
    assert outlook.value == pytest.approx(usd(answer.config))
    assert "measured" in str(answer)


def test_before_a_full_run_the_answer_is_a_prediction_with_a_probability() -> None:
    one = optimizer()
    for _ in range(4):
        run(one, one.ask())
    answer = one.best()
    (outlook,) = answer.constraints
    assert not answer.measured
    assert not outlook.measured
    assert 0.0 < outlook.probability < 1.0
    assert f"{100 * outlook.probability:.0f} %" in str(answer)


def test_it_never_recommends_what_was_measured_to_violate_a_constraint() -> None:
    one = optimizer(seed=2)
    for _ in range(25):
        run(one, one.ask())
        broken = [seen.config for seen in one.observations if seen.fraction == 1.0 and usd(seen.config) > LIMIT_USD]
        assert one.best().config not in broken


def test_an_accuracy_can_be_maximised_under_constraints_on_any_metric_without_prices() -> None:
    one = Optimizer(
        {"depth": ss.integer(1, 12), "kind": ss.choice("a", "b")},
        maximize="accuracy",
        constraints=["recall >= 0.6", "predict_ms <= 8"],
        fractions=[0.1, 1.0],
    )
    for _ in range(22):
        suggestion = one.ask()
        depth = float(suggestion.config["depth"])  # type: ignore[arg-type]
        bonus = 0.02 if suggestion.config["kind"] == "b" else 0.0
        one.tell(
            suggestion,
            accuracy=1.0 - 0.5 / depth * suggestion.fraction**-0.2 + bonus,
            recall=0.4 + 0.05 * depth,
            predict_ms=depth,
            seconds=10.0 * depth * suggestion.fraction,
        )
    answer = one.best()
    assert answer.config == {"depth": 8, "kind": "b"}
    assert {str(outlook.constraint) for outlook in answer.constraints} == {"recall >= 0.6", "predict_ms <= 8"}


def test_an_objective_of_any_sign_can_be_minimised_without_constraints_costs_or_fractions() -> None:
    one = Optimizer({"x": ss.integer(-10, 10), "y": ss.integer(-10, 10)}, minimize="value")
    for _ in range(25):
        suggestion = one.ask()
        x, y = (float(suggestion.config[name]) for name in "xy")  # type: ignore[arg-type]
        one.tell(suggestion, value=(x - 3) ** 2 + (y + 2) ** 2 - 50.0)
    assert one.best().config == {"x": 3, "y": -2}
    assert one.best().objective == -50.0


def test_runs_that_were_not_suggested_are_learned_from_too() -> None:
    one = optimizer()
    config = {"rate": 6, "width": 64, "machines": 1, "kind": "small"}
    run(one, Suggestion(config, 1.0))
    assert one.best().config == config
    assert one.best().measured


def test_prices_may_change_during_a_search() -> None:
    one = optimizer()
    for _ in range(5):
        run(one, one.ask())
    before = Posteriors(one._history(), {}).expected_cost(1.0)
    told = one.observations
    one.reprice(lambda config: 2.0 * price(config))
    assert Posteriors(one._history(), {}).expected_cost(1.0) == pytest.approx(2.0 * before)
    assert one.observations == told
    with pytest.raises(ss.SpecError, match="usd_per_hour"):
        one.reprice(0.0)


def test_a_run_that_diverged_is_avoided_and_never_recommended() -> None:
    one = Optimizer({"rate": ss.integer(0, 30)}, minimize="loss", fractions=[0.1, 1.0])
    asked_above = 0
    for turn in range(20):
        suggestion = one.ask()
        rate = int(suggestion.config["rate"])  # type: ignore[arg-type]
        diverges = rate > 20
        asked_above += diverges and turn >= 8
        one.tell(suggestion, loss=math.nan if diverges else 1.0 / (1 + rate) * suggestion.fraction**-0.3, seconds=1.0)
    assert int(one.best().config["rate"]) <= 20  # type: ignore[arg-type]
    assert asked_above <= 4
