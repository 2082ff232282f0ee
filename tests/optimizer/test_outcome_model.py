"""The posterior of one outcome: transforms, trends in the data fraction, and censored runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoestring as ss
from shoestring.optimizer.candidates import Candidates, listed
from shoestring.optimizer.outcome_model import ERROR, SPENDING, OutcomeData, OutcomePosterior, Trend, beyond
from shoestring.optimizer.transforms import Transform, metric_transform, objective_transform

LOG = Transform(True)


def line(count: int = 11) -> Candidates:
    found = listed({"at": ss.integer(0, count - 1)})
    assert found is not None
    return found


def posterior(
    rows: list[int], fractions: list[float], values: list[float], killed: list[int], trend: Trend
) -> OutcomePosterior:
    at_least = np.zeros(len(rows), dtype=bool)
    at_least[killed] = True
    measured = OutcomeData(np.array(rows), np.log(fractions), np.log(values), at_least)
    return OutcomePosterior(measured, LOG, trend, line(), 1 / 16, None)


def test_times_grow_with_the_data_and_errors_fall_before_a_full_run() -> None:
    seconds = posterior([0, 5, 10], [1 / 16] * 3, [10.0, 11.0, 12.0], [], SPENDING).at(1.0)
    assert np.exp(seconds.mean) == pytest.approx(np.full(11, 160.0), rel=0.35)
    errors = posterior([0, 5, 10], [1 / 16] * 3, [0.40, 0.42, 0.44], [], ERROR).at(1.0)
    assert np.exp(errors.mean) == pytest.approx(np.full(11, 0.42 * 16**-0.3), rel=0.2)


def test_one_full_run_corrects_every_prediction_made_from_small_fractions() -> None:
    rows, fractions, values = [0, 5, 10], [1 / 16] * 3, [10.0, 11.0, 12.0]
    before = posterior(rows, fractions, values, [], SPENDING).at(1.0)
    after = posterior([*rows, 5], [*fractions, 1.0], [*values, 400.0], [], SPENDING).at(1.0)
    assert (after.mean > before.mean + 0.3).all()
    assert (after.deviation < before.deviation).all()


def test_a_killed_run_counts_as_what_it_took_or_as_more_if_others_predict_it() -> None:
    rows, fractions, values = [0, 2, 4, 6, 8, 10], [1.0] * 6, [10.0, 30.0, 90.0, 270.0, 810.0, 100.0]
    ended = posterior(rows, fractions, values, [], SPENDING).at(1.0)
    killed = posterior(rows, fractions, values, [5], SPENDING).at(1.0)
    assert ended.mean[10] < math.log(200.0)
    assert killed.mean[10] > math.log(400.0)
    values[5] = 3000.0
    assert posterior(rows, fractions, values, [5], SPENDING).at(1.0).mean[10] == pytest.approx(
        math.log(3000.0), abs=0.5
    )


@given(mean=st.floats(-3, 3), variance=st.floats(0.01, 9), bound=st.floats(-3, 3))
@settings(deadline=None)
def test_a_censored_value_gives_the_distribution_truncated_at_the_bound(
    mean: float, variance: float, bound: float
) -> None:
    from scipy.stats import truncnorm

    deviation = math.sqrt(variance)
    told = beyond(mean, variance, bound)
    rest = truncnorm((bound - mean) / deviation, math.inf, mean, deviation)
    if told is None:
        assert rest.mean() == pytest.approx(mean, abs=0.01 * deviation)
        return
    value, extra = told
    weight = variance / (variance + extra)
    assert mean + weight * (value - mean) == pytest.approx(rest.mean(), rel=1e-3, abs=1e-3)
    assert (1 - weight) * variance == pytest.approx(rest.var(), rel=1e-2, abs=1e-4)


def test_a_killed_full_run_does_not_prove_its_prediction() -> None:
    small = ([0, 5, 10], [1 / 16] * 3, [10.0, 11.0, 12.0])
    before = posterior(*small, [], SPENDING).at(1.0)
    killed = posterior([*small[0], 5], [*small[1], 1.0], [*small[2], 40.0], [3], SPENDING).at(1.0)
    ended = posterior([*small[0], 5], [*small[1], 1.0], [*small[2], 160.0], [], SPENDING).at(1.0)
    assert killed.mean[5] >= before.mean[5] - 0.1
    assert killed.deviation[5] > 3 * ended.deviation[5]


def test_runs_that_were_all_killed_count_as_what_they_took() -> None:
    ahead = posterior([0, 5], [1.0, 1.0], [100.0, 100.0], [0, 1], SPENDING).at(1.0)
    assert ahead.mean == pytest.approx(np.full(11, math.log(100.0)), abs=0.1)


def test_a_pending_run_reduces_the_variance() -> None:
    asked = posterior([0, 10], [1.0, 1.0], [10.0, 20.0], [], SPENDING)
    before = asked.at(1.0)
    asked.expecting(5, 1.0)
    after = asked.at(1.0)
    assert after.mean == pytest.approx(before.mean)
    assert after.deviation[5] < before.deviation[5]


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=9), minimize=st.booleans())
@settings(deadline=None)
def test_less_is_better_under_every_transform_and_its_inverse(values: list[float], minimize: bool) -> None:
    array = np.array(values)
    transform = objective_transform(array, minimize)
    order = transform.of(np.sort(array))
    assert (np.diff(order) >= 0).all() if minimize else (np.diff(order) <= 0).all()
    for value, level in zip(np.sort(array), order, strict=True):
        assert transform.value(float(level)) == pytest.approx(value, abs=2e-4)


def test_losses_that_differ_by_little_are_still_distinguished() -> None:
    close = np.log([5.0, 5.2, 5.4])
    assert objective_transform(np.exp(close), minimize=True).deviation(close) == 0.1
    assert objective_transform(np.array([0.5, 0.52]), minimize=True).deviation(close) == 1.0


def test_losses_whose_zero_is_far_away_have_a_smaller_trend() -> None:
    measured = OutcomeData(np.arange(3), np.zeros(3), np.log([5.0, 5.2, 5.4]), np.zeros(3, dtype=bool))
    losses, shares = (objective_transform(np.array(values), minimize=True) for values in ([5.0, 5.4], [0.5, 0.9]))
    assert ERROR.on(losses, measured) == Trend(pytest.approx(0.1 * ERROR.power), pytest.approx(0.1 * ERROR.spread))
    assert ERROR.on(shares, measured) == ERROR
    assert ERROR.on(Transform(False), measured) == Trend(0.0, ERROR.spread)


def test_values_without_a_logarithm_are_not_transformed() -> None:
    assert not objective_transform(np.array([-1.0, 2.0]), minimize=True).logarithmic
    assert not objective_transform(np.array([3.0, 250.0]), minimize=False).logarithmic
    assert objective_transform(np.array([3.0, 250.0]), minimize=True).logarithmic
    assert not objective_transform(np.array([0.0, 0.0]), minimize=True).logarithmic
    assert metric_transform(np.array([1.0, 4.0]), 5.0).logarithmic
    assert not metric_transform(np.array([-1.0, 4.0]), 5.0).logarithmic
    assert Transform(False, sign=-1.0).value(-3.0) == 3.0
