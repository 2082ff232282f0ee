"""MF-EIc, and that the search for its maximum misses nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from shoestring.optimizer.acquisition import mf_eic
from shoestring.optimizer.acquisition.mf_eic import best_run, log_eic, log_expected_improvement, log_mf_eic
from shoestring.optimizer.posterior import Posteriors
from shoestring.space.early_end import LEAST_POWER
from tests.optimizer.synthetic import LIMIT_USD, optimizer, run, usd


@given(mean=st.floats(-3, 3), deviation=st.floats(0.05, 3), best=st.floats(-3, 3))
@settings(max_examples=60, deadline=None)
def test_the_expected_improvement_is_its_integral(mean: float, deviation: float, best: float) -> None:
    ours = log_expected_improvement(np.array([mean]), np.array([deviation]), best)[0]
    low = min(best, mean) - 12 * deviation
    integral, _ = quad(lambda f: (best - f) * norm.pdf(f, mean, deviation), low, best, points=[mean], limit=200)
    if integral > 1e-12:
        assert ours == pytest.approx(math.log(integral), abs=1e-4)


def test_far_from_any_improvement_better_still_ranks_above_worse() -> None:
    means = np.array([1.0, 10.0, 100.0, 1e3, 1e5, 1e7])
    worth = log_expected_improvement(means, np.ones(6), 0.0)
    assert np.isfinite(worth).all()
    assert (np.diff(worth) < 0).all()
    assert worth[2] == pytest.approx(-0.5 * 1e4 - 0.5 * math.log(2 * math.pi) - 2 * math.log(100.0), abs=1e-3)


def believed(seed: int, runs: int, pending: int = 0) -> Posteriors:
    asked = optimizer(seed=seed)
    for _ in range(runs):
        run(asked, asked.ask())
    for _ in range(pending):
        asked.ask()
    return Posteriors(asked._history(), {})


@pytest.mark.parametrize(("seed", "runs", "pending"), [(0, 5, 0), (1, 12, 0), (2, 25, 2)])
def test_evaluating_few_finds_the_best_of_all(
    seed: int, runs: int, pending: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mf_eic, "BLOCK", 16)
    posteriors = believed(seed, runs, pending)
    history = posteriors.history
    every = np.arange(len(history.candidates))
    gain = np.maximum(log_eic(posteriors, -2.0), -1e6)
    worth = np.where(history.untried, log_mf_eic(posteriors, gain, every), -math.inf)
    row, column = np.unravel_index(int(worth.argmax()), worth.shape)
    assert best_run(posteriors, log_eic(posteriors, -2.0)) == (row, history.problem.fractions[column])


def test_a_full_data_run_has_the_largest_correlation_and_the_largest_cost() -> None:
    posteriors = believed(0, 12)
    every = np.arange(len(posteriors.history.candidates))
    correlation = [
        posteriors.objective.squared_correlation(s, every).mean() for s in posteriors.history.problem.fractions
    ]
    assert correlation == sorted(correlation)
    assert (posteriors.expected_cost(1 / 32) < posteriors.expected_cost(1.0)).all()
    assert (posteriors.least_expected_cost(1 / 8) <= posteriors.expected_cost(1 / 8)).all()
    assert posteriors.expected_cost(1 / 8, every[:7]) == pytest.approx(posteriors.expected_cost(1 / 8)[:7])


def test_the_expected_cost_is_capped_where_a_run_is_ended_early() -> None:
    posteriors = believed(1, 12)
    every, fraction = np.arange(len(posteriors.history.candidates)), 1 / 8
    spent = posteriors._of["seconds"].at(fraction)
    draws = np.random.default_rng(0).standard_normal((20_000, 1))
    usd = np.exp(spent.mean + spent.measured_deviation * draws) * posteriors._unit_price(None)
    most = LIMIT_USD * fraction**LEAST_POWER
    assert posteriors.expected_cost(fraction) == pytest.approx(np.minimum(usd, most).mean(axis=0), rel=0.05)
    assert (posteriors.expected_cost(fraction) <= most).all()
    assert posteriors.expected_cost(fraction, every[:7]) == pytest.approx(posteriors.expected_cost(fraction)[:7])
    assert posteriors.expected_cost(1.0).max() > LIMIT_USD


def test_a_measurement_overrules_the_model() -> None:
    posteriors = believed(3, 25)
    chance, history = posteriors.log_feasible(), posteriors.history
    assert history.measured
    for row, seen in history.measured.items():
        assert chance[row] == (-math.inf if seen.killed or usd(seen.config) > LIMIT_USD else 0.0)


def test_two_constraints_multiply() -> None:
    asked = optimizer(constraints=["cost <= 0.05", "time <= 10m"])
    for _ in range(8):
        suggestion = asked.ask()
        asked.tell(suggestion, error=0.1 + 0.01 * float(suggestion.config["rate"]), seconds=400.0 * suggestion.fraction)  # type: ignore[arg-type]
    posteriors = Posteriors(asked._history(), {})
    one, other = (posteriors.log_satisfied(constraint) for constraint in posteriors.history.problem.constraints)
    unmeasured = np.setdiff1d(np.arange(len(one)), list(posteriors.history.measured))
    assert posteriors.log_feasible()[unmeasured] == pytest.approx((one + other)[unmeasured])
