"""Zones that have lasted keep lasting; records refine the priors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from benchmarks.placement_contestants import loss_rates
from shoestring.models.zone_survival import (
    ZoneRecord,
    expected_stay_h,
    losses_per_h,
    mean_spell_h,
    returns_per_h,
    survival,
)

hours = st.floats(0.0, 500.0)
records = st.builds(ZoneRecord, losses=st.floats(0, 200), uptime_h=hours, returns=st.floats(0, 200), downtime_h=hours)


def test_an_untried_zone_has_the_priors() -> None:
    assert mean_spell_h(ZoneRecord()) == 16.0
    assert survival(1.0, 1.0, ZoneRecord()) == pytest.approx(1 / (1 + 0.85 / 4))
    assert losses_per_h(ZoneRecord()) == pytest.approx(1 / 12)
    assert returns_per_h(ZoneRecord()) == 0.5


@given(records, st.floats(0.0, 100.0), st.floats(0.01, 24.0))
def test_survival_falls_with_time_and_grows_with_age(record: ZoneRecord, age_h: float, ahead_h: float) -> None:
    assert survival(0.0, age_h, record) == 1.0
    assert 0.0 < survival(2 * ahead_h, age_h, record) < survival(ahead_h, age_h, record) < 1.0
    assert survival(ahead_h, age_h + 1.0, record) > survival(ahead_h, age_h, record)


@given(records, st.floats(0.0, 100.0), st.floats(0.25, 12.0))
def test_the_expected_stay_is_the_integral_of_survival(record: ZoneRecord, age_h: float, horizon_h: float) -> None:
    integral, _ = quad(lambda ahead: survival(ahead, age_h, record), 0.0, horizon_h)
    assert expected_stay_h(horizon_h, age_h, record) == pytest.approx(integral, rel=1e-4)
    assert 0.0 < expected_stay_h(horizon_h, age_h, record) <= horizon_h


@given(records)
def test_rates_are_positive_for_any_record(record: ZoneRecord) -> None:
    assert losses_per_h(record) > 0
    assert returns_per_h(record) > 0


def test_rates_approach_the_counts() -> None:
    week = ZoneRecord(losses=50, uptime_h=100, returns=50, downtime_h=68)
    assert losses_per_h(week) == pytest.approx(0.5, rel=0.1)
    assert returns_per_h(week) == pytest.approx(50 / 68, rel=0.1)


def test_young_spells_have_their_own_rate() -> None:
    rates = loss_rates(ZoneRecord(losses=50, uptime_h=150), young=ZoneRecord(losses=45, uptime_h=30))
    assert rates.young_per_h == pytest.approx(1.43, abs=0.01)
    assert rates.old_per_h == pytest.approx(0.05, abs=0.01)
    untried = loss_rates(ZoneRecord(), young=ZoneRecord())
    assert untried.young_per_h == pytest.approx(untried.old_per_h) == pytest.approx(losses_per_h(ZoneRecord()))
