"""Recorded curves as tasks: how good a value is, and which recorded configuration a trial replays."""

import math

import numpy as np
import pytest

from benchmarks import tables
from benchmarks.curve_task import MEDIAN_STEP_S, CurveTask
from benchmarks.tables import CHOOSING, reporting
from shoestring.errors import DataError
from shoestring.market.catalog import catalog
from shoestring.space.space import Float, Space

LISTING = catalog.free_listing(slots=4)


def small_task(direction: str = "minimize") -> CurveTask:
    """Five configurations on a line, the one at 0.5 the best; the last one diverges at its second step."""
    x = np.linspace(0.0, 1.0, 5)
    loss = (x[:, None] - 0.5) ** 2 + 1.0 / np.arange(1, 9)
    values = loss if direction == "minimize" else 2.0 - loss
    values[-1, 1:] = np.nan
    return CurveTask(
        "made/line", "score", direction, Space(params={"x": Float(0.0, 1.0)}), x[:, None], values, np.full(5, 60.0)
    )


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_regret_is_0_at_the_best_of_the_table_and_1_at_the_reference_or_worse(direction):
    task = small_task(direction)
    worse = task.reference + (task.reference - task.best)
    assert task.regret(task.best) == 0.0
    assert task.regret((task.best + task.reference) / 2) == pytest.approx(0.5)
    assert task.regret(task.reference) == task.regret(worse) == task.regret(math.nan) == 1.0


def test_a_configuration_that_diverged_ranks_behind_all_others():
    assert small_task("maximize").reference == pytest.approx(2.0 - (0.25**2 + 1 / 8))


def test_a_trial_replays_the_recorded_configuration_nearest_to_it():
    task = small_task()
    workload = task.workload()
    curve = workload.curve({"x": 0.3})
    assert [curve(step) for step in (1, 8)] == [{"score": task.curves[1, 0]}, {"score": task.curves[1, 7]}]
    assert math.isnan(workload.curve({"x": 0.95})(2)["score"])


def test_two_trials_replay_the_same_configuration_only_once_all_have_been_replayed():
    task = small_task()
    workload = task.workload()
    firsts = [workload.curve({"x": 0.5 + shift})(1)["score"] for shift in (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)]
    assert sorted(firsts[:5]) == sorted(task.curves[:, 0])
    assert firsts[0] == firsts[5] == workload.curve({"x": 0.5})(1)["score"]


def test_slots_make_a_step_faster_but_less_than_in_proportion():
    pace = small_task().workload().seconds_per_step
    assert pace({"x": 0.3}, LISTING, 1) == 60.0
    assert pace({"x": 0.3}, LISTING, 4) == pytest.approx(60.0 / 4**0.7)


@pytest.fixture(scope="module")
def recorded():
    try:
        return tables.load(CHOOSING + reporting())
    except DataError as error:
        pytest.skip(f"needs the recorded curves: {error} ({error.hint})")


def test_every_recorded_task_is_complete(recorded):
    for task in recorded.values():
        configurations = len(task.points)
        assert task.points.shape == (configurations, task.space.dimensions), task.name
        assert len(task.curves) == len(task.step_s) == configurations, task.name
        assert ((task.points >= 0.0) & (task.points <= 1.0)).all(), task.name
        assert np.median(task.step_s) == pytest.approx(MEDIAN_STEP_S), task.name
        assert (task.regret(task.best), task.regret(task.reference)) == (0.0, 1.0), task.name


def test_no_curve_begins_before_training(recorded):
    """The order of untrained networks is chance; that of networks after a step foretells the end to some degree."""
    foretold: dict[str, list[float]] = {}
    for task in recorded.values():
        ranks = [np.argsort(np.argsort(task.curves[:, column])) for column in (0, -1)]
        foretold.setdefault(task.name.partition("/")[0], []).append(float(np.corrcoef(*ranks)[0, 1]))
    assert {family: np.mean(found) > 0.4 for family, found in foretold.items()} == dict.fromkeys(foretold, True)


def test_nothing_is_chosen_on_a_task_that_is_reported():
    assert not set(CHOOSING) & set(reporting())
    assert len(CHOOSING) == 4
    assert len(reporting()) == 11


def test_between_recorded_epochs_a_curve_stays_where_it_was(recorded):
    curves = recorded["mnist/grid"].curves
    assert curves.shape == (256, 16)
    assert (curves[:, [2, 14]] == curves[:, [1, 7]]).all()


def test_a_task_that_does_not_exist_is_named():
    with pytest.raises(DataError, match="no task made/up"):
        tables.load(("made/up",))


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOESTRING_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"lc_hyperjump\*_grid\.parquet is missing"):
        tables.load(("mnist/grid",))
