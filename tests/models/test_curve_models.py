"""Curve models: their common interface, what each is good at, and their uncertainty."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoestring.errors import SpecError
from shoestring.models.curves.blend import laws_weight
from shoestring.models.curves.facts import CurveStage, diverged, recent_movement
from shoestring.models.curves.registry import CURVE_MODELS, DEFAULT, curve_model
from shoestring.policies.search.theta.policy import CURVES

ALL = sorted(CURVE_MODELS)
FITTED = [name for name in ALL if name != "last_value"]

curves = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=40)


def noisy(law, count: int, seed: int = 0, noise: float = 0.01) -> list[float]:
    rng = random.Random(seed)
    return [law(step) + rng.gauss(0, noise) for step in range(1, count + 1)]


def stage_of(values: list[float]) -> CurveStage:
    return CurveStage(np.arange(1.0, len(values) + 1), np.asarray(values))


# -- the door ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
@settings(max_examples=30, deadline=None)
@given(values=curves, ahead=st.integers(1, 60), boundary=st.integers(1, 50))
def test_a_maximised_metric_is_a_minimised_one_in_the_mirror(name, values, ahead, boundary) -> None:
    model, steps, at = curve_model(name), range(1, len(values) + 1), len(values) + ahead
    down = model.predict(steps, values, at, "minimize", (boundary,))
    up = model.predict(steps, [-value for value in values], at, "maximize", (boundary,))
    assert (up.mean, up.deviation) == (-down.mean, down.deviation)
    assert not math.isnan(down.mean)
    assert down.deviation >= 0.0


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=15, deadline=None)
@given(values=curves, tens=st.integers(-200, 200))
def test_the_size_of_a_metric_does_not_matter(name, values, tens) -> None:
    """Sizes are powers of two, so that not one digit differs: a metric of 1e200 must not overflow in its square."""
    model, steps, size = curve_model(name), range(1, len(values) + 1), 2.0**tens
    assume(all(value == 0.0 or abs(size * value) > 1e-290 for value in values))  # nothing may vanish either
    plain = model.predict(steps, values, len(values) * 2, "minimize")
    sized = model.predict(steps, [size * value for value in values], len(values) * 2, "minimize")
    assert sized == pytest.approx((size * plain.mean, size * plain.deviation), rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("name", ALL)
def test_a_reported_value_is_not_predicted(name: str) -> None:
    assert curve_model(name).predict((2, 4, 6), (0.9, 0.5, 0.7), 6, "minimize") == (0.7, 0.0)
    assert curve_model(name).predict((2, 4, 6), (0.9, 0.5, 0.7), 5, "minimize") == (0.5, 0.0)


@pytest.mark.parametrize("name", ALL)
def test_a_trial_that_diverged_is_known_at_once(name: str) -> None:
    model = curve_model(name)
    for last in (math.nan, math.inf, 1e9):
        assert model.predict((1, 2, 3), (0.9, 0.8, last), 10, "minimize") == (math.inf, 0.0)
        assert model.predict((1, 2, 3), (-0.9, -0.8, -last), 10, "maximize") == (-math.inf, 0.0)


@pytest.mark.parametrize("name", ALL)
def test_nan_values_are_left_out_once_later_values_are_finite(name: str) -> None:
    values = [math.nan, *noisy(lambda step: 1 / step, 19)]
    assert math.isfinite(curve_model(name).predict(range(1, 21), values, 40, "minimize").mean)


@pytest.mark.parametrize("name", ALL)
def test_without_reports_the_forecast_is_nan(name: str) -> None:
    mean, deviation = curve_model(name).predict((), (), 10, "minimize")
    assert math.isnan(mean)
    assert deviation == math.inf


@pytest.mark.parametrize("name", ALL)
def test_a_constant_curve_stays_constant(name: str) -> None:
    mean, deviation = curve_model(name).predict(range(1, 31), [0.25] * 30, 100, "minimize")
    assert mean == pytest.approx(0.25, rel=1e-6)
    assert deviation < 1e-6


@pytest.mark.parametrize("name", ALL)
def test_ten_thousand_reports_give_the_forecast_of_a_hundred(name: str) -> None:
    many = noisy(lambda step: 0.2 + (step / 100) ** -0.5, 10_000, noise=0.001)
    few = curve_model(name).predict(range(100, 10_001, 100), many[99::100], 20_000, "minimize").mean
    assert curve_model(name).predict(range(1, 10_001), many, 20_000, "minimize").mean == pytest.approx(few, rel=0.05)


def test_an_unknown_model_is_an_error_with_a_hint() -> None:
    with pytest.raises(SpecError) as error:
        curve_model("earlycurv")
    assert "earlycurve" in (error.value.hint or "")


def test_the_search_option_lists_all_models() -> None:
    assert sorted(CURVES) == ALL
    assert CURVES[0] == DEFAULT


# -- what they foretell ------------------------------------------------------------------------------------------------
LAWS = {
    "power": lambda step: 0.2 + step**-0.6,
    "exponential": lambda step: 0.2 + math.exp(-step / 20),
    "mmf": lambda step: 0.2 + 1 / (1 + (step / 25) ** 2),
    "rational": lambda step: 0.2 + 1 / (0.002 * step**2 + 0.05 * step + 0.9),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", FITTED)
def test_a_fitted_law_beats_the_last_value(name: str, law: str) -> None:
    values = noisy(LAWS[law], 50, noise=0.002)
    end = LAWS[law](150)
    mean, _ = curve_model(name).predict(range(1, 51), values, 150, "minimize")
    assert abs(mean - end) < 0.75 * abs(values[-1] - end)


@pytest.mark.parametrize("name", ["earlycurve", "slaq"])
def test_the_rational_law_is_recovered(name: str) -> None:
    """Eq. 4 on a curve that is one."""
    law = LAWS["rational"]
    values = [law(step) for step in range(1, 61)]
    assert curve_model(name).predict(range(1, 61), values, 120, "minimize").mean == pytest.approx(law(120), rel=0.01)


def test_a_trial_that_overfits_is_expected_to_get_worse() -> None:
    values = noisy(lambda step: 0.5 + 0.01 * abs(step - 15), 45, noise=0.001)
    assert curve_model("ensemble").predict(range(1, 46), values, 60, "minimize").mean > values[-1]


def test_the_blend_gives_half_of_the_weight_to_laws_that_were_right_before() -> None:
    values = [LAWS["power"](step) for step in range(1, 51)]
    laws = curve_model("ensemble").predict(range(1, 51), values, 100, "minimize").mean
    blend = curve_model().predict(range(1, 51), values, 100, "minimize").mean
    assert blend == pytest.approx((laws + values[-1]) / 2, rel=1e-3)


def test_the_blend_stays_at_the_last_value_where_laws_were_wrong_before() -> None:
    """It fell for 25 steps, and has risen since: the prediction from the middle was entirely wrong."""
    values = noisy(lambda step: 1.0 / min(step, 25) + 0.01 * max(0, step - 25), 50, noise=1e-4)
    assert laws_weight(stage_of(values), 100.0) == 0.0
    assert curve_model().predict(range(1, 51), values, 100, "minimize").mean == values[-1]


def test_a_change_smaller_than_the_noise_proves_nothing() -> None:
    values = noisy(lambda step: 0.5 - 1e-6 * step, 50, noise=0.1)
    assert laws_weight(stage_of(values), 100.0) == pytest.approx(0.5, abs=0.25)


def test_a_curve_too_short_to_check_gets_the_default_weight() -> None:
    assert laws_weight(stage_of([1.0, 0.9, 0.8, 0.75, 0.7]), 50.0) == 0.5


@pytest.mark.parametrize("name", ALL)
def test_what_lies_further_ahead_is_less_certain(name: str) -> None:
    values = noisy(LAWS["power"], 50)
    near, far = (curve_model(name).predict(range(1, 51), values, at, "minimize").deviation for at in (60, 400))
    assert 0.0 < near < far


def test_nine_in_ten_ends_lie_within_two_deviations() -> None:
    """Synthetic curves of all laws and of many shapes, predicted from half of their steps."""
    rng, inside = random.Random(7), []
    for seed in range(120):
        low, scale, power = rng.uniform(0.05, 1), rng.uniform(0.1, 2), rng.uniform(0.2, 1.5)
        shape = rng.choice([lambda k, p=power: k**-p, lambda k, p=power: math.exp(-k * p / 30)])
        law = lambda step, low=low, scale=scale, shape=shape: low + scale * shape(step)  # noqa: E731
        mean, deviation = curve_model().predict(range(1, 51), noisy(law, 50, seed), 100, "minimize")
        inside.append(abs(mean - law(100)) < 2 * deviation)
    assert sum(inside) / len(inside) >= 0.9


# -- facts -------------------------------------------------------------------------------------------------------------
def test_a_loss_that_wobbles_has_not_diverged() -> None:
    assert not diverged(0.7, 0.3, 0.9)
    assert not diverged(2.3, 1e-9, 0.5)
    assert not diverged(0.0, 0.0, -5.0)  # a reward that begins at nothing
    assert diverged(0.7, 0.3, 8000.0)
    assert diverged(0.7, 0.3, math.nan)
    assert not diverged(math.nan, 0.3, 0.4)


def test_recent_movement_is_near_zero_on_a_plateau() -> None:
    falling = noisy(lambda step: 1 / step, 40, noise=0.0)
    assert recent_movement(falling, 10) > 0.1
    resting = falling + noisy(lambda _: 0.02, 20, noise=1e-7)
    assert recent_movement(resting, 10) < 1e-5
    assert recent_movement([-value for value in resting], 10) == recent_movement(resting, 10)
    assert recent_movement(falling, 41) == math.inf
    assert recent_movement([*falling, *[math.nan] * 10], 10) == math.inf
