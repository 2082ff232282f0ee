"""Fitting recovers the model that machines were sampled from, also where half of them are censored."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoestring.errors import DataError, SpecError
from shoestring.models.lifetimes.as_printed import PrintedBathtub
from shoestring.models.lifetimes.families import Bathtub, Exponential, TwoPhase, Uniform, Weibull
from shoestring.models.lifetimes.fit import (
    DEFAULT,
    LEAST_CHANCE,
    MODELS,
    default_for,
    fit,
    log_likelihoods,
    suitable,
)
from shoestring.models.lifetimes.kaplan_meier import KaplanMeier
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.models.lifetimes.records import LifetimeRecord, LifetimeRecords
from tests.models.lifetime_machines import machines

H = HOUR_S
GOOGLE_LIKE = Weibull(scale_s=150 * H, shape=0.4, limit_s=24 * H)


def test_a_weibull_with_a_limit_is_recovered() -> None:
    found = fit("weibull_atom", machines(GOOGLE_LIKE, 3000, given_back_after_s=20 * H))
    assert isinstance(found, Weibull)
    assert found.shape == pytest.approx(0.4, rel=0.1)
    assert found.scale_s == pytest.approx(150 * H, rel=0.3)
    assert found.limit_s == 24 * H
    assert float(found.reached(24 * H)) == pytest.approx(float(GOOGLE_LIKE.reached(24 * H)), abs=0.03)


def test_two_phases_are_recovered() -> None:
    truth = TwoPhase(early_share=0.3, early_s=H, late_s=80 * H, limit_s=24 * H)
    found = fit("mixture_atom", machines(truth, 3000, given_back_after_s=20 * H))
    assert isinstance(found, TwoPhase)
    assert found.early_share == pytest.approx(0.3, abs=0.05)
    assert found.early_s == pytest.approx(H, rel=0.25)
    assert found.late_s == pytest.approx(80 * H, rel=0.3)


def test_an_exponential_is_exposure_over_deaths() -> None:
    """The one whose maximum likelihood has a closed form."""
    seen = machines(Exponential(scale_s=8 * H), 400)
    found = fit("exponential", seen)
    assert isinstance(found, Exponential)
    assert found.scale_s == pytest.approx(seen.seconds.sum() / seen.revoked.sum(), rel=1e-4)


def test_a_weibull_without_a_limit_is_recovered() -> None:
    found = fit("weibull", machines(Weibull(scale_s=10 * H, shape=1.7), 2000))
    assert isinstance(found, Weibull)
    assert found.shape == pytest.approx(1.7, rel=0.08)
    assert found.scale_s == pytest.approx(10 * H, rel=0.05)


def test_a_uniform_ends_at_the_oldest_machine_if_none_is_censored() -> None:
    seen = machines(Uniform(high_s=10 * H), 200, given_back_after_s=1e9)
    found = fit("uniform", seen)
    assert isinstance(found, Uniform)
    assert found.high_s == pytest.approx(seen.seconds.max(), rel=1e-3)


def test_the_true_family_has_the_best_likelihood() -> None:
    seen = machines(Bathtub(tau1_s=2 * H, tau2_s=0.8 * H, b_s=24 * H, end_s=25 * H), 600, given_back_after_s=1e9)
    told = {name: log_likelihoods(fit(name, seen), seen).mean() for name in ("bathtub", "exponential", "weibull")}
    assert max(told, key=lambda name: told[name]) == "bathtub"


def test_leaving_out_censored_machines_overstates_early_death() -> None:
    seen = machines(GOOGLE_LIKE, 2000, given_back_after_s=6 * H)
    paper = fit("bathtub_printed", seen)
    ours = fit("weibull_atom", seen)
    truth = float(GOOGLE_LIKE.cdf(6 * H))
    assert float(ours.cdf(6 * H)) == pytest.approx(truth, abs=0.03)
    assert float(paper.cdf(6 * H)) > truth + 0.2


def test_least_squares_fit_the_share_of_preempted_machines() -> None:
    seen = machines(Exponential(scale_s=5 * H), 500, given_back_after_s=1e9)
    found = fit("exponential", seen, "least_squares")
    assert isinstance(found, Exponential)
    assert found.scale_s == pytest.approx(5 * H, rel=0.1)
    assert isinstance(fit("bathtub_printed", seen), PrintedBathtub)


def test_the_likelihood_of_each_machine_is_its_density_or_its_survival() -> None:
    model = Weibull(scale_s=100 * H, shape=0.5, limit_s=24 * H)
    lifetimes = [(2 * H, True), (24.4 * H, True), (5 * H, False), (24.1 * H, False)]
    seen = LifetimeRecords.of(LifetimeRecord(seconds, revoked, limit_s=24 * H) for seconds, revoked in lifetimes)
    reached = math.log(float(model.reached(24 * H)))
    np.testing.assert_allclose(
        log_likelihoods(model, seen),
        [math.log(float(model.density(2 * H)) * H), reached, math.log(float(model.survival(5 * H))), reached],
    )
    # without a step at the limit, only what goes within the hour from it on is a death at the limit
    plain = Exponential(scale_s=100 * H)
    assert log_likelihoods(plain, seen)[1] == pytest.approx(math.log(math.exp(-0.24) - math.exp(-0.25)))


def test_impossible_observations_have_a_bounded_likelihood() -> None:
    seen = LifetimeRecords.of([LifetimeRecord(30 * H, True)])
    assert log_likelihoods(Uniform(high_s=10 * H), seen)[0] == pytest.approx(math.log(LEAST_CHANCE))


def test_every_model_by_name_fits_or_says_what_it_needs() -> None:
    seen = machines(GOOGLE_LIKE, 200)
    for name in MODELS:
        assert 0 < fit(name, seen).mean_s() < math.inf, name
    assert default_for(seen) == DEFAULT == "weibull_atom"
    free = machines(Exponential(scale_s=9 * H), 50)
    assert default_for(free) == "weibull"
    assert set(MODELS) - set(suitable(free)) == {"weibull_atom", "mixture_atom"}
    assert isinstance(fit("kaplan_meier", free), KaplanMeier)


def test_an_impossible_fit_is_an_error() -> None:
    free = machines(Exponential(scale_s=9 * H), 50)
    with pytest.raises(SpecError, match="'weibul' is unknown"):
        fit("weibul", free)
    with pytest.raises(SpecError, match="needs the age at which"):
        fit("weibull_atom", free)
    with pytest.raises(SpecError, match="no parameters to fit by least squares"):
        fit("kaplan_meier", free, "least_squares")
    with pytest.raises(DataError, match="0 of 3 machines were preempted"):
        fit("weibull", LifetimeRecords.of([LifetimeRecord(H, False)] * 3))


# -- an oracle ---------------------------------------------------------------------------------------------------------
@pytest.mark.heavy
def test_lifelines_gives_the_same() -> None:
    lifelines = pytest.importorskip("lifelines", reason="pip install lifelines, the oracle of survival analysis")
    seen = machines(Weibull(scale_s=10 * H, shape=0.7), 500)
    hours = seen.seconds / H

    theirs = lifelines.WeibullFitter().fit(hours, seen.revoked)
    ours = fit("weibull", seen)
    assert isinstance(ours, Weibull)
    assert ours.shape == pytest.approx(theirs.rho_, rel=1e-3)
    assert ours.scale_s / H == pytest.approx(theirs.lambda_, rel=1e-3)
    assert log_likelihoods(ours, seen).sum() == pytest.approx(theirs.log_likelihood_, abs=1e-3)

    exponential = fit("exponential", seen)
    assert isinstance(exponential, Exponential)
    assert exponential.scale_s / H == pytest.approx(
        lifelines.ExponentialFitter().fit(hours, seen.revoked).lambda_, rel=1e-3
    )

    counted = lifelines.KaplanMeierFitter().fit(hours, seen.revoked)
    deaths = np.sort(hours[seen.revoked])
    np.testing.assert_allclose(
        fit("kaplan_meier", seen).survival(deaths * H), counted.survival_function_at_times(deaths), atol=1e-9
    )
