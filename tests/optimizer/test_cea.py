"""Constrained expected accuracy is its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import shoestring as ss
from shoestring.optimizer.acquisition.cea import cea, chance_feasible
from shoestring.optimizer.as_printed.gp import PrintedPosteriors
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer
from shoestring.optimizer.posterior import Posteriors


def told(
    goal: str, direction: str = "maximize", kind: type[Posteriors] = PrintedPosteriors, top: float = 1.0
) -> Posteriors:
    one = Optimizer(
        {"x": ss.integer(0, 9)},
        **{direction: goal},
        constraints=["cost <= 0.30", "recall >= 0.6"],
        fractions=[0.25, 1.0],
    )
    for x in (0, 3, 6, 9):
        value = top * (0.5 + 0.04 * x)
        one.tell(Suggestion({"x": x}, 0.25), cost=0.02 + 0.01 * x, recall=0.55 + 0.02 * x, **{goal: value})
    return kind(one._history(), {})


@pytest.mark.parametrize("fraction", [0.25, 1.0])
def test_it_is_the_predicted_accuracy_times_the_chance_to_satisfy_each_constraint(fraction: float) -> None:
    posteriors = told("accuracy")
    accuracy = 1.0 - posteriors.objective.at(fraction).mean
    cost, recall = (limit.posterior.at(fraction) for limit in posteriors.modelled_constraints())
    cheap = norm.cdf((math.log(0.30) - cost.mean) / cost.measured_deviation)
    good = norm.sf((math.log(0.6) - recall.mean) / recall.measured_deviation)
    assert cea(posteriors, fraction) == pytest.approx(accuracy * cheap * good)
    rows = np.array([2, 7])
    assert cea(posteriors, fraction, rows) == pytest.approx(cea(posteriors, fraction)[rows])


def test_the_chance_of_feasibility_with_known_prices_is_that_of_the_posteriors() -> None:
    posteriors = told("accuracy", kind=Posteriors)
    assert np.log(chance_feasible(posteriors)) == pytest.approx(posteriors.log_feasible())


@pytest.mark.parametrize(
    ("goal", "direction", "kind", "top"),
    [
        ("reward", "maximize", PrintedPosteriors, -70.0),
        ("loss", "minimize", PrintedPosteriors, 7.0),
        ("loss", "minimize", Posteriors, 7.0),
        ("accuracy", "maximize", Posteriors, 1.0),
    ],
)
def test_where_there_is_no_accuracy_better_is_still_worth_more(
    goal: str, direction: str, kind: type[Posteriors], top: float
) -> None:
    posteriors = told(goal, direction, kind, top)
    order = np.argsort(posteriors.objective.at(1.0).mean)
    worth = (cea(posteriors, 1.0) / chance_feasible(posteriors))[order]
    assert (worth >= 0.0).all()
    assert (np.diff(worth) <= 1e-12).all()
    assert worth[0] > worth[-1]
