"""An old machine or a new one, and how long to keep it for the next job."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoestring.models.lifetimes.families import Exponential
from shoestring.models.lifetimes.makespan import makespan_s
from shoestring.models.lifetimes.reuse import break_even_idle_s, printed_reuse_saves_s, reuse_saves_s, transition_points
from shoestring.models.lifetimes.survival_table import SurvivalTable
from tests.models.lifetimes import HOUR_S, YOUNG_DIE_FIRST

LIVES = SurvivalTable.of(YOUNG_DIE_FIRST, until_s=24 * HOUR_S)
TABLE = transition_points(LIVES, 120.0)


def test_a_machine_that_survived_its_first_hours_is_better_than_a_new_one() -> None:
    assert reuse_saves_s(LIVES, 6 * HOUR_S, 5 * HOUR_S, 0.0) > 60


def test_a_machine_that_will_not_outlive_the_job_is_not_used_for_it() -> None:
    assert reuse_saves_s(LIVES, 6 * HOUR_S, 20 * HOUR_S, 120.0) < 0


def test_without_memory_only_the_setup_time_is_saved() -> None:
    lifetimes = SurvivalTable.of(Exponential(scale_s=5 * HOUR_S), until_s=40 * HOUR_S)
    assert abs(reuse_saves_s(lifetimes, HOUR_S, 7 * HOUR_S, 90.0) - 90.0) < 1.0


def test_in_print_a_safe_old_machine_is_released_for_a_short_job() -> None:
    """A loss is weighed by the machine's age there, so an old machine looks bad however safe it is."""
    work_s, age_s = 0.25 * HOUR_S, 10 * HOUR_S
    assert printed_reuse_saves_s(LIVES, work_s, age_s) < 0 < reuse_saves_s(LIVES, work_s, age_s, 0.0)


@given(work_h=st.floats(0.1, 22), age_h=st.floats(0, 23.9))
def test_the_table_of_transition_points_agrees_with_the_formula(work_h: float, age_h: float) -> None:
    age_s = np.floor(age_h * 4) * 900  # the ages of the table
    saves = reuse_saves_s(LIVES, work_h * HOUR_S, age_s, 120.0)
    near = abs(work_h * HOUR_S + age_s - 24 * HOUR_S) <= 120.0
    assert near or TABLE.reuse(work_h * HOUR_S, age_s) == (saves >= 0)


def test_keeping_a_spare_pays_for_minutes_not_for_an_hour() -> None:
    short, long = (float(break_even_idle_s(LIVES, hours * HOUR_S, 6 * HOUR_S)) for hours in (0.25, 6.0))
    assert 0 < short < 120
    assert 600 < long < 1800


@given(work_h=st.floats(0.1, 12), age_h=st.floats(0.2, 23))
def test_a_spare_kept_up_to_its_break_even_costs_no_more_than_a_new_machine(work_h: float, age_h: float) -> None:
    idle_s = break_even_idle_s(LIVES, work_h * HOUR_S, age_h * HOUR_S)
    kept = idle_s + makespan_s(LIVES, work_h * HOUR_S, age_s=age_h * HOUR_S)
    assert idle_s == 0 or kept <= makespan_s(LIVES, work_h * HOUR_S) * (1 + 1e-9)
