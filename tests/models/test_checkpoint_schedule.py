"""The checkpoint schedule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.errors import SpecError
from shoestring.models.lifetimes.checkpoint_schedule import CheckpointSchedule, Costs, solve, young_daly_s
from shoestring.models.lifetimes.families import Exponential
from shoestring.models.lifetimes.makespan import makespan_s
from shoestring.models.lifetimes.survival_table import SurvivalTable
from tests.models.lifetimes import HOUR_S, YOUNG_DIE_FIRST, life_s

LIVES = SurvivalTable.of(YOUNG_DIE_FIRST, until_s=24 * HOUR_S)
COSTS = Costs(save_s=60.0, restart_s=120.0)
DAY = solve(LIVES, 12 * HOUR_S, COSTS)


def simulated_s(rng: np.random.Generator, schedule: CheckpointSchedule, work_s: float, age_s: float) -> float:
    """One simulated job by the schedule, on machines with random lifetimes."""
    costs, passed_s, left_s = schedule.costs, 0.0, work_s
    end_s = life_s(rng, older_than_s=age_s)
    while left_s > 1e-6:
        ahead_s = schedule.next_save_s(left_s, age_s)
        if ahead_s is None:
            passed_s += costs.restart_s
            age_s, end_s = 0.0, life_s(rng)
            continue
        stretch_s = ahead_s + (costs.save_s if ahead_s < left_s - 1e-6 else 0.0)
        if age_s + stretch_s < end_s:
            passed_s += stretch_s
            age_s += stretch_s
            left_s -= ahead_s
        else:
            passed_s += end_s - age_s + costs.restart_s
            age_s, end_s = 0.0, life_s(rng)
    return passed_s


def fixed_interval_s(lifetimes: SurvivalTable, work_s: float, every_s: float, costs: Costs) -> float:
    """Expected time with a save every so often on machines without memory, from a new machine: piece after piece."""
    total, left_s = 0.0, work_s
    while left_s > 1e-6:
        piece_s = min(every_s, left_s)
        stretch_s = piece_s + (costs.save_s if piece_s < left_s else 0.0)
        total += float(makespan_s(lifetimes, stretch_s, restart_s=costs.restart_s))
        left_s -= piece_s
    return total


def saves_s(schedule: CheckpointSchedule, work_s: float, age_s: float = 0.0) -> tuple[float, ...]:
    """Seconds of work after which to save while the machine runs; ends where it is done or released."""
    saves: list[float] = []
    done_s, age = 0.0, age_s
    while work_s - done_s > 1e-6:
        ahead_s = schedule.next_save_s(work_s - done_s, age)
        if ahead_s is None or ahead_s >= work_s - done_s - 1e-6:
            break
        done_s += ahead_s
        age += ahead_s + schedule.costs.save_s
        saves.append(done_s)
    return tuple(saves)


@pytest.mark.parametrize(("work_h", "age_h"), [(12.0, 0.0), (6.0, 8.0), (6.0, 21.0), (1.0, 0.0)])
def test_the_expected_time_is_the_mean_of_many_simulated_jobs(work_h: float, age_h: float) -> None:
    rng = np.random.default_rng(3)
    jobs = [simulated_s(rng, DAY, work_h * HOUR_S, age_h * HOUR_S) for _ in range(3000)]
    error = 4 * np.std(jobs) / np.sqrt(len(jobs)) + 60.0
    assert DAY.seconds(work_h * HOUR_S, age_h * HOUR_S) == pytest.approx(np.mean(jobs), abs=error)


@given(mean_h=st.floats(0.5, 20), every_h=st.floats(0.1, 3))
@settings(max_examples=25, deadline=None)
def test_without_memory_no_fixed_interval_is_better(mean_h: float, every_h: float) -> None:
    lifetimes = SurvivalTable.of(Exponential(scale_s=mean_h * HOUR_S), until_s=24 * HOUR_S)
    schedule = solve(lifetimes, 4 * HOUR_S, COSTS)
    every_s = round(every_h * HOUR_S / schedule.quantum_s) * schedule.quantum_s or schedule.quantum_s
    assert schedule.seconds(4 * HOUR_S) <= fixed_interval_s(lifetimes, 4 * HOUR_S, every_s, COSTS) * 1.002


def test_without_memory_the_interval_is_about_that_of_young_and_daly() -> None:
    mean_s = 10 * HOUR_S
    lifetimes = SurvivalTable.of(Exponential(scale_s=mean_s), until_s=30 * HOUR_S)
    gaps = np.diff((0.0, *saves_s(solve(lifetimes, 12 * HOUR_S, COSTS), 12 * HOUR_S)))
    assert np.mean(gaps) == pytest.approx(young_daly_s(60.0, mean_s), rel=0.15)


def test_saves_are_frequent_on_a_new_machine_and_rare_on_an_older_one() -> None:
    new, proved = saves_s(DAY, 12 * HOUR_S, 0.0), saves_s(DAY, 12 * HOUR_S, 6 * HOUR_S)
    assert new[0] < 0.5 * proved[0]
    gaps = np.diff((0.0, *new))
    assert (np.diff(gaps) >= -DAY.quantum_s).all()


def test_it_saves_before_the_limit_and_releases_the_machine_there() -> None:
    saves = saves_s(DAY, 12 * HOUR_S, 20 * HOUR_S)
    at_the_wall_s = 20 * HOUR_S + saves[-1] + len(saves) * COSTS.save_s
    assert 23.5 * HOUR_S < at_the_wall_s <= 24 * HOUR_S
    assert DAY.next_save_s(6 * HOUR_S, 23.9 * HOUR_S) is None


def test_a_short_job_on_a_safe_machine_is_not_saved_at_all() -> None:
    assert saves_s(DAY, 0.5 * HOUR_S, 8 * HOUR_S) == ()


@given(work_h=st.floats(0.2, 12), age_h=st.floats(0, 24))
def test_saving_is_never_worse_than_starting_from_scratch(work_h: float, age_h: float) -> None:
    without = makespan_s(LIVES, work_h * HOUR_S, age_s=age_h * HOUR_S, restart_s=COSTS.restart_s)
    assert DAY.seconds(work_h * HOUR_S, age_h * HOUR_S) <= without + DAY.quantum_s


@given(save_s=st.floats(0, 900), restart_s=st.floats(0, 900), work_h=st.floats(0.1, 30))
@settings(max_examples=15, deadline=None)
def test_the_work_itself_is_a_lower_bound_of_the_time(save_s: float, restart_s: float, work_h: float) -> None:
    schedule = solve(LIVES, work_h * HOUR_S, Costs(save_s, restart_s))
    rows = np.arange(len(schedule.expected_s))[:, None] * schedule.quantum_s
    assert (schedule.expected_s >= rows - 1e-6).all()


def test_a_job_longer_than_any_lifetime_is_still_done() -> None:
    assert solve(LIVES, 60 * HOUR_S, COSTS).seconds(60 * HOUR_S) < 64 * HOUR_S


def test_nonsense_is_refused() -> None:
    with pytest.raises(SpecError, match="work_s"):
        solve(LIVES, 0.0, COSTS)
    with pytest.raises(SpecError, match="save_s"):
        Costs(save_s=-1.0)


def test_the_first_of_a_gang_of_different_ages_dies_as_the_first_of_many_simulated_ones() -> None:
    """S_gang(t) = prod S(t + older): by brute force, of machines that had reached their ages."""
    older_s, rng = (0.0, 5 * HOUR_S, 20 * HOUR_S), np.random.default_rng(3)
    gang = SurvivalTable.of_gang(YOUNG_DIE_FIRST, older_s, until_s=24 * HOUR_S, step_s=60.0)
    assert gang.end_s == pytest.approx(4 * HOUR_S)
    firsts = []
    while len(firsts) < 3000:
        lives = [life_s(rng) - older for older in older_s]
        if min(lives) > 0:
            firsts.append(min(lives))
    for hours in (0.5, 2.0, 3.5):
        assert float(gang.reaches(hours * HOUR_S)) == pytest.approx(
            np.mean(np.array(firsts) > hours * HOUR_S), abs=0.03
        )
    assert float(gang.reaches(4 * HOUR_S)) == 0.0
