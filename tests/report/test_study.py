"""A study: trials, best, why, log, pages; all of it from the journal alone."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import shoestring as ss
from shoestring.errors import SpecError
from shoestring.kernel.spec import amended
from shoestring.runs.amend import amendment, check_same
from shoestring.runs.folder import find_run, known_runs, run_folder, set_aside
from shoestring.runs.progress_line import line_of
from shoestring.runs.sim_workload import guessed, recorded


def study_of(**changes: object) -> ss.Study:
    fields: dict[str, object] = {
        "space": {"lr": ss.uniform(0, 1), "kind": ss.choice("a", "<i>")},
        "minimize": "loss",
        "trials": 12,
        "max_steps": 9,
        "budget": "$5",
        "deadline": "12h",
        "market": {"kind": "modern", "interruptions_per_hour": 2.0},
        "name": "told",
    }
    workload = ss.Workload(
        curve=lambda config: lambda step: {"loss": 1 / step + abs(config["lr"] - 0.3)},
        seconds_per_step=ss.SublinearSpeed(900.0),
    )
    return ss.simulate(workload=workload, **(fields | changes))


@pytest.fixture(scope="module")
def study() -> ss.Study:
    return study_of()


def test_the_best_trial_is_the_best_of_the_table(study: ss.Study) -> None:
    values = [row.value for row in study.trials if not math.isnan(row.value)]
    assert study.best is not None
    assert study.best.value == min(values)
    assert str(study.best).startswith(f"Trial {study.best.number}: loss ")
    assert "spot in us-east-1" in str(study.best)


def test_the_costs_of_trials_sum_to_what_was_spent(study: ss.Study) -> None:
    assert study.state.revocations > 0
    assert math.fsum(row.cost_usd for row in study.trials) == pytest.approx(study.spent, abs=0.02)
    assert study.receipt.charged.usd == pytest.approx(study.spent, abs=0.005)


def test_why_is_in_order_and_names_preemptions(study: ss.Study) -> None:
    revoked = max(study.trials, key=lambda row: row.revocations)
    story = study.why(revoked.number)
    assert [line.since_start_s for line in story] == sorted(line.since_start_s for line in story)
    text = str(story)
    assert "  added: " in text.splitlines()[0]
    assert "notice: " in text
    assert "saved on notice at step " in text or "lost its machine" in text


def test_the_log_includes_machines_and_the_end(study: ss.Study) -> None:
    text = str(study.log())
    for words in (
        "study told started",
        "requested ",
        " is up, ",
        "preempted",
        "winding down: ",
        "over, best is trial ",
    ):
        assert words in text


def test_an_unknown_trial(study: ss.Study) -> None:
    with pytest.raises(SpecError, match="99"):
        study.why(99)


def test_notebooks_get_tables_with_escaped_user_text(study: ss.Study) -> None:
    page = study._repr_html_()
    assert page.count("<table>") == 2
    assert "<i>" not in page
    assert "&lt;i&gt;" in page


def test_trials_become_a_data_frame(study: ss.Study) -> None:
    pandas = pytest.importorskip("pandas")
    frame = study.trials.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["trial"]) == list(range(12))
    assert "config.lr" in frame
    assert len(study.trials[2:4]) == 2
    assert "told" not in repr(study.trials)


def test_the_live_line_has_progress_cost_time_and_preemptions(study: ss.Study) -> None:
    line = line_of(study.state)
    assert line.startswith("12/12 · best ")
    assert " of $5.00 · " in line
    assert " of 12h · " in line
    assert f"{study.state.revocations} preemptions, {study.state.lost_steps} steps lost" in line


def test_a_run_without_any_result_has_no_best() -> None:
    study = study_of(minimize="nothing_reported")
    assert study.best is None
    assert "no result yet" in repr(study)
    assert "no result yet" in study._repr_html_()


# -- the same again ----------------------------------------------------------------------------------------------------
def test_budget_and_deadline_may_change_nothing_else(study: ss.Study) -> None:
    check_same(study.spec, amended(study.spec, budget_usd=50.0, deadline_s=99_999.0))
    with pytest.raises(SpecError, match=r"trials \(was 12, now 13\)"):
        check_same(study.spec, study_of(trials=13).spec)


def test_a_budget_below_what_is_spent_is_refused_and_a_larger_one_amends_the_run(study: ss.Study) -> None:
    now = study.state.now
    more = amendment(study.state, amended(study.spec, budget_usd=9.0, deadline_s=None), now)
    assert [(wish.wish, wish.budget_usd) for wish in more] == [("amend", 9.0)]
    assert amendment(study.state, study.spec, now) == []
    with pytest.raises(SpecError, match="is less than what is spent"):
        amendment(study.state, amended(study.spec, budget_usd=study.spent / 2, deadline_s=None), now)
    with pytest.raises(SpecError, match="has passed"):
        amendment(study.state, amended(study.spec, budget_usd=None, deadline_s=60.0), now)


# -- folders -----------------------------------------------------------------------------------------------------------
def test_runs_are_found_by_name_by_path_and_by_latest_activity(tmp_path: Path) -> None:
    for name in ("one", "two"):
        study_of(store=tmp_path, name=name)
    assert {run.name for run in known_runs(tmp_path)} == {"one-simulated", "two-simulated"}
    assert find_run(None, tmp_path).name == "two-simulated"
    assert find_run(tmp_path / "one-simulated").name == "one-simulated"
    with pytest.raises(SpecError, match="nobody"):
        find_run("nobody", tmp_path)
    with pytest.raises(SpecError, match="name of a folder"):
        run_folder("../up", tmp_path)


def test_setting_aside_never_overwrites(tmp_path: Path) -> None:
    for expected in ("told-simulated.old-1", "told-simulated.old-2"):
        study_of(store=tmp_path)
        assert set_aside(run_folder("told-simulated", tmp_path)).name == expected


# -- workloads ---------------------------------------------------------------------------------------------------------
def test_a_recorded_run_can_be_simulated_again(study: ss.Study) -> None:
    workload = recorded(study, study.spec)
    row = next(row for row in study.trials if row.step == 9)
    assert workload.curve(row.config)(9)["loss"] == pytest.approx(1 / 9 + abs(row.config["lr"] - 0.3))
    pace = workload.seconds_per_step(row.config, study.spec.listings[0], 1)
    assert pace > 0
    with pytest.raises(SpecError, match="another space"):
        recorded(study, study_of(space={"lr": ss.uniform(0, 2)}).spec)


def test_guessed_curves_improve_in_the_requested_direction(study: ss.Study) -> None:
    down = guessed(study.spec).curve({"lr": 0.5, "kind": "a"})
    assert down(1)["loss"] > down(9)["loss"]
    up = guessed(study_of(minimize=None, maximize="score").spec).curve({"lr": 0.5, "kind": "a"})
    assert up(1)["score"] < up(9)["score"]
