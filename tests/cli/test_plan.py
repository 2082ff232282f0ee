"""`shoestring plan`: the plan of recipes that make one, a forecast for all, and its assumptions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from shoestring.cli.plan import TITLES
from shoestring.runs.plan_table import plan_of
from shoestring.testing.story import SPEC, usual_prices
from tests.cli.prompt import Prompt, refused

SPEC_FILE = """
command: echo {lr}
space: {lr: {log: [1e-3, 1]}}
minimize: loss
trials: 9
max_steps: 9
budget: 30
deadline: 2h
max_machines: 4
machines: [p3.8xlarge]
market: {kind: modern, interruptions_per_hour: 0.5}
simulate: {seconds_per_step: 60}
"""


@pytest.fixture
def spec(prompt: Prompt) -> str:
    return prompt.write("spec.yaml", SPEC_FILE)


def planned(prompt: Prompt, *words: str) -> dict:
    result = prompt("plan", *words, "--runs", "4", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_forecast_aggregates_simulations_and_stores_nothing(prompt: Prompt, spec: str) -> None:
    told = planned(prompt, spec)
    (asha,) = told["recipes"]
    assert (asha["recipe"], asha["plan"]) == ("asha", None)
    assert len(asha["simulations"]) == 4
    costs = sorted(run["usd"] for run in asha["simulations"])
    assert asha["cost_usd"] == {"p50": costs[1], "p90": costs[3]}
    assert 0 < costs[0] < costs[3] < 30  # every simulation has a market of its own
    assert (asha["misses_deadline"], asha["runs_out_of_money"]) == (0, 0)
    assert not Path(".shoestring").exists()


def test_the_same_command_gives_the_same_forecast(prompt: Prompt, spec: str) -> None:
    assert planned(prompt, spec) == planned(prompt, spec)
    assert planned(prompt, spec) != planned(prompt, spec, "--seed", "7")


def test_it_is_shown_as_a_table_with_its_assumptions(prompt: Prompt, spec: str) -> None:
    text = prompt("plan", spec, "--runs", "3").stdout
    titles, first, *_ = text.splitlines()
    assert re.split(r" {2,}", titles) == list(TITLES)
    assert first.startswith("asha")
    assert "from 3 simulations, each on another market" in text
    assert "spot prices and preemptions are synthetic" in text
    assert "a step takes 60 s on four cores, as given" in text
    assert "guessed: do not trust the best value" in text
    assert "next: shoestring simulate spec.yaml" in text


def test_the_largest_checkpoint_a_notice_allows_is_shown_if_a_size_is_given(prompt: Prompt, spec: str) -> None:
    small = planned(prompt, spec, "--checkpoint-gb", "1")["rests_on"]["saves"]
    assert re.fullmatch(r"1.0 GB in 11s; a notice of 2m allows checkpoints of up to \S+ GB", small)
    large = planned(prompt, spec, "--checkpoint-gb", "40")["rests_on"]["saves"]
    assert large.endswith("GB: work since the last periodic save is lost at every preemption")
    assert "saves" not in planned(prompt, spec)["rests_on"]


def test_a_deadline_or_a_budget_that_ends_the_run_is_counted(prompt: Prompt, spec: str) -> None:
    (late,) = planned(prompt, spec, "--recipe", "random", "--deadline", "20m", "--seconds-per-step", "600")["recipes"]
    assert late["misses_deadline"] == 1.0
    assert late["done_s"]["p90"] <= 20 * 60
    (poor,) = planned(prompt, spec, "--recipe", "random", "--budget", "1", "--seconds-per-step", "600")["recipes"]
    assert poor["runs_out_of_money"] == 1.0
    assert poor["cost_usd"]["p90"] <= 1.0


@pytest.mark.parametrize("recipe", ["seer", "rubberband", "elastic_successive_halving"])
def test_a_recipe_that_plans_shows_its_plan(prompt: Prompt, spec: str, recipe: str) -> None:
    told = planned(prompt, spec, "--recipe", recipe)["recipes"][0]
    plan, stages = told["plan"], told["plan"]["stages"]
    assert sum(stage["usd"] for stage in stages) == pytest.approx(plan["usd"])
    assert plan["usd"] <= plan["budget_usd"] == 30
    assert stages[-1]["stop_s"] <= plan["deadline_s"] == 7200
    for stage in stages:
        assert stage["start_s"] < stage["stop_s"]
        assert sum(trials for trials, _ in stage["slots"]) == stage["trials"]
        assert stage["machines"] <= 4
    text = prompt("plan", spec, "--recipe", recipe, "--runs", "1").stdout
    assert f"spec: the plan of {recipe}" in text
    assert "stage" in text
    assert "of $30.00" in text


def test_recipes_are_compared_in_one_table(prompt: Prompt, spec: str) -> None:
    told = planned(prompt, spec, "--compare", "random, rubberband")
    assert [row["recipe"] for row in told["recipes"]] == ["asha", "random", "rubberband"]


def test_an_infeasible_recipe_is_shown_beside_the_others(prompt: Prompt, spec: str) -> None:
    hurried = (spec, "--compare", "rubberband", "--deadline", "4m")
    told = planned(prompt, *hurried)["recipes"]
    assert told[1]["recipe"] == "rubberband"
    assert "deadline 4m is too short" in told[1]["impossible"]
    assert "rubberband: deadline 4m is too short" in prompt("plan", *hurried, "--runs", "1").stdout


def test_curves_and_speed_come_from_an_earlier_run(prompt: Prompt) -> None:
    study = prompt.study(name='"before"')
    assert prompt("run", study).exit_code == 0
    told = planned(prompt, study, "--market", "modern", "--budget", "5")
    assert told["rests_on"] == {
        "prices": "list prices are real; spot prices and preemptions are synthetic (modern)",
        "speed": "as in the earlier run",
        "curves": "as in the earlier run",
    }


def test_a_python_file_is_planned_without_running_its_training(prompt: Prompt) -> None:
    study = prompt.study(train="def train(trial):\n    raise RuntimeError('trained')\n", budget="5")
    assert planned(prompt, study)["recipes"][0]["recipe"] == "asha"


# -- what cannot be ----------------------------------------------------------------------------------------------------
def test_bad_input_gets_a_message(prompt: Prompt, spec: str) -> None:
    refused(prompt("plan", "nowhere.yaml"), "there is no file nowhere.yaml")
    refused(prompt("plan", spec, "--compare", "ashaa"), "recipe='ashaa' is unknown", "asha")
    refused(prompt("plan", spec, "--recipe", "rubberband", "--deadline", "4m"), "deadline 4m is too short", "minimum")
    refused(prompt("plan", spec, "--recipe", "seer", "--budget", "0.1"), "the minimum is")
    refused(prompt("plan", spec, "--runs", "0"), "--runs")
    refused(prompt("plan", spec, "--seconds-per-step", "-1"), "seconds_per_step=-1 must be more than 0")
    assert not Path(".shoestring").exists()


def test_a_recipe_without_a_plan_has_none() -> None:
    assert plan_of(SPEC, usual_prices(SPEC.listings), 0.0) is None


# -- bags --------------------------------------------------------------------------------------------------------------
BAG_FILE = """
command: sleep 0.3
over: {k: [1, 2, 3, 4]}
budget: 9
deadline: 2d
"""


def test_a_bag_is_planned_by_what_a_job_takes_and_then_by_those_that_finished(prompt: Prompt) -> None:
    file = prompt.write("naps.yaml", BAG_FILE)
    short, long = (planned(prompt, file, "--job-takes", takes) for takes in ("10m", "5h"))
    assert short["rests_on"]["speed"] == "a job takes 10m on four cores, as given"
    assert 10 * short["recipes"][0]["done_s"]["p50"] < long["recipes"][0]["done_s"]["p50"]
    assert "give --job-takes" in planned(prompt, file)["rests_on"]["speed"]
    assert "curves" not in short["rests_on"]
    assert prompt("run", file).exit_code == 0
    known = planned(prompt, file, "--job-takes", "5h")
    assert "as the 4 that finished in naps; --job-takes counts only until one has" in known["rests_on"]["speed"]
    assert known["recipes"][0]["done_s"]["p50"] < short["recipes"][0]["done_s"]["p50"]


def test_only_jobs_of_a_bag_take_a_time(prompt: Prompt, spec: str) -> None:
    refused(prompt("plan", spec, "--job-takes", "1h"), "job_takes='1h'", "--seconds-per-step")
