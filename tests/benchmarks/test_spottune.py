"""The SpotTune benchmark on made-up prices and curves: everybody finishes, free is free, numbers add up."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks import datasets, spottune
from benchmarks.spottune_arena import Bout, Outcome, hold, play
from benchmarks.spottune_contestants import (
    CHEAPEST_SPOT,
    CONTESTANTS,
    DEFAULT,
    ORACLE,
    PLAIN,
    PROPOSED,
)
from benchmarks.spottune_market import ECUS, MARKETS, RUN_S, Market, provider, speed
from benchmarks.spottune_rows import SHORT, WHOLE, Scores, beside, details, promised
from benchmarks.spottune_workloads import METRIC, PARTS, Task, stretched
from benchmarks.workload_curves import Curves
from shoestring.market.catalog import catalog
from shoestring.market.prices import PriceBook
from shoestring.market.simulated import synthetic_prices as synthetic

MARKET = MARKETS["2016"]


@cache
def made_book() -> PriceBook:
    """Prices of the weeks that were recorded, made up."""
    listings = [
        catalog.listing(catalog.machine("aws", name), zone, spot=True)
        for name in MARKET.machines
        for zone in ("us-east-1a", "us-east-1b")
    ]
    begin = min(begin for begin, _ in datasets.weeks("2016", "choosing"))
    return synthetic.auction(listings, seed=3, start=begin, days=8 * 7 + 1)


def made_task() -> Task:
    """Eight trials of sixty steps, the fourth of them the best."""
    steps, level = np.arange(1, 61)[:, None], np.abs(np.arange(8) - 3.0)[None, :]
    return Task("made", level + 10.0 / steps, hours=np.full(8, 2.0), stages=((),) * 8)


TASK = made_task()


def bout(name: str, theta: float = SHORT, market: Market = MARKET, seed: int = 0) -> Bout:
    start = market.starts(made_book(), 4, choosing=False)[seed]
    return Bout(market, TASK.name, (CONTESTANTS | PROPOSED)[name], theta, start, seed)


def outcome(name: str, usd: float, market: str = "2016", theta: float = WHOLE, **said: object) -> Outcome:
    usual = {"hours": 2.0, "free": 0.5, "revocations": 1, "unfinished": False, "best_first": True, "best_kept": True}
    return Outcome(market=market, task="made", contestant=name, theta=theta, usd=usd, **(usual | said))


# -- studies -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CONTESTANTS | PROPOSED)
def test_every_contestant_finishes_and_keeps_the_best(name: str) -> None:
    came = play(bout(name), TASK, made_book())
    assert not came.unfinished
    assert came.best_first
    assert came.best_kept
    assert 0.0 <= came.free <= 1.0
    assert came.hours > 0.0


def test_training_all_to_the_end_costs_more() -> None:
    part, whole = (play(bout(CHEAPEST_SPOT, theta), TASK, made_book()) for theta in (SHORT, WHOLE))
    assert part.usd < whole.usd


def test_an_oracle_of_prices_pays_less_and_trains_on_refunded_hours_where_it_can() -> None:
    knows, plain = (play(bout(name), TASK, made_book()) for name in (ORACLE, PLAIN))
    assert knows.usd < plain.usd
    assert knows.free > plain.free


def test_who_bids_more_than_any_price_is_never_outbid_but_may_be_interrupted() -> None:
    calm, rough = MARKET, replace(MARKET, interruptions_per_hour=3.0)
    assert [play(bout(CHEAPEST_SPOT, seed=seed), TASK, made_book()).revocations for seed in range(4)] == [0] * 4
    assert calm.cheapest == "r3.large"
    assert play(bout(CHEAPEST_SPOT, market=rough), TASK, made_book()).revocations > 0


def test_a_machine_type_that_is_faster_trains_faster_but_not_in_proportion() -> None:
    assert max(MARKET.machines, key=speed) == MARKET.fastest == "m4.4xlarge"
    assert 1.0 < speed("m4.4xlarge") < ECUS["m4.4xlarge"] / ECUS["r3.large"]
    listings = provider(MARKET, made_book(), 0).listings
    seconds = {x.offer.machine: TASK.step_s({"trial": 0}, x, 1) for x in listings}
    assert seconds["m4.4xlarge"] < seconds["r3.large"]


def test_the_same_seed_is_the_same_study_in_one_process_or_two() -> None:
    todo = [bout(PLAIN, seed=seed) for seed in range(4)]
    once, again = (hold(todo, {"made": TASK}, {"2016": made_book()}, processes) for processes in (1, 2))
    assert once == again


def test_nothing_is_chosen_on_a_moment_that_is_reported() -> None:
    choosing, reporting = (MARKET.starts(made_book(), 9, choosing=choosing) for choosing in (True, False))
    assert min(abs(one - other) for one in choosing for other in reporting) >= RUN_S
    assert max(*choosing, *reporting) + RUN_S <= made_book().span()[1]
    assert len({*choosing, *reporting}) == 18


def test_a_stretched_curve_passes_through_what_was_recorded() -> None:
    recorded = np.array([[4.0, 8.0], [2.0, 6.0], [1.0, 5.0]])
    task = stretched(Curves("made", "loss", [{}, {}], recorded, np.ones((3, 2)), [(), (2,)]))
    assert task.values[PARTS - 1 :: PARTS].tolist() == recorded.tolist()
    assert task.best == 0
    assert task.stages == ((), (2 * PARTS,))
    reported = task.workload().curve({"trial": 1})
    assert reported(2 * PARTS) == {METRIC: 6.0, "stage": 0.0}
    assert reported(2 * PARTS + 1)["stage"] == 1.0


# -- numbers -----------------------------------------------------------------------------------------------------------
def everybody(usd: float = 2.0, **dearer: float) -> list[Outcome]:
    return [
        outcome(name, dearer.get(name, usd) * theta, market, theta)
        for market in MARKETS
        for name in CONTESTANTS
        for theta in (SHORT, WHOLE)
    ]


def test_every_promise_has_its_row() -> None:
    outcomes = everybody(usd=2.0, spottune=1.5, cheapest_on_demand=5.0, fastest_on_demand=3.0)
    rows = {row.name: row for row in promised(Scores(outcomes), MARKETS.values())}
    assert rows["default_cost_vs_cheapest_2016"].value == pytest.approx(0.75)
    assert rows["default_cost_vs_ondemand_2025"].value == pytest.approx(0.5)
    assert rows["theta07_vs_theta10"].value == pytest.approx(0.7)
    assert rows["oracle_free_steps"].value == pytest.approx(0.5)
    assert rows["default_never_worse_than_plain"].value == pytest.approx(0.75)
    assert rows["default_cost_vs_by_level"].value == pytest.approx(0.75)
    assert {f"usd_2025_{name}_1.0" for name in CONTESTANTS} <= {row.name for row in details(Scores(outcomes))}
    others = {row.name: row.value for row in beside(Scores(outcomes), outcomes, MARKETS.values())}
    assert others["as_printed_cost_vs_cheapest_2016_at_0.7"] == pytest.approx(0.7)
    assert others["unfinished_studies"] == 0


def test_the_worst_market_is_the_one_that_counts() -> None:
    outcomes = [run for run in everybody() if (run.market, run.contestant) != ("2025_rough", DEFAULT)]
    outcomes += [outcome(DEFAULT, 3.0 * theta, "2025_rough", theta) for theta in (SHORT, WHOLE)]
    worst = next(
        row for row in promised(Scores(outcomes), MARKETS.values()) if row.name == "default_never_worse_than_plain"
    )
    assert worst.value == pytest.approx(1.5)
    assert "worst in 2025_rough" in worst.against


def test_the_rate_of_performance_and_cost_is_that_of_the_default_at_theta_07() -> None:
    scores = Scores([outcome(DEFAULT, 1.0, theta=SHORT), outcome(PLAIN, 2.0, hours=4.0), outcome(ORACLE, 0.0)])
    assert scores.pcr("2016", DEFAULT, SHORT) == 1.0
    assert scores.pcr("2016", PLAIN, WHOLE) == pytest.approx(0.25)
    assert scores.pcr("2016", ORACLE, WHOLE) == float("inf")


# -- the command line --------------------------------------------------------------------------------------------------
def test_the_figures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks.spottune_plot import draw

    draw(Scores(everybody()), tmp_path / "figures.png")
    assert (tmp_path / "figures.png").read_bytes().startswith(b"\x89PNG")


def test_without_prices_the_benchmark_is_skipped_and_says_so(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["spottune", "--quick"])
    monkeypatch.setenv("SHOESTRING_DATA", str(tmp_path / "nowhere"))
    spottune.main()
    assert "set SHOESTRING_DATA" in capsys.readouterr().out
