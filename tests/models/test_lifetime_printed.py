"""The paper's model as printed: the paper's claims, its values, and how it differs from the proper distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from shoestring.models.lifetimes.as_printed import (
    PrintedBathtub,
    PrintedParameters,
    printed_cdf,
    printed_density,
    printed_expected_lifetime_s,
    printed_hazard,
)
from shoestring.models.lifetimes.families import Bathtub
from shoestring.models.lifetimes.model import HOUR_S

H = HOUR_S
TYPICAL = PrintedParameters(A=0.45, tau1_s=1.0 * H, tau2_s=0.8 * H, b_s=24.0 * H)
"""The paper: b about 24 h, tau1 in [0.5, 1.5], tau2 about 0.8, A in [0.4, 0.5]."""


def test_the_printed_cdf_begins_near_0_as_the_paper_says() -> None:
    assert float(printed_cdf(0.0, TYPICAL)) == pytest.approx(0.0, abs=1e-9)


def test_the_printed_cdf_is_not_a_cdf() -> None:
    """Nearly all machines that reach 24 h are gone by 24 h 50, and none is left: F should be 1 there and is not."""
    assert float(printed_cdf(24 * H, TYPICAL)) == pytest.approx(2 * 0.45, abs=1e-6)
    minute = H / 60
    assert float(printed_cdf(24 * H + 9 * minute, TYPICAL)) < 1 < float(printed_cdf(24 * H + 10 * minute, TYPICAL))
    assert float(printed_cdf(24.83 * H, TYPICAL)) > 1.5
    assert float(printed_cdf(30 * H, TYPICAL)) > 100


def test_the_printed_density_is_the_slope_of_the_printed_cdf() -> None:
    for age in (0.0, 0.5 * H, 6 * H, 23 * H, 24.5 * H):
        slope = float(printed_cdf(age + 1.0, TYPICAL) - printed_cdf(age, TYPICAL))
        assert float(printed_density(age + 0.5, TYPICAL)) == pytest.approx(slope, rel=1e-6)


def test_the_printed_expected_lifetime_is_its_integral_and_too_short() -> None:
    by_steps = quad(lambda t: t * float(printed_density(t, TYPICAL)), 0.0, 24 * H, limit=200)[0]
    printed = printed_expected_lifetime_s(24 * H, TYPICAL)
    assert printed == pytest.approx(by_steps, rel=1e-6)
    assert printed < PrintedBathtub(fit=TYPICAL).mean_s()


def test_the_printed_expected_lifetime_is_its_integral_also_where_early_preemptions_count() -> None:
    """Over a day nothing is left of their term but what stands at its lower end."""
    by_steps = quad(lambda t: t * float(printed_density(t, TYPICAL)), 0.0, 2 * H)[0]
    assert printed_expected_lifetime_s(2 * H, TYPICAL) == pytest.approx(by_steps, rel=1e-6)


def test_the_printed_hazard_is_density_over_survival_and_falls_below_0() -> None:
    ages = np.array([0.1, 1.0, 10.0, 23.0]) * H
    expected = printed_density(ages, TYPICAL) / (1.0 - printed_cdf(ages, TYPICAL))
    np.testing.assert_allclose(printed_hazard(ages, TYPICAL), expected)
    assert float(printed_hazard(24.83 * H, TYPICAL)) < 0
    # "when 0 < t << b the hazard is about r1": it is A r1 at the start, and dies away with the early machines
    assert float(printed_hazard(0.0, TYPICAL)) * H == pytest.approx(0.45)
    assert float(printed_hazard(8 * H, TYPICAL)) * H < 0.001


def test_a_hazard_is_the_density_among_those_still_there() -> None:
    model = Bathtub(tau1_s=H, tau2_s=0.8 * H, b_s=24 * H, end_s=25 * H)
    ages = np.array([0.5, 5.0, 24.0]) * H
    np.testing.assert_allclose(model.hazard(ages), model.density(ages) / model.survival(ages))


def test_clipped_to_0_and_1_it_can_be_evaluated_at_any_age() -> None:
    model = PrintedBathtub(fit=TYPICAL)
    assert float(model.cdf(40 * H)) == 1.0
    assert float(model.density(40 * H)) == 0.0
    assert 24 * H < float(model.quantile(1.0)) < 24.5 * H


def test_made_proper_it_is_a_cdf_of_the_same_shape() -> None:
    proper = Bathtub(tau1_s=TYPICAL.tau1_s, tau2_s=TYPICAL.tau2_s, b_s=TYPICAL.b_s, end_s=24.5 * H)
    ages = np.array([0.5, 3.0, 12.0, 23.0, 24.0]) * H
    ratio = proper.cdf(ages) / printed_cdf(ages, TYPICAL)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert float(proper.cdf(24.5 * H)) == 1.0
