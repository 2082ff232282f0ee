"""The TrimTuner benchmark: tables as the paper counts them, money as the cloud would, curves as the eye reads them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import recommend, trimtuner
from benchmarks.trimtuner_contestants import Ours
from benchmarks.trimtuner_peers import OptunaSearch, RandomSearch
from benchmarks.trimtuner_play import (
    Ask,
    Curve,
    Evaluation,
    accuracy_c,
    evaluate,
    mean_curve,
    play,
    spent_until,
    strict,
)
from benchmarks.trimtuner_plot import draw
from benchmarks.trimtuner_rows import PROMISES, Results, details, per_table, promised, show
from benchmarks.trimtuner_tables import Table, load
from shoestring.errors import DataError
from shoestring.space.space import Float, Space

METHODS = ("trimtuner", "eic", "eic_usd", "eic_usd_2")


def made_table(family: str = "made") -> Table:
    """Ten candidates, 0.1 to 1.0 accurate, each as many dollars dear; so the best within the limit is 0.6."""
    x = np.linspace(0.1, 1.0, 10)
    fractions = (0.1, 1.0)
    return Table(
        name="made",
        family=family,
        space=Space(params={"x": Float(0.0, 1.0)}),
        configs=[{"x": float(value)} for value in x],
        fractions=fractions,
        metric="accuracy",
        direction="maximize",
        objective=np.outer(x, [0.5, 1.0]),
        seconds=np.outer(1000 * x, fractions),
        usd_per_hour=np.full(10, 3.6),
        limit_usd=0.65,
    )


class Scripted:
    """Runs and recommends what it was told to, in order."""

    def __init__(self, runs: Sequence[tuple[int, int]], picks: Sequence[int | None]) -> None:
        self.runs, self.picks = (Ask(*run) for run in runs), iter(picks)
        self.told: list[Evaluation] = []

    def ask(self) -> Ask | None:
        return next(self.runs, None)

    def tell(self, candidate: int, fraction: int, seen: Evaluation) -> None:  # noqa: ARG002 - the script knows
        self.told.append(seen)

    def best(self) -> int | None:
        return next(self.picks)


@pytest.mark.parametrize(("network", "feasible", "near"), [("rnn", 178, 28), ("cnn", 111, 39)])
def test_the_papers_table_2_comes_out_of_the_data(network: str, feasible: int, near: int) -> None:
    try:
        tables = {table.name: table for table in load(["trimtuner"])}
    except DataError as missing:
        pytest.skip(str(missing))
    assert len(tables[network].configs) == 288
    assert int(tables[network].feasible.sum()) == feasible
    assert tables[network].near_the_best(0.95) == near


def test_every_table_has_different_candidates_and_a_feasible_optimum() -> None:
    try:
        tables = load()
    except DataError as missing:
        pytest.skip(str(missing))
    for table in tables:
        assert len({tuple(config.values()) for config in table.configs}) == len(table.configs), table.name
        assert table.fractions == tuple(sorted(table.fractions))
        assert table.fractions[-1] == 1.0
        assert table.objective.shape == table.seconds.shape == (len(table.configs), len(table.fractions))
        assert 0 < table.optimum
        assert 0 < table.feasible.sum() < len(table.configs)


def test_the_optimum_is_the_best_that_keeps_the_limit() -> None:
    table = made_table()
    assert table.feasible.tolist() == [True] * 6 + [False] * 4
    assert table.optimum == pytest.approx(0.6)
    assert table.limited(0.5).optimum == pytest.approx(0.3)


def test_strictly_an_infeasible_pick_is_worth_nothing_and_by_the_paper_it_can_beat_the_optimum() -> None:
    table = made_table()
    assert strict(table, 5) == accuracy_c(table, 5) == pytest.approx(1.0)
    assert strict(table, 2) == pytest.approx(0.5)
    assert strict(table, 6) == 0.0
    assert accuracy_c(table, 6) == pytest.approx(0.65 / 0.6)
    assert strict(table, None) == accuracy_c(table, None) == 0.0


def test_less_loss_is_more_quality() -> None:
    table = made_table()
    losses = replace(table, direction="minimize", objective=1 / table.objective)
    assert losses.optimum == pytest.approx(0.6)
    assert strict(losses, 2) == pytest.approx(0.5)


def test_a_run_is_killed_at_the_limit_and_charged_the_limit() -> None:
    table = made_table()
    killed = evaluate(table, Ask(9, 1))
    assert killed.killed
    assert killed.usd == 0.65
    assert killed.seconds == pytest.approx(650.0)
    assert math.isnan(killed.objective)
    small = evaluate(table, Ask(9, 0))
    assert small == Evaluation(objective=0.5, seconds=pytest.approx(100.0), usd=pytest.approx(0.1), killed=False)


def test_a_run_is_killed_sooner_if_requested() -> None:
    table = made_table()
    killed = evaluate(table, Ask(9, 0, most_usd=0.05))
    assert killed.killed
    assert killed.usd == 0.05
    assert killed.seconds == pytest.approx(50.0)
    assert not evaluate(table, Ask(3, 0, most_usd=0.05)).killed
    assert evaluate(table, Ask(9, 1, most_usd=9.0)).usd == 0.65


def test_a_run_that_never_ended_is_killed_too() -> None:
    table = made_table()
    seconds = table.seconds.copy()
    seconds[0, 1] = np.inf
    endless = replace(table, seconds=seconds)
    assert evaluate(endless, Ask(0, 1)).usd == 0.65
    assert not endless.feasible[0]
    assert accuracy_c(endless, 0) == 0.0


def test_every_evaluation_is_paid_for_and_its_pick_scored() -> None:
    player = Scripted(runs=[(9, 1), (3, 0), (2, 1)], picks=[None, 3, 2])
    curve = play(made_table(), player, budget_usd=10.0, max_evaluations=10)
    assert curve.usd == pytest.approx([0.65, 0.69, 0.99])
    assert curve.seconds == pytest.approx([650.0, 690.0, 990.0])
    assert curve.strict == pytest.approx([0.0, 4 / 6, 0.5])
    assert [seen.killed for seen in player.told] == [True, False, False]


def test_a_run_ends_when_its_budget_is_spent_or_after_so_many_evaluations() -> None:
    def length(budget_usd: float, evaluations: int) -> int:
        player = Scripted(runs=[(9, 1)] * 10, picks=[0] * 10)
        return len(play(made_table(), player, budget_usd, evaluations).usd)

    assert length(1.4, 10) == 3  # 0.65 and 1.3 leave something, the third exceeds it
    assert length(100.0, 4) == 4


def test_recommending_what_was_seen_to_break_the_limit_is_counted() -> None:
    player = Scripted(runs=[(8, 0), (9, 1), (1, 1)], picks=[9, 9, 1])
    assert play(made_table(), player, 10.0, 10).measured_infeasible == 1


def test_the_mean_holds_the_last_value_and_counts_nothing_before_the_first() -> None:
    early = (np.array([1.0, 2.0]), np.array([0.4, 1.0]))
    late = (np.array([3.0]), np.array([0.8]))
    spent, worth = mean_curve([early, late])
    assert spent.tolist() == [1.0, 2.0, 3.0]
    assert worth == pytest.approx([0.2, 0.5, 0.9])


def test_a_level_counts_from_where_the_mean_stays_above_it() -> None:
    fell_back = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.95, 0.5, 0.95, 0.97]))
    assert spent_until([fell_back], 0.9) == 3.0
    assert spent_until([fell_back], 0.4) == 1.0
    assert spent_until([fell_back], 0.99) == math.inf


def test_random_search_tries_each_candidate_once_and_recommends_the_best_feasible() -> None:
    table = made_table()
    player = RandomSearch(table, seed=0)
    curve = play(table, player, budget_usd=100.0, max_evaluations=100)
    assert len(curve.usd) == 10
    assert player.best() == 5
    assert curve.strict[-1] == pytest.approx(1.0)


def test_optuna_sees_the_candidates_it_really_ran() -> None:
    pytest.importorskip("optuna")
    table = made_table()
    player = OptunaSearch(table, 0, "tpe")
    play(table, player, budget_usd=100.0, max_evaluations=7)
    told = [trial.params["x"] for trial in player.study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
    assert sorted(told) == sorted(table.configs[candidate]["x"] for candidate in player.seen)
    assert len(set(told)) == 7


@pytest.mark.parametrize("method", METHODS)
def test_our_optimiser_finds_the_best_of_a_small_table_and_knows_when_all_was_tried(method: str) -> None:
    table = made_table()
    curve = play(table, Ours(table, 0, method), budget_usd=100.0, max_evaluations=60)
    assert curve.strict[-1] == pytest.approx(1.0)
    assert curve.measured_infeasible == 0


def flat(usd: float, worth: float) -> Curve:
    """A run of one evaluation."""
    return Curve(np.array([usd]), np.array([usd]), np.array([worth]), np.array([worth]), 0)


def made_results(default: Curve, others: Curve) -> Results:
    curves = {("made", method): [default if method == "trimtuner" else others] for method in METHODS}
    return Results([made_table("trimtuner")], curves)


def test_a_row_says_how_many_times_as_much_the_other_spends() -> None:
    rows = {row.name: row for row in promised(made_results(flat(0.5, 0.95), flat(2.0, 1.0)))}
    assert rows["trimtuner_cost90_eic_over_default"].value == 4.0
    assert rows["final_value"].value == 0.95
    assert rows["recommended_measured_infeasible"].value == 0


def test_who_never_gets_there_is_not_flattered() -> None:
    never = {row.name: row for row in promised(made_results(flat(0.5, 0.8), flat(2.0, 1.0)))}
    assert never["trimtuner_cost90_eic_over_default"].value == 0.0
    other = {row.name: row for row in promised(made_results(flat(0.5, 1.0), flat(2.0, 0.8)))}
    assert other["trimtuner_cost90_eic_over_default"].value == 4.0
    assert "at least" in other["trimtuner_cost90_eic_over_default"].against


def test_every_promise_has_its_row_and_every_method_its_details(capsys: pytest.CaptureFixture[str]) -> None:
    families = ("trimtuner", "mnist", "lcdb", "nlp", "limits")
    tables = [replace(made_table(family), name=family) for family in families]
    curves = {(table.name, method): [flat(1.0, 1.0)] for table in tables for method in METHODS}
    results = Results(tables, curves)
    assert [row.name for row in promised(results)][: len(PROMISES)] == [name for name, *_ in PROMISES]
    assert {"lcdb:eic:strict:cost90", "lcdb:eic:accuracy_c:time99"} <= {row.name for row in details(results)}
    assert any(row.name == "worst_cost90_eicusd2_over_default:nlp" for row in per_table(results))
    show(results)
    assert "lcdb" in capsys.readouterr().out


def test_the_picture_has_a_panel_for_each_table_and_two_of_savings(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(made_results(flat(0.5, 0.95), flat(2.0, 1.0)), tmp_path / "made.svg")
    drawn = (tmp_path / "made.svg").read_text()
    assert drawn.count('id="axes_') == 3


@pytest.mark.parametrize("method", METHODS)
def test_recommendations_are_timed_on_as_many_different_candidates_as_said(method: str) -> None:
    configs = recommend.configurations(100)
    assert len({tuple(config.values()) for config in configs}) == 100
    warm_ms, cold_ms = recommend.median_ms(recommend.ours(method, configs, observations=6), asks=2)
    assert warm_ms > 0
    assert cold_ms > 0


def test_without_data_the_benchmark_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHOESTRING_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["trimtuner", "--quick"])
    trimtuner.main()
    assert "skipped" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
