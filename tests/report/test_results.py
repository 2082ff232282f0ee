"""The results of a bag as a table."""

from __future__ import annotations

import csv
import io
import math
import sys

import pytest

import shoestring as ss
from shoestring.report.export import as_text
from shoestring.report.results import Results

REPORTS = (
    'import json, sys; x = int(sys.argv[1]); print(json.dumps({"step": 1, "energy": x / 2, "temp": x})); print("done")'
)


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> ss.Bag:
    """Real processes: one job in three fails."""
    program = f"{REPORTS}; sys.exit('too hot' if x == 320 else 0)"
    return ss.run_bag(
        [sys.executable, "-c", program.replace("{", "{{").replace("}", "}}"), "{temp}"],
        over={"temp": [280, 300, 320], "status": ["a"]},
        name="hot",
        store=tmp_path_factory.mktemp("runs"),
        max_failures=0,
    )


def test_a_row_has_parameters_metrics_last_line_time_and_cost(bag: ss.Bag) -> None:
    first = bag.results[0]
    assert first["temp"] == 280
    assert first["status"] == "finished"
    assert first["energy"] == 140.0
    assert first["output"] == "done"
    assert (first["attempts"], first["revocations"], first["cost_usd"]) == (1, 0, 0.0)
    assert first["seconds"] > 0


def test_a_job_that_failed_says_how(bag: ss.Bag) -> None:
    last = bag.results[-1]
    assert last["status"] == "failed"
    assert last["detail"] == "too hot"


def test_conflicting_names_get_a_prefix(bag: ss.Bag) -> None:
    first = bag.results[0]
    assert first["param.status"] == "a"
    assert first["metric.temp"] == 280.0


def test_the_table_is_a_data_frame_a_text_a_page_and_a_slice(bag: ss.Bag) -> None:
    pandas = pytest.importorskip("pandas")
    frame = bag.results.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.groupby("temp")["energy"].mean().loc[300] == 150.0
    assert len(bag.results[1:]) == 2
    assert len(str(bag.results).splitlines()) == 4
    assert bag.results._repr_html_().count("<tr>") == 4


def test_user_text_is_escaped_and_long_tables_are_cut_in_notebooks() -> None:
    many = Results({"job": number, "output": "<b>"} for number in range(60))
    assert "<b>" not in many._repr_html_()
    assert "and 10 more" in many._repr_html_()
    assert "no jobs yet" in repr(Results([])) + Results([])._repr_html_()


def test_an_exported_bag_has_the_same_table(bag: ss.Bag) -> None:
    rows = list(csv.DictReader(io.StringIO(as_text(bag, "csv"))))
    assert [row["temp"] for row in rows] == ["280", "300", "320"]
    assert [row["status"] for row in rows] == ["finished", "finished", "failed"]
    assert '"energy": 140.0' in as_text(bag, "json")


def test_dollars_and_attempts_of_jobs_sum_to_those_of_the_bag() -> None:
    bag = ss.simulate(
        over={"seed": range(40)},
        market={"kind": "modern", "interruptions_per_hour": 2.0},
        budget="$9",
        deadline="2d",
        workload=ss.Workload(curve=lambda _: lambda _: {"energy": 1.0}, seconds_per_step=ss.SublinearSpeed(1800.0)),
    )
    assert bag.state.revocations > 0
    assert math.fsum(row["cost_usd"] for row in bag.results) == pytest.approx(bag.spent, rel=0.05)
    assert sum(row["attempts"] for row in bag.results) >= 40 + sum(row["revocations"] for row in bag.results)
    assert {row["output"] for row in bag.results} == {None}
