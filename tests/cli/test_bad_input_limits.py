"""Impossible constraints and data fractions: a message and exit code 2, never a traceback."""

from __future__ import annotations

import json

import pytest

from tests.cli.prompt import Prompt, refused

QUICK = "def train(trial):\n    trial.report(loss=abs(trial['lr'] - 0.3), latency=30.0)\n"
TRIMTUNER = {"recipe": '"trimtuner"', "max_steps": "1", "trials": "3", "train": QUICK}


@pytest.mark.parametrize("fractions", ["[0, 1]", "[0.5, 1.5]", "[-0.25]", "['half']", "['1/0']", "0.5", "'1/4'"])
def test_fractions_outside_0_and_1(prompt: Prompt, fractions: str) -> None:
    refused(prompt("run", prompt.study(recipe='"trimtuner"', fractions=fractions)), "fractions")


def test_fractions_in_a_recipe_that_uses_all_of_the_data(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(fractions="[0.5, 1]")), "recipe asha", "all of the data", "trimtuner")


@pytest.mark.parametrize("limit", ["cost", "cost < 3", "latency <= fast", "cost <= -1", "loss <= $3", "7"])
def test_a_constraint_that_cannot_be_parsed(prompt: Prompt, limit: str) -> None:
    refused(prompt("run", prompt.study(constraints=f"[{limit!r}]")), f"constraint {limit!r}")


def test_constraints_that_are_not_a_list_and_duplicates(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(constraints="7")), "constraints", "cost <= $0.10")
    refused(prompt("run", prompt.study(constraints="['cost <= 1', 'cost <= 2']")), "limit the same")


def test_files_have_the_same_fields(prompt: Prompt) -> None:
    spec = "command: echo {lr}\nspace: {lr: {float: [0, 1]}}\nminimize: loss\nrecipe: trimtuner\n"
    refused(prompt("run", prompt.write("a.yaml", f"{spec}fractions: [1/16, 3/2]\n")), "fractions", "3/2")
    refused(prompt("run", prompt.write("b.yaml", f"{spec}constraints: [cost is small]\n")), "cost is small")


def test_without_a_feasible_trial_the_nearest_miss_is_named(prompt: Prompt) -> None:
    result = prompt("run", prompt.study(**TRIMTUNER, constraints='["latency <= 20"]'))
    refused(result, "no trial satisfies every constraint", "the nearest miss", "latency <= 20: 30 (measured)")
    told = json.loads(prompt("report", "--json").output)["answer"]
    assert told["feasible"] is False
    assert told["constraints"][0]["value"] == pytest.approx(30.0)


def test_a_constraint_on_a_metric_that_is_never_reported(prompt: Prompt) -> None:
    result = prompt("run", prompt.study(**TRIMTUNER, constraints='["memory <= 20"]'))
    refused(result, "no trial has reported memory")
    assert "memory was not reported" in prompt("why", "0").output


def test_constraints_hold_for_recipes_that_do_not_model_them(prompt: Prompt) -> None:
    train = "def train(trial):\n    trial.report(loss=trial['lr'], latency=1 / trial['lr'])\n"
    words = {"recipe": '"random"', "max_steps": "1", "trials": "8", "train": train, "constraints": '["latency <= 3"]'}
    result = prompt("run", prompt.study(**words))
    assert result.exit_code == 0, result.output
    told = json.loads(prompt("status", "study", "--json").output)
    assert told["best"]["config.lr"] >= 1 / 3
    assert told["answer"]["constraints"][0]["measured"] is True
