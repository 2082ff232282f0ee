"""Which candidate is the incumbent, and when a prediction replaces a measurement."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shoestring as ss
from shoestring.optimizer.incumbent import incumbent_row, log_expected_value, log_value, recommended
from shoestring.optimizer.methods.trimtuner import TrimTuner
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer
from shoestring.optimizer.posterior import Posteriors
from tests.optimizer.synthetic import optimizer, run


def believed(runs: int, **changes: object) -> Posteriors:
    asked = optimizer(**changes)
    for _ in range(runs):
        run(asked, asked.ask())
    return Posteriors(asked._history(), {})


def told_of_rates(**goal: object) -> Posteriors:
    """Six runs, the better the smaller their rate, and a constraint that hardly any satisfies."""
    asked = optimizer(constraints="cost <= 0.0005", **goal)
    for _ in range(6):
        suggestion = asked.ask()
        rate = float(suggestion.config["rate"])  # type: ignore[arg-type]
        asked.tell(suggestion, error=0.1 + 0.05 * rate, accuracy=0.9 - 0.05 * rate, seconds=100.0)
    return Posteriors(asked._history(), {})


@pytest.mark.parametrize("goal", [{"minimize": "error"}, {"minimize": None, "maximize": "accuracy"}])
def test_the_incumbent_has_the_largest_expected_value_and_infeasible_candidates_have_none(
    goal: dict[str, object],
) -> None:
    posteriors = told_of_rates(**goal)
    ahead = posteriors.objective.at(1.0)
    drawn = np.exp(ahead.mean + ahead.deviation * np.random.default_rng(0).standard_normal((4000, len(ahead.mean))))
    value = np.maximum(1 - drawn, 0).mean(axis=0) if "maximize" in goal else 1 / drawn.mean(axis=0)
    worth = value * np.exp(posteriors.log_feasible())
    assert worth[incumbent_row(posteriors)] > 0.97 * worth.max()


def test_an_uncertain_candidate_is_worth_less_than_a_certain_one_of_the_same_mean() -> None:
    posteriors = told_of_rates(minimize=None, maximize="accuracy")
    worth = np.exp(log_value(posteriors, np.full(3, math.log(0.2)), np.array([0.0, 0.5, 3.0])))
    assert worth[0] == pytest.approx(0.8)
    assert worth[0] > worth[1] > worth[2] > 0.0


def test_values_without_a_zero_count_from_the_worst_observed() -> None:
    one = Optimizer({"x": ss.integer(0, 9)}, maximize="reward", constraints="cost <= 1")
    for x in range(0, 10, 3):
        one.tell(Suggestion({"x": x}), reward=250.0 + x, cost=0.5 if x < 9 else 1.5)
    posteriors = Posteriors(one._history(), {})
    assert math.exp(log_value(posteriors, np.array([-256.0]))[0]) == pytest.approx(6.0)
    assert incumbent_row(posteriors) in (6, 7)


def told(small_error: float) -> Optimizer:
    """One full run with an error of 0.5, and small runs of the others."""
    one = Optimizer({"x": ss.integer(0, 9)}, minimize="error", constraints="cost <= 1", fractions=[0.25, 1.0])
    one.tell(Suggestion({"x": 0}, 1.0), error=0.5, cost=0.1)
    one.tell(Suggestion({"x": 0}, 0.25), error=0.5 * 4**0.3, cost=0.025)
    for x in range(1, 10):
        one.tell(Suggestion({"x": x}, 0.25), error=small_error, cost=0.025)
    return one


def test_a_prediction_replaces_a_measurement_only_if_it_is_much_better() -> None:
    by_far = told(small_error=0.02).best()
    assert not by_far.measured
    assert by_far.config != {"x": 0}
    assert by_far.feasible
    by_little = told(small_error=0.70).best()
    assert by_little.measured
    assert by_little.config == {"x": 0}


def test_a_feasible_run_with_a_poor_objective_is_not_kept() -> None:
    one = Optimizer({"x": ss.integer(0, 9)}, maximize="accuracy", constraints="cost <= 1", fractions=[0.25, 1.0])
    one.tell(Suggestion({"x": 0}, 1.0), accuracy=0.10, cost=0.9)
    for x in range(10):
        one.tell(Suggestion({"x": x}, 0.25), accuracy=0.10 if x < 2 else 0.97, cost=0.2 if x < 2 else 0.22)
    answer = one.best()
    assert not answer.measured
    assert int(answer.config["x"]) >= 2  # type: ignore[arg-type]
    assert answer.probability < 0.97


def test_a_candidate_measured_to_be_infeasible_is_not_recommended() -> None:
    posteriors = believed(20, seed=5)
    infeasible = [posteriors.history.candidates.configs[row] for row in posteriors.history.infeasible]
    assert recommended(posteriors).config not in infeasible


def test_while_nothing_is_feasible_candidates_are_weighted_by_their_expected_value() -> None:
    """Two kinds that are equally likely to be feasible, one of them with a poor objective."""
    one = Optimizer({"x": ss.integer(0, 9)}, maximize="accuracy", constraints="cost <= 1", fractions=(1 / 4, 1.0))
    for x in range(0, 10, 3):
        one.tell(Suggestion({"x": x}, 1 / 4), accuracy=0.1 if x < 5 else 0.9, cost=0.25)
    one.tell(Suggestion({"x": 6}), cost=1.0, killed=True)
    posteriors = Posteriors(one._history(), {})
    gain = TrimTuner()._gain(posteriors, incumbent_row(posteriors))
    assert gain == pytest.approx(log_expected_value(posteriors))
    assert int(gain.argmax()) > 5
    chance = posteriors.log_feasible()
    assert gain[9] - gain[0] > chance[9] - chance[0] + 0.3
