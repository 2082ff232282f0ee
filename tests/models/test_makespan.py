"""Running times on preemptible machines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.models.lifetimes.families import Exponential
from shoestring.models.lifetimes.makespan import makespan_s, printed_makespan_at_age_s, printed_makespan_s, wasted_s
from shoestring.models.lifetimes.survival_table import SurvivalTable
from tests.models.lifetimes import HOUR_S, YOUNG_DIE_FIRST, life_s

LIVES = SurvivalTable.of(YOUNG_DIE_FIRST, until_s=24 * HOUR_S)


def test_without_memory_it_is_the_textbook_formula() -> None:
    mean_s, work_s, restart_s = 2 * HOUR_S, 3 * HOUR_S, 120.0
    lifetimes = SurvivalTable.of(Exponential(scale_s=mean_s), until_s=40 * HOUR_S)
    textbook = (mean_s + restart_s) * np.expm1(work_s / mean_s)
    assert makespan_s(lifetimes, work_s, restart_s=restart_s) == pytest.approx(textbook, rel=1e-3)


def test_without_memory_the_age_of_the_machine_does_not_matter() -> None:
    lifetimes = SurvivalTable.of(Exponential(scale_s=2 * HOUR_S), until_s=60 * HOUR_S)
    young, old = makespan_s(lifetimes, HOUR_S), makespan_s(lifetimes, HOUR_S, age_s=10 * HOUR_S)
    assert young == pytest.approx(old, rel=1e-3)


@pytest.mark.parametrize(("work_h", "age_h"), [(1.0, 0.0), (6.0, 0.5), (6.0, 20.0), (12.0, 3.0)])
def test_it_is_the_mean_of_many_simulated_jobs(work_h: float, age_h: float) -> None:
    rng, work_s, restart_s = np.random.default_rng(7), work_h * HOUR_S, 300.0

    def played() -> float:
        age_s, passed_s = age_h * HOUR_S, 0.0
        while (left_s := life_s(rng, older_than_s=age_s) - age_s) <= work_s:
            passed_s += left_s + restart_s
            age_s = 0.0
        return passed_s + work_s

    jobs = [played() for _ in range(6000)]
    expected = makespan_s(LIVES, work_s, age_s=age_h * HOUR_S, restart_s=restart_s)
    assert expected == pytest.approx(np.mean(jobs), abs=4 * np.std(jobs) / np.sqrt(len(jobs)))


def test_a_job_longer_than_any_lifetime_never_ends() -> None:
    assert np.isinf(makespan_s(LIVES, 25 * HOUR_S))


@given(work_h=st.floats(0.1, 20), age_h=st.floats(0, 23.9), restart_s=st.floats(0, 3600))
def test_losses_only_add_to_the_work(work_h: float, age_h: float, restart_s: float) -> None:
    assert makespan_s(LIVES, work_h * HOUR_S, age_s=age_h * HOUR_S, restart_s=restart_s) >= work_h * HOUR_S * (1 - 1e-9)


@given(work_h=st.floats(0.1, 8), machines=st.integers(1, 16))
def test_a_gang_takes_longer_the_more_machines_it_has(work_h: float, machines: int) -> None:
    few, more = (makespan_s(LIVES.together(n), work_h * HOUR_S) for n in (machines, machines + 1))
    assert more > few


def test_the_printed_makespan_allows_one_loss_and_is_too_short_for_long_jobs_and_gangs() -> None:
    assert printed_makespan_s(LIVES, HOUR_S) == pytest.approx(float(makespan_s(LIVES, HOUR_S)), rel=0.02)
    gang = LIVES.together(16)
    assert printed_makespan_s(gang, 6 * HOUR_S) < 0.5 * makespan_s(gang, 6 * HOUR_S)


def test_the_printed_makespan_is_its_integral() -> None:
    ages = np.linspace(2 * HOUR_S, 5 * HOUR_S, 40_001)
    density = -np.gradient(YOUNG_DIE_FIRST.survival(ages), ages)
    integral = np.trapezoid(ages * density, ages) if hasattr(np, "trapezoid") else np.trapz(ages * density, ages)
    printed = printed_makespan_at_age_s(LIVES, 3 * HOUR_S, 2 * HOUR_S)
    assert printed == pytest.approx(3 * HOUR_S + integral, rel=1e-4)


def test_half_of_a_short_job_is_wasted_without_memory_and_less_where_young_machines_die_first() -> None:
    lifetimes = SurvivalTable.of(Exponential(scale_s=100 * HOUR_S), until_s=30 * HOUR_S)
    assert wasted_s(lifetimes, HOUR_S) == pytest.approx(HOUR_S / 2, rel=0.01)
    assert wasted_s(LIVES, HOUR_S) < 0.35 * HOUR_S
