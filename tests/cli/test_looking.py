"""Inspecting a run: status, report, why, export, as text, JSON, page and table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.prompt import Prompt


@pytest.fixture
def ran(prompt: Prompt) -> Prompt:
    """A simulated study on a market with preemptions."""
    spec = "command: echo {lr}\nspace: {lr: {log: [1e-3, 1]}, kind: [a, 2, '<b>']}\nminimize: loss\ntrials: 12\n"
    spec += "max_steps: 9\nbudget: 5\ndeadline: 12h\nmarket: {kind: modern, interruptions_per_hour: 1}\n"
    prompt.write("spec.yaml", spec + "simulate: {seconds_per_step: 600}\n")
    result = prompt("simulate", "spec.yaml")
    assert result.exit_code == 0, result.output
    return prompt


def test_status_is_one_line_per_run_or_json(ran: Prompt) -> None:
    text = ran("status").output
    assert "spec-simulated: completed · 12/12 · best" in text
    told = json.loads(ran("status", "spec-simulated", "--json").stdout)
    assert told["status"] == "completed"
    assert "trials" not in told


def test_status_and_report_warn_of_what_a_notice_is_too_short_for(ran: Prompt) -> None:
    warning = "warning: a notice of 2m is over before a step of "
    assert f"  {warning}" in ran("status").output
    assert warning in ran("report").output
    (told,) = json.loads(ran("status", "spec-simulated", "--json").stdout)["receipt"]["warnings"]
    assert told.endswith("it relies on its saves every 15m")


def test_report_as_json_holds_trials_that_cost_what_the_receipt_says(ran: Prompt) -> None:
    told = json.loads(ran("report", "--json").stdout)
    assert len(told["trials"]) == 12
    assert sum(trial["cost_usd"] for trial in told["trials"]) == pytest.approx(told["receipt"]["charged_usd"], abs=0.02)
    assert told["best"]["value"] == min(trial["value"] for trial in told["trials"] if trial["value"] is not None)


def test_the_page_is_whole_and_escapes_what_users_wrote(ran: Prompt) -> None:
    assert ran("report", "--html", "page.html").exit_code == 0
    page = Path("page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_why_explains_the_decisions_in_order(ran: Prompt) -> None:
    best = json.loads(ran("report", "--json").stdout)["best"]["trial"]
    text = ran("why", str(best)).output
    for word in ("added: ", "scheduled until step ", "promoted to step ", "started on ", "reached step "):
        assert word in text
    lines = json.loads(ran("why", str(best), "--json").stdout)
    times = [line["since_start_s"] for line in lines]
    assert times == sorted(times)


def test_export_writes_the_same_table_in_three_forms(ran: Prompt) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = list(csv.DictReader(io.StringIO(ran("export").stdout)))
    assert [row["trial"] for row in rows] == [str(i) for i in range(12)]
    assert {row["config.kind"] for row in rows} <= {"a", "2", "<b>"}
    for name in ("t.csv", "t.json", "t.parquet"):
        assert "wrote 12 trials" in ran("export", "-o", name).output
    assert len(json.loads(Path("t.json").read_text())["trials"]) == 12
    table = parquet.read_table("t.parquet").to_pylist()
    assert [row["value"] for row in table] == [pytest.approx(float(row["value"])) for row in rows]


def test_export_reports_what_is_wrong_with_its_file(ran: Prompt) -> None:
    assert ran("export", "-o", "t.xyz").exit_code == 2
    assert ran("export", "-o", "no/such/folder.csv").exit_code == 2
    assert ran("export", "--format", "parquet").exit_code == 2
