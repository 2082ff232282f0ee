"""Which candidate is the favourite, and when a prediction takes the place of a measurement."""

from __future__ import annotations

import math

import numpy as np

import shoestring as ss
from shoestring.tuning.beliefs import Beliefs
from shoestring.tuning.incumbent import SURE, favourite, levels, recommended
from shoestring.tuning.observations import Suggestion
from shoestring.tuning.optimizer import Optimizer
from tests.tuning.made_up import optimizer, run


def believed(runs: int, **changes: object) -> Beliefs:
    asked = optimizer(**changes)
    for _ in range(runs):
        run(asked, asked.ask())
    return Beliefs(asked._history(), {})


def test_the_favourite_is_the_best_of_those_that_are_sure_to_keep_the_limits() -> None:
    beliefs = believed(15)
    sure = beliefs.log_feasible() >= math.log(SURE)
    assert sure.any()
    assert sure[favourite(beliefs)]
    assert levels(beliefs)[favourite(beliefs)] == levels(beliefs)[sure].min()


def test_if_none_is_sure_value_times_chance_decides() -> None:
    for goal, value in (
        ({"minimize": "error"}, lambda level: 1 / np.exp(level)),
        (
            {"maximize": "accuracy", "minimize": None},
            lambda level: 1 - np.exp(level),
        ),
    ):
        asked = optimizer(constraints="cost <= 0.0005", **goal)
        for _ in range(6):
            suggestion = asked.ask()
            rate = float(suggestion.config["rate"])  # type: ignore[arg-type]
            asked.tell(suggestion, error=0.1 + 0.05 * rate, accuracy=0.9 - 0.05 * rate, seconds=100.0)
        beliefs = Beliefs(asked._history(), {})
        chance = np.exp(beliefs.log_feasible())
        assert chance.max() < SURE
        assert favourite(beliefs) == int((value(levels(beliefs)) * chance).argmax())


def told(small_error: float) -> Optimizer:
    """One full run with an error of 0.5, and small runs of the others."""
    one = Optimizer({"x": ss.integer(0, 9)}, minimize="error", constraints="cost <= 1", fractions=[0.25, 1.0])
    one.tell(Suggestion({"x": 0}, 1.0), error=0.5, cost=0.1)
    one.tell(Suggestion({"x": 0}, 0.25), error=0.5 * 4**0.3, cost=0.025)
    for x in range(1, 10):
        one.tell(Suggestion({"x": x}, 0.25), error=small_error, cost=0.025)
    return one


def test_a_prediction_takes_the_place_of_a_measurement_only_if_it_wins_by_far() -> None:
    by_far = told(small_error=0.02).best()
    assert not by_far.measured
    assert by_far.config != {"x": 0}
    assert by_far.feasible
    by_little = told(small_error=0.70).best()
    assert by_little.measured
    assert by_little.config == {"x": 0}


def test_a_run_that_keeps_its_limits_and_is_good_for_nothing_else_is_not_held_on_to() -> None:
    one = Optimizer({"x": ss.integer(0, 9)}, maximize="accuracy", constraints="cost <= 1", fractions=[0.25, 1.0])
    one.tell(Suggestion({"x": 0}, 1.0), accuracy=0.10, cost=0.9)
    for x in range(10):
        one.tell(Suggestion({"x": x}, 0.25), accuracy=0.10 if x < 2 else 0.97, cost=0.2 if x < 2 else 0.22)
    answer = one.best()
    assert not answer.measured
    assert int(answer.config["x"]) >= 2  # type: ignore[arg-type]
    assert answer.probability < 0.97


def test_what_is_recommended_is_not_what_was_measured_to_be_infeasible() -> None:
    beliefs = believed(20, seed=5)
    infeasible = [beliefs.history.candidates.configs[row] for row in beliefs.history.infeasible]
    assert recommended(beliefs).config not in infeasible
