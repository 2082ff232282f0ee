"""The elastic benchmark on made-up curves: runs stay within their limits, baselines are fed, numbers add up."""

import sys
from array import array
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import seer
from benchmarks.curve_task import CurveTask
from benchmarks.seer_arena import Outcome, Setting, play
from benchmarks.seer_contestants import CONTESTANTS, DEFAULT
from benchmarks.seer_field import entries, hold
from benchmarks.seer_market import CELLS, MACHINE_SLOTS, Cell
from benchmarks.seer_plot import allocation, draw
from benchmarks.seer_rows import details, promised, starving
from benchmarks.seer_scores import Scores
from shoestring.space.space import Float, Space

SMALL = Cell(15, 60)
ELASTIC = [name for name, contestant in CONTESTANTS.items() if not contestant.fixed]
FIXED = [name for name, contestant in CONTESTANTS.items() if contestant.fixed]


def made_task(name: str = "made/bowl", seed: int = 0) -> CurveTask:
    """A bowl in two dimensions: 300 configurations, 50 steps, some faster than others."""
    rng = np.random.default_rng(seed)
    points = rng.random((300, 2))
    level = ((points - 0.4) ** 2).sum(axis=1)
    curves = level[:, None] + 1.0 / np.arange(1, 51)
    pace = rng.lognormal(0.0, 0.4, size=300)
    space = Space(params={"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    return CurveTask(name, "loss", "minimize", space, points, curves, 60.0 * pace / np.median(pace))


def outcome(contestant: str, regret: float, task: str = "a/1", cell: Cell = SMALL, seed: int = 0, **said) -> Outcome:
    usual = {
        "spent_share": 0.9,
        "overran": False,
        "busy": 0.9,
        "modelled": 0.5,
        "trials": 9,
        "events": 99,
        "cpu_s": 0.1,
        "speedup_error": 0.05,
    }
    told = usual | {"turns_ms": array("f", [1.0, 2.0])} | said
    return Outcome(task=task, cell=cell, contestant=contestant, seed=seed, regret=regret, **told)


# -- runs ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("cell", [SMALL, Cell(30, 240)], ids=str)
def test_a_fixed_cluster_is_busy_and_keeps_to_budget_and_deadline(name, cell):
    contestant = CONTESTANTS[name]
    came, state, _ = play(made_task(), cell, name, contestant.setting(cell), 0)
    assert not came.overran
    assert state.spent_usd <= cell.budget_usd
    assert starving([came]) == []
    assert came.modelled > 0.15 if contestant.from_model else came.modelled == 0.0
    assert came.events == state.seq
    assert len(came.turns_ms) > 0


@pytest.mark.parametrize("name", ELASTIC)
@pytest.mark.parametrize("cell", [Cell(15, 240), Cell(60, 960)], ids=str)
def test_a_contestant_that_changes_widths_is_busy_and_stays_within_budget_and_deadline(name, cell):
    came, state, _ = play(made_task(), cell, name, CONTESTANTS[name].setting(cell), 0)
    assert not came.overran
    assert state.spent_usd <= cell.budget_usd
    assert starving([came]) == []


def test_the_speedup_of_a_machine_is_learned_from_trials_that_were_widened():
    cell = Cell(15, 240)
    wide, state, _ = play(made_task(), cell, "seer", CONTESTANTS["seer"].setting(cell), 0)
    narrow, _, _ = play(made_task(), cell, "asha", CONTESTANTS["asha"].setting(cell), 0)
    assert any(slots > 1 for job in state.jobs.values() for _, slots in job.paces)
    assert wide.speedup_error < narrow.speedup_error


def test_on_spot_machines_the_same_dollars_buy_more_and_some_are_preempted():
    cell = Cell(30, 480)
    kept, _, _ = play(made_task(), cell, "asha", Setting("asha", machines=4), 0)
    came, state, _ = play(made_task(), cell, "asha", Setting("asha", machines=12), 0, spot=True)
    assert not came.overran
    assert came.trials > 1.5 * kept.trials
    assert state.revocations > 0


def test_the_same_seed_is_the_same_run_and_another_seed_another():
    task, setting = made_task(), CONTESTANTS["asha"].setting(SMALL)
    _, _, once = play(task, SMALL, "asha", setting, 1)
    _, _, again = play(task, SMALL, "asha", setting, 1)
    _, _, other = play(task, SMALL, "asha", setting, 2)
    assert once.dump() == again.dump() != other.dump()


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_fixed_cluster_is_the_largest_that_can_be_paid_to_the_end(cell):
    minutes = cell.trained_minutes * MACHINE_SLOTS
    assert cell.fixed_machines * minutes <= cell.slot_minutes < (cell.fixed_machines + 1) * minutes


def test_runs_in_several_processes_come_to_the_same_as_in_one():
    tasks = {"made/bowl": made_task()}
    todo = entries(list(tasks), [SMALL], {"asha": {SMALL: Setting("asha", machines=1)}}, seeds=3)
    regrets = [[(run.seed, run.regret) for run in hold(todo, tasks, processes)] for processes in (1, 2)]
    assert sorted(regrets[0]) == sorted(regrets[1])


# -- numbers -------------------------------------------------------------------------------------------------------
def test_a_ratio_of_regrets_is_one_of_means_and_lies_in_its_interval():
    regrets = {"a/1": (0.1, 0.2), "a/2": (0.3, 0.4), "b/1": (0.2, 0.6)}
    runs = [
        outcome(name, regret, task=task)
        for task, pair in regrets.items()
        for name, regret in zip(("asha", "random"), pair, strict=True)
    ]
    scores = Scores(runs)
    ratio = scores.ratio("asha", "random")
    assert ratio.value == pytest.approx(0.6 / 1.2)
    assert 1 / 3 <= ratio.low < ratio.value < ratio.high <= 3 / 4
    assert scores.families == ("a", "b")
    assert scores.of_family("asha", "a") == pytest.approx(0.2)
    assert scores.win_rate("asha", "random", SMALL) == 1.0


def test_the_worst_cell_is_found():
    cells = {SMALL: (0.4, 0.5), Cell(30, 240): (0.3, 0.2)}
    runs = [outcome(DEFAULT, mine, cell=cell) for cell, (mine, _) in cells.items()]
    runs += [outcome("asha_tpe", theirs, cell=cell) for cell, (_, theirs) in cells.items()]
    assert Scores(runs).worst_cell(DEFAULT, "asha_tpe") == (pytest.approx(1.5), Cell(30, 240))


def test_every_promise_has_its_row():
    names = (DEFAULT, "seer", "seer_as_printed", "hypersched", "asha_tpe")
    runs = [outcome(name, 0.2 + place / 10) for place, name in enumerate(names)]
    rows = {row.name: row for row in promised(Scores(runs), runs)}
    assert {
        "regret_ratio_default_vs_seer",
        "regret_ratio_default_vs_hypersched",
        "regret_ratio_default_vs_asha_tpe",
        "worst_cell_vs_asha_tpe",
        "regret_ratio_corrected_vs_printed",
        "decision_p95_ms",
        "lambda_error",
        "win_rate_default_vs_best_baseline_per_cell",
        "overruns",
    } <= rows.keys()
    assert rows["regret_ratio_default_vs_seer"].value == pytest.approx(0.2 / 0.3)
    assert rows["win_rate_default_vs_best_baseline_per_cell"].value == 1.0
    assert rows["overruns"].value == 0
    assert {f"regret_{name}" for name in names} <= {row.name for row in details(Scores(runs), runs)}


def test_an_overrun_is_counted():
    runs = [outcome("asha", 0.5), outcome("asha", 0.5, seed=1, overran=True)]
    assert [row.value for row in promised(Scores(runs), runs) if row.name == "overruns"] == [1]


def test_a_baseline_that_starves_is_named():
    runs = [outcome("asha_tpe", 0.5, modelled=0.0), outcome("random", 0.5, busy=0.7), outcome("asha", 0.5)]
    runs += [outcome("elastic_successive_halving", 0.5, spent_share=0.64), outcome("elastic_hyperband", 0.5, busy=0.64)]
    assert starving(runs) == [
        "asha_tpe in 15:60: 0% of the trials drawn from the model",
        "random in 15:60: machines busy 70% of their time",
        "elastic_successive_halving in 15:60: 64% of the budget spent",
        "elastic_hyperband in 15:60: machines busy 64% of their time",
    ]


@pytest.mark.parametrize("name", CONTESTANTS)
def test_no_contestant_may_leave_half_of_the_machines_idle_or_half_of_the_money_unspent(name):
    halves = [outcome(name, 0.5, busy=0.55), outcome(name, 0.5, spent_share=0.55)]
    assert [len(starving([half])) for half in halves] == [1, 1]


# -- the picture -----------------------------------------------------------------------------------------------------
def test_slots_drawn_are_the_slots_rented_and_never_more():
    cell = Cell(15, 240)
    drawn = allocation(made_task(), cell, "asha", CONTESTANTS["asha"].setting(cell), 0)
    most = max(slots for _, slots in drawn.held)
    assert most == cell.fixed_machines * MACHINE_SLOTS
    for moment in np.linspace(0.0, cell.minutes * 60.0, 50):
        assert sum(band.slots for band in drawn.stretches if band.began_s <= moment < band.ended_s) <= most
    picture = ElementTree.fromstring(draw([drawn, drawn], cell, "made up <curves>"))
    assert picture.tag.endswith("svg")


# -- the command line ------------------------------------------------------------------------------------------------
def test_without_the_tables_the_benchmark_is_skipped_and_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["seer", "--quick"])
    monkeypatch.setenv("SHOESTRING_DATA", str(tmp_path / "nowhere"))
    seer.main()
    assert "set SHOESTRING_DATA" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--recipes", "ash"], "nobody of that name competes"),
        (["--cells", "15-60"], "minutes:slot-minutes"),
        (["--cells", "15:60:90"], "minutes:slot-minutes"),
    ],
)
def test_an_impossible_request_is_refused_with_a_reason(monkeypatch, tmp_path, words, said):
    monkeypatch.setattr(sys, "argv", ["seer", *words])
    monkeypatch.setenv("SHOESTRING_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=said):
        seer.main()
