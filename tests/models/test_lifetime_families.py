"""Every family of lifetime models satisfies the laws of survival analysis, and agrees with hand computations."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from shoestring.errors import DataError, SpecError
from shoestring.market.simulated.lifetimes import Lifetime
from shoestring.models.lifetimes.as_printed import PrintedBathtub, PrintedParameters
from shoestring.models.lifetimes.families import (
    Bathtub,
    Exponential,
    ExponentiatedWeibull,
    GompertzMakeham,
    TwoPhase,
    Uniform,
    Weibull,
)
from shoestring.models.lifetimes.groups import ScaledHazard
from shoestring.models.lifetimes.kaplan_meier import KaplanMeier, product_limit
from shoestring.models.lifetimes.model import HOUR_S, LifetimeModel

H = HOUR_S
hours = st.floats(0.2, 60.0).map(lambda h: h * H)
limits = st.none() | st.just(24 * H)
shapes = st.floats(0.3, 3.0)


@st.composite
def kaplan_meiers(draw: st.DrawFn) -> KaplanMeier:
    lifetimes = draw(st.lists(st.tuples(hours, st.booleans()), min_size=1, max_size=12))
    seconds, revoked = np.array([life for life, _ in lifetimes]), np.array([gone for _, gone in lifetimes])
    return KaplanMeier.of(seconds, revoked, draw(limits))


FORMULAS = st.one_of(
    st.builds(Exponential, scale_s=hours, limit_s=limits),
    st.builds(Weibull, scale_s=hours, shape=shapes, limit_s=limits),
    st.builds(ExponentiatedWeibull, scale_s=hours, shape=shapes, power=shapes, limit_s=limits),
    st.builds(GompertzMakeham, chance_s=hours, ageing_s=hours, growth_s=hours, limit_s=limits),
    st.builds(Uniform, high_s=hours, limit_s=limits),
    st.builds(TwoPhase, early_share=st.floats(0, 1), early_s=hours, late_s=hours, limit_s=limits),
    st.builds(Bathtub, tau1_s=hours, tau2_s=hours, b_s=hours, end_s=hours, limit_s=limits),
    st.builds(
        PrintedBathtub,
        fit=st.builds(
            PrintedParameters, A=st.floats(0.3, 0.6), tau1_s=hours, tau2_s=st.just(0.8 * H), b_s=st.just(24.0 * H)
        ),
    ),
    kaplan_meiers(),
)
MODELS = st.one_of(
    FORMULAS, FORMULAS.flatmap(lambda m: st.builds(ScaledHazard, base=st.just(m), multiplier=shapes, limit_s=limits))
)
AGES = np.linspace(0.0, 80 * H, 161)


def integral(model: LifetimeModel, low_s: float, high_s: float) -> float:
    """By brute force: the mean of the survival over many small steps."""
    edges = np.linspace(low_s, high_s, 10_001)
    return float(model.reached((edges[1:] + edges[:-1]) / 2).mean()) * (high_s - low_s)


# -- laws --------------------------------------------------------------------------------------------------------------
@given(MODELS)
@settings(max_examples=50, deadline=None)
def test_a_cdf_rises_from_0_to_1(model: LifetimeModel) -> None:
    gone = model.cdf(AGES)
    assert np.all((gone >= 0) & (gone <= 1))
    assert np.all(np.diff(gone) >= -1e-12)
    assert float(model.cdf(0.0)) == pytest.approx(0.0, abs=1e-9)
    assert float(model.cdf(-5.0)) == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(gone + model.survival(AGES), 1.0)


@given(MODELS)
@settings(max_examples=30, deadline=None)
def test_no_machine_outlives_the_limit_and_those_that_reach_it_end_there(model: LifetimeModel) -> None:
    if model.limit_s is None:
        return
    assert float(model.survival(model.limit_s)) == 0.0
    assert float(model.cdf(model.limit_s)) == 1.0
    just_before = float(model.survival(model.limit_s * (1 - 1e-12)))
    assert float(model.reached(model.limit_s)) == pytest.approx(just_before, abs=1e-6)
    assert float(model.density(model.limit_s + 1.0)) == 0.0
    assert math.isinf(float(model.hazard(model.limit_s)))
    assert model.sample(Random(3)) <= model.limit_s


@given(MODELS, st.floats(0.0, 20.0), st.floats(0.1, 12.0))
@settings(max_examples=50, deadline=None)
def test_a_density_is_the_slope_of_the_cdf(model: LifetimeModel, age_h: float, ahead_h: float) -> None:
    low, high = age_h * H + 60.0, (age_h + ahead_h) * H + 60.0
    if model.limit_s is not None and high >= model.limit_s:
        return
    edges = np.linspace(low, high, 8_001)
    mass = float(model.density((edges[1:] + edges[:-1]) / 2).mean()) * (high - low)
    assert mass == pytest.approx(float(model.cdf(high) - model.cdf(low)), abs=1e-2)


@given(MODELS, st.floats(0.0, 20.0), st.floats(0.1, 12.0))
@settings(max_examples=50, deadline=None)
def test_failure_within_is_one_minus_the_ratio_of_survivals(model: LifetimeModel, age_h: float, work_h: float) -> None:
    age, work = age_h * H, work_h * H
    alive = float(model.survival(age))
    failure = float(model.failure_within(work, age))
    assert 0.0 <= failure <= 1.0
    if alive == 0.0:
        assert failure == 1.0
    else:
        assert failure == pytest.approx(1.0 - float(model.survival(age + work)) / alive)
    assert failure <= float(model.failure_within(work * 1.5, age)) + 1e-12


@given(MODELS, st.floats(0.0, 20.0), st.floats(0.1, 12.0))
@settings(max_examples=40, deadline=None)
def test_the_expected_loss_is_the_time_until_the_failure(model: LifetimeModel, age_h: float, work_h: float) -> None:
    age, work = age_h * H, work_h * H
    alive = float(model.survival(age))
    if alive < 1e-3:
        return
    stay = float(model.expected_stay_s(work, age))
    assert stay == pytest.approx(integral(model, age, age + work) / alive, rel=5e-3, abs=5.0)
    loss = float(model.expected_loss_s(work, age))
    assert loss == pytest.approx(stay - work * float(model.survival(age + work)) / alive, rel=1e-3, abs=1.0)
    assert 0.0 <= loss <= work * float(model.failure_within(work, age)) + 1.0


@given(MODELS)
@settings(max_examples=40, deadline=None)
def test_the_mean_is_the_integral_of_the_survival(model: LifetimeModel) -> None:
    end = model.limit_s or float(model.quantile(0.9999))
    if not math.isfinite(end) or end > 1e9:
        return
    assert model.mean_s() == pytest.approx(float(model.expected_stay_s(math.inf)), rel=1e-9)
    assert model.mean_s() >= integral(model, 0.0, end) * (1 - 2e-3) - 2.0
    if model.limit_s is not None:
        assert model.mean_s() == pytest.approx(integral(model, 0.0, end), rel=5e-3, abs=5.0)


@given(MODELS, st.floats(0.001, 0.999))
@settings(max_examples=50, deadline=None)
def test_by_a_quantile_that_share_is_gone(model: LifetimeModel, share: float) -> None:
    age = float(model.quantile(share))
    if model.limit_s is not None and age >= model.limit_s:
        assert share >= 1.0 - float(model.reached(model.limit_s)) - 1e-9
    else:
        assert float(model.cdf(age)) == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        Weibull(scale_s=100 * H, shape=0.4, limit_s=24 * H),
        TwoPhase(early_share=0.3, early_s=H, late_s=100 * H, limit_s=24 * H),
        ExponentiatedWeibull(scale_s=20 * H, shape=2.0, power=0.3),
        Bathtub(tau1_s=H, tau2_s=0.8 * H, b_s=24 * H, end_s=25 * H),
        KaplanMeier.of(np.array([1.0, 3, 4, 9]) * H, np.array([True, False, True, True]), None),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sampled_lifetimes_follow_the_cdf(model: LifetimeModel) -> None:
    rng = Random(7)
    player: Lifetime = model  # a fitted model can be played by the simulator
    drawn = np.sort([player.sample(rng) for _ in range(400)])
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        age = float(model.quantile(share))
        assert float(np.mean(drawn <= age)) == pytest.approx(float(model.cdf(age)), abs=0.08)


@given(MODELS)
@settings(max_examples=40, deadline=None)
def test_the_cumulative_hazard_of_many_machines_is_their_expected_deaths(model: LifetimeModel) -> None:
    gathered = model.cumulative_hazard(AGES)
    below = AGES < (model.limit_s or math.inf)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(gathered[below], -np.log(model.survival(AGES[below])))
    assert np.all(gathered[~below] == gathered[~below][:1])


# -- by hand -----------------------------------------------------------------------------------------------------------
def test_without_memory_age_does_not_matter() -> None:
    model = Exponential(scale_s=10 * H)
    ages = np.array([0.0, 1.0, 50.0]) * H
    np.testing.assert_allclose(model.failure_within(5 * H, ages), 1 - math.exp(-0.5))
    np.testing.assert_allclose(model.hazard(ages) * H, 0.1)
    assert model.mean_s() == pytest.approx(10 * H)
    # the exact loss, of which half of the work is the limit for short work
    assert float(model.expected_loss_s(H)) == pytest.approx(10 * H - (10 * H + H) * math.exp(-0.1))
    assert float(model.expected_loss_s(36.0) / model.failure_within(36.0)) == pytest.approx(18.0, rel=1e-3)


def test_a_weibull_has_the_mean_of_the_gamma_function() -> None:
    assert Weibull(scale_s=H, shape=0.5).mean_s() == pytest.approx(2 * H)
    assert Weibull(scale_s=H, shape=2.0).mean_s() == pytest.approx(H * math.sqrt(math.pi) / 2)
    assert float(Weibull(scale_s=H, shape=0.5).survival(4 * H)) == pytest.approx(math.exp(-2))


def test_a_power_of_one_is_a_weibull_and_a_shape_of_one_an_exponential() -> None:
    ages = np.array([0.01, 0.5, 3.0, 30.0]) * H
    plain = Weibull(scale_s=7 * H, shape=0.6)
    powered = ExponentiatedWeibull(scale_s=7 * H, shape=0.6, power=1.0)
    np.testing.assert_allclose(powered.survival(ages), plain.survival(ages))
    np.testing.assert_allclose(powered.density(ages), plain.density(ages))
    np.testing.assert_allclose(
        Weibull(scale_s=7 * H, shape=1.0).cdf(ages), Exponential(scale_s=7 * H).cdf(ages), rtol=1e-12
    )


def test_gompertz_and_makeham_add_ageing_to_chance() -> None:
    model = GompertzMakeham(chance_s=20 * H, ageing_s=1000 * H, growth_s=4 * H)
    assert float(model.hazard(8 * H)) * H == pytest.approx(0.05 + math.exp(2) / 1000)
    by_steps = quad(lambda t: float(model.survival(t)), 0, 200 * H, limit=200)[0]
    assert model.mean_s() == pytest.approx(by_steps, rel=1e-6)


def test_uniform_lifetimes_lose_half_of_the_work_of_a_failure() -> None:
    model = Uniform(high_s=24 * H)
    assert model.mean_s() == pytest.approx(12 * H)
    assert float(model.expected_loss_s(6 * H)) == pytest.approx(3 * H * 0.25)
    assert float(model.failure_within(6 * H, 18 * H)) == 1.0


def test_two_phases_are_two_exponentials() -> None:
    model = TwoPhase(early_share=0.25, early_s=H, late_s=99 * H)
    assert model.mean_s() == pytest.approx(0.25 * H + 0.75 * 99 * H)
    assert float(model.survival(2 * H)) == pytest.approx(0.25 * math.exp(-2) + 0.75 * math.exp(-2 / 99))


def test_released_machines_are_censored() -> None:
    """The textbook case: preempted at 1, 3 and 4, released at 2; at 3 two are at risk."""
    ages, alive = product_limit(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True]))
    assert ages.tolist() == [1.0, 3.0, 4.0]
    np.testing.assert_allclose(alive, [0.75, 0.375, 0.0])
    # at the same age the one that was given back is still at risk
    assert product_limit(np.array([1.0, 1.0]), np.array([True, False]))[1].tolist() == [0.5]


def test_kaplan_meier_is_exact_at_every_death_and_leaves_the_limit_to_itself() -> None:
    seconds, revoked = np.array([1.0, 2.0, 3.0, 25.0]) * H, np.array([True, False, True, True])
    model = KaplanMeier.of(seconds, revoked, 24 * H)
    np.testing.assert_allclose(model.survival([H, 3 * H]), [0.75, 0.375])
    assert float(model.reached(24 * H)) == pytest.approx(0.375)
    assert float(model.survival(24 * H)) == 0.0


def test_without_deaths_kaplan_meier_still_has_a_finite_lifetime() -> None:
    model = KaplanMeier.of(np.array([H, 2 * H]), np.array([False, False]), None)
    assert 0 < float(model.survival(3 * H)) < 1
    assert math.isfinite(model.mean_s())


def test_models_are_hashable_so_that_tables_can_be_cached_by_them() -> None:
    assert {Weibull(scale_s=H, shape=0.5): 1}[Weibull(scale_s=H, shape=0.5)] == 1
    assert hash(KaplanMeier.of(np.array([H]), np.array([True]), None))


def test_impossible_parameters_are_refused() -> None:
    for build in (
        lambda: Weibull(scale_s=0.0, shape=1.0),
        lambda: Exponential(scale_s=math.nan),
        lambda: TwoPhase(early_share=1.5, early_s=H, late_s=H),
        lambda: ScaledHazard(base=Exponential(scale_s=H), multiplier=-1.0),
    ):
        with pytest.raises(SpecError, match="of a lifetime model must be"):
            build()
    with pytest.raises(DataError, match="ascend"):
        KaplanMeier(ages_s=(2.0, 1.0), survivals=(0.5, 0.4), later_per_s=0.1)
