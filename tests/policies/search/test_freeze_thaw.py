"""The freeze-thaw model: what it knows, what it guesses, and that it learns which parameters matter."""

from __future__ import annotations

import numpy as np
import pytest

from shoestring.policies.search.flex.freeze_thaw import SPREAD, CurvePoints, FreezeThaw, FreezeThawParameters


def curve(level: float, u: np.ndarray) -> np.ndarray:
    return level + u


def seen(count: int = 30, seed: int = 0, dimensions: int = 2) -> tuple[CurvePoints, np.ndarray]:
    """Trials whose level is their first number, each observed at the beginning and half way."""
    rng = np.random.default_rng(seed)
    x = np.repeat(rng.random((count, dimensions)), 2, axis=0)
    trial = np.repeat(np.arange(count), 2)
    u = np.tile([0.0, 0.5], count)
    values = curve(2.0 * x[:, 0], u)
    return CurvePoints(x, trial, u), (values - values.mean()) / values.std()


def test_what_was_seen_is_what_is_believed() -> None:
    points, values = seen()
    mean, deviation = FreezeThaw(points, values, FreezeThawParameters.usual(2)).mean_and_deviation(points)
    assert np.abs(mean - values).max() < 0.2
    assert deviation.max() < 0.2


def test_a_trial_is_known_better_than_its_neighbour_and_the_near_future_better_than_the_end() -> None:
    points, values = seen()
    model = FreezeThaw(points, values, FreezeThawParameters.usual(2))
    x = points.x[:1]
    _, own = model.mean_and_deviation(
        CurvePoints(np.repeat(x, 2, axis=0), np.zeros(2, dtype=int), np.array([0.6, 1.0]))
    )
    _, neighbour = model.mean_and_deviation(CurvePoints(x, np.array([1000]), np.array([0.6])))
    assert own[0] < own[1]
    assert own[0] < neighbour[0]


def test_a_new_trial_near_good_ones_is_expected_to_be_good() -> None:
    points, values = seen()
    at = CurvePoints(np.array([[0.95, 0.5], [0.05, 0.5]]), np.array([1000, 1001]), np.ones(2))
    mean, _ = FreezeThaw(points, values, FreezeThawParameters.usual(2)).mean_and_deviation(at)
    assert mean[0] > mean[1] + 1.0


def test_curves_that_rise_are_expected_to_rise_on() -> None:
    points, values = seen()
    x = np.repeat(points.x[:1], 2, axis=0)
    at = CurvePoints(x, np.zeros(2, dtype=int), np.array([0.5, 1.0]))
    mean, _ = FreezeThaw(points, values, FreezeThawParameters.usual(2)).mean_and_deviation(at)
    assert mean[1] > mean[0]


def test_means_and_deviations_are_those_of_the_textbook() -> None:
    points, values = seen()
    at = CurvePoints(np.random.default_rng(1).random((7, 2)), np.arange(7) + 500, np.linspace(0, 1, 7))
    model = FreezeThaw(points, values, FreezeThawParameters.usual(2))
    mean, deviation = model.mean_and_deviation(at)
    noisy = model._between(points, points) + FreezeThawParameters.usual(2).amplitudes[-1] * np.eye(len(values))
    across = model._between(points, at)
    covariance = model._between(at, at) - across.T @ np.linalg.solve(noisy, across)
    assert mean == pytest.approx(across.T @ np.linalg.solve(noisy, values))
    assert np.sqrt(np.diag(covariance)) == pytest.approx(deviation, abs=1e-6)


def log_posterior(model: FreezeThaw, values: np.ndarray) -> float:
    """Of the parameters, up to a constant: fit of the Gaussian process and their normal priors."""
    fit = -0.5 * values @ model._weights - np.log(np.diag(model._factor)).sum()
    return float(fit - 0.5 * (model._shape.logs**2).sum() / SPREAD**2)


def test_sharpening_goes_up_the_slope_of_the_posterior() -> None:
    points, values = seen(dimensions=3)
    model = FreezeThaw(points, values, FreezeThawParameters.usual(3))
    step = 1e-5
    sharper = model.sharpened()
    moved = np.flatnonzero(np.abs(sharper.logs) < 0.19)  # the others were cut off at the longest step
    for k in moved:
        logs = np.zeros(len(sharper.logs))
        logs[k] = step
        slope = (
            log_posterior(FreezeThaw(points, values, FreezeThawParameters(logs)), values)
            - log_posterior(FreezeThaw(points, values, FreezeThawParameters(-logs)), values)
        ) / (2 * step)
        assert sharper.logs[k] == pytest.approx(0.04 * slope, abs=1e-3)
    assert len(moved) >= 3


def test_a_model_that_is_sharpened_again_and_again_learns_which_parameter_matters() -> None:
    points, values = seen(dimensions=3)
    shape = FreezeThawParameters.usual(3)
    before = log_posterior(FreezeThaw(points, values, shape), values)
    for _ in range(40):
        shape = FreezeThaw(points, values, shape).sharpened()
    assert log_posterior(FreezeThaw(points, values, shape), values) > before + 10
    assert shape.lengths[0] < shape.lengths[1:].min()


def test_one_trial_seen_once_is_enough_for_a_model() -> None:
    points = CurvePoints(np.array([[0.5]]), np.array([0]), np.array([0.0]))
    model = FreezeThaw(points, np.array([0.0]), FreezeThawParameters.usual(1))
    mean, deviation = model.mean_and_deviation(points)
    assert np.isfinite(mean).all()
    assert np.isfinite(deviation).all()
    assert np.isfinite(model.sharpened().logs).all()
