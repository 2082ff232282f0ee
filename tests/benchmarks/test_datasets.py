"""Choosing and reporting are apart: in one file, in every reader, and on data that is not in the repository."""

from __future__ import annotations

import os
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import datasets, earlycurve_groups, lifetimes, revpred, seer, spottune_market, tables, tpe
from benchmarks.placement_traces import recordings
from shoestring.errors import DataError
from shoestring.market.catalog import catalog
from shoestring.market.simulated import synthetic_prices as synthetic

BENCHMARKS = Path(datasets.__file__).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Held-out data: a table of curves and prices of a month of the auction years."""
    monkeypatch.setenv(datasets.HELD_OUT, str(tmp_path))
    rng = np.random.default_rng(0)
    rows = [
        {"config_id": config, "step": step, "maximize accuracy": 0.9 - (lr - 0.1) ** 2 - 0.5 / step, "seconds": 9.0}
        | {"lr": lr, "layers": config % 4 + 1, "kind": "ab"[config % 2]}
        for config, lr in enumerate(10.0 ** rng.uniform(-4, 0, 40))
        for step in range(1, 13)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "own_net.csv", index=False)
    return tmp_path


def write_prices(folder: Path, days: float = 9.0) -> None:
    listings = [
        catalog.listing(catalog.machine("aws", name), "us-east-1a", spot=True) for name in ("r3.large", "m4.4xlarge")
    ]
    book = synthetic.auction(listings, seed=3, days=days)
    records = [
        {"timestamp": at, "machine": offer.machine, "zone": offer.zone, "usd_per_hour": usd}
        for offer in book
        for at, usd in zip(book.trace(offer).times, book.trace(offer).usd_per_hour, strict=True)
    ]
    pd.DataFrame(records).to_csv(folder / "spot_aws_mine.csv", index=False)


# -- the file ----------------------------------------------------------------------------------------------------------
def parts() -> list[tuple[str, dict]]:
    told = datasets.roles()
    return [*((name, part) for name, part in told.items() if name != "prices"), *told["prices"].items()]


def test_nothing_is_for_choosing_and_for_reporting_unless_it_says_so_and_why() -> None:
    for name, part in parts():
        apart = [set(part.get(role, part.get(f"{role}_weeks", ()))) for role in ("choosing", "reporting", "both")]
        assert sum(map(len, apart)) == len(set.union(*apart)) > 0, name
        assert not part.get("both") or part["why_both"], name


def test_weeks_for_choosing_and_for_reporting_do_not_overlap() -> None:
    for recording in datasets.roles()["prices"]:
        weeks = sorted(datasets.weeks(recording, "choosing") + datasets.weeks(recording, "reporting"))
        assert all(before[1] <= after[0] for before, after in pairwise(weeks)), recording


def test_every_benchmark_on_recorded_data_is_in_the_file_and_prints_what_it_used() -> None:
    named = {benchmark for _, part in parts() for benchmark in part["used_by"]}
    reading = {
        path.stem.partition("_")[0]
        for path in BENCHMARKS.glob("*.py")
        if re.search(r"datasets import|import datasets|tables import", path.read_text())
    } - {"datasets", "tables", "own", "workload"}
    assert {name.partition("_")[0] for name in named} >= reading
    for name in named:
        text = (BENCHMARKS / f"{name}.py").read_text() + (BENCHMARKS / "scispot_lives.py").read_text() * (
            name == "scispot"
        )
        assert "announce(" in text, name


def test_no_benchmark_has_a_list_of_its_own() -> None:
    listed = re.compile(r"imdb_patch|\b34539\b|_2016-02")
    assert [path.name for path in BENCHMARKS.glob("*.py") if listed.search(path.read_text())] == []


def test_what_a_surrogate_predicted_is_said_to_be_its(capsys: pytest.CaptureFixture[str]) -> None:
    datasets.announce("curves", ["lcbench/146212", "mnist/grid"])
    datasets.announce("trimtuner", ["rnn", "lcdb/covertype"])
    told = capsys.readouterr().out
    assert "data, for reporting: lcbench/146212, mnist/grid" in told
    assert "1 of them are a surrogate: lcbench/146212" in told
    assert "for choosing and reporting: lcdb/covertype: tuned on" in told


# -- held-out data -----------------------------------------------------------------------------------------------------
def test_a_table_of_your_own_is_a_task(folder: Path) -> None:
    assert tables.reporting() == earlycurve_groups.tables() == ("own/net",)
    task = tables.load(tables.reporting())["own/net"]
    assert (task.metric, task.direction, task.curves.shape) == ("accuracy", "maximize", (40, 12))
    assert task.space.params["lr"].log
    assert set(task.space.params) == {"lr", "layers", "kind"}
    assert (folder / "own_net.csv").exists()


def test_a_table_without_its_columns_is_refused_with_what_is_missing(folder: Path) -> None:
    (folder / "own_net.csv").write_text("config_id,step,loss\n0,1,0.5\n")
    with pytest.raises(DataError, match="one metric; it has config_id, step, loss"):
        tables.reporting()


def test_a_task_of_another_name_in_a_known_format_is_reported(folder: Path) -> None:
    step, config = (grid.ravel() for grid in np.meshgrid(range(51), range(30)))
    values = {"task": "mine", "config_id": config, "step": step, "val_loss": 1.0 / (step + 1 + config)}
    pd.DataFrame(values).to_parquet(folder / "lc_taskset_mine_curves.parquet")
    names = ("learning_rate", "beta1", "beta2", "epsilon", "l1", "l2", "linear_decay", "exponential_decay")
    rng = np.random.default_rng(0)
    configs = {"task": "mine", "config_id": range(30), **{name: rng.uniform(0.01, 0.9, 30) for name in names}}
    pd.DataFrame(configs).to_parquet(folder / "lc_taskset_mine_configs.parquet")
    assert tables.reporting() == ("taskset/mine", "own/net")
    assert tables.load(("taskset/mine",))["taskset/mine"].max_steps == 50


def test_elastic_rows_are_computed_on_held_out_tables(folder: Path, monkeypatch, capsys) -> None:
    words = "--recipes flex,asha --cells 15:60 --seeds 1 --processes 1 --held-out"
    monkeypatch.setattr(sys, "argv", ["seer", *words.split(), str(folder)])
    monkeypatch.setattr(seer, "starving", lambda _: [])
    seer.main()
    told = capsys.readouterr().out
    assert f"data, held out ({folder}): own/net" in told
    assert "overruns" in told


def test_samplers_are_compared_on_held_out_tables(folder: Path) -> None:
    assert [task.name for task in tpe.recorded()] == ["own/net"]
    assert os.environ[datasets.HELD_OUT] == str(folder)


def test_revocation_models_and_spottune_read_held_out_prices(folder: Path, monkeypatch, capsys) -> None:
    pytest.importorskip("sklearn")
    write_prices(folder)
    small = revpred.Size(300, 200, 50, 50, 1)
    monkeypatch.setattr(revpred, "QUICK", small)
    monkeypatch.setattr(revpred, "find_spec", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["revpred", "--quick", "--held-out", str(folder)])
    revpred.main()
    told = capsys.readouterr().out
    assert "held out" in told
    assert "bid_brier_vs_base_rate" in told
    (market,) = spottune_market.markets().values()
    assert market.auction
    assert (market.name, market.machines) == ("spot_aws_mine", ("r3.large", "m4.4xlarge"))
    book = spottune_market.read_book(market)
    starts = market.starts(book, 3, choosing=False)
    assert book.span()[0] + spottune_market.HISTORY_S <= starts[0] < starts[-1] < book.span()[1] - spottune_market.RUN_S


def test_what_a_held_out_folder_does_not_have_is_named(folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["lifetimes", "--held-out", str(folder)])
    lifetimes.main()
    assert "google_preemptible*.csv* is missing (set --held-out" in capsys.readouterr().out
    with pytest.raises(DataError, match=r"spot_availability_index\.csv is missing"):
        recordings("reporting")


def test_nothing_is_chosen_on_held_out_data(folder: Path, monkeypatch) -> None:
    for words in (["--tune"], ["--tasks", "choose"]):
        monkeypatch.setattr(sys, "argv", ["seer", *words, "--held-out", str(folder)])
        with pytest.raises(SystemExit, match="nothing is chosen on held-out data"):
            seer.main()


def test_a_folder_that_is_none_is_refused(monkeypatch, capsys) -> None:
    monkeypatch.delenv(datasets.HELD_OUT, raising=False)
    monkeypatch.setattr(sys, "argv", ["seer", "--held-out", "nowhere"])
    with pytest.raises(SystemExit):
        seer.main()
    assert "nowhere is no folder" in capsys.readouterr().err


def test_the_documented_formats_are_those_that_are_read() -> None:
    text = (BENCHMARKS / "README.md").read_text()
    patterns = re.compile(r"\"((?:own|lc|trimtuner|spot|google)_[\w.]*\*[\w.*]*)\"")
    read = {found for path in BENCHMARKS.glob("*.py") for found in patterns.findall(path.read_text())}
    assert {found for found in read if found not in text} == {"lc_nasbench_nlp*_configs.csv.gz"}, "named `..._configs`"
