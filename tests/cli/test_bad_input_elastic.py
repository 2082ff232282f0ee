"""Elastic recipes with what cannot be: a sentence that names the minimum, which really suffices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.prompt import Prompt, refused

RECIPES = ("seer", "seer_as_printed", "hypersched", "elastic_hyperband", "elastic_grid", "elastic_successive_halving")


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_budget_too_small_for_one_trial_names_the_minimum_and_that_works(prompt: Prompt, recipe: str) -> None:
    words = ("simulate", prompt.study(), "--recipe", recipe, "--max-machines", "4")
    result = prompt(*words, "--budget", "0.001", "--deadline", "1h")
    refused(result, "a budget of $0.001", "do not allow a single trial", "the minimum is")
    assert not Path(".shoestring").exists()
    named = re.search(r"a budget of (\S+) and a deadline of (\S+)\n", result.output)
    assert named is not None, result.output
    assert prompt(*words, "--budget", named[1], "--deadline", "1h").exit_code == 0
    assert prompt(*words, "--budget", named[1], "--deadline", named[2], "--fresh").exit_code == 0


@pytest.mark.parametrize("command", ["run", "simulate"])
def test_a_deadline_too_short_for_one_trial(prompt: Prompt, command: str) -> None:
    study = prompt.study(recipe='"seer"', options='{"t_min_s": "2h"}', market='"modern"')
    result = prompt(command, study, "--budget", "5", "--deadline", "1h")
    refused(result, "a deadline of 1h", "a single trial of 2h", "a deadline of 2h")


@pytest.mark.parametrize("command", ["run", "simulate"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ('{"eta": 1}', ("options.eta=1.0 must be more than 1",)),
        ('{"nu": 0.5}', ("options.nu=0.5 must be 1 or more",)),
        ('{"p_min": 4, "p_max": 2}', ("options.p_max=2 is less than p_min=4",)),
        ('{"p_min": 0}', ("options.p_min=0 is too small",)),
        ('{"t_min_s": 0}', ("options.t_min_s",)),
        ('{"t_mni_s": 60}', ("options.t_mni_s", "t_min_s")),
    ],
)
def test_impossible_parameters(prompt: Prompt, command: str, options: str, words: tuple[str, ...]) -> None:
    study = prompt.study(recipe='"seer"', options=options)
    refused(prompt(command, study, "--budget", "5", "--deadline", "1h"), *words)
    assert not Path(".shoestring").exists()


def test_a_trial_wider_than_all_machines_together(prompt: Prompt) -> None:
    study = prompt.study(recipe='"seer"', options='{"p_min": 4}', max_machines="2")
    result = prompt("simulate", study, "--budget", "5", "--deadline", "1h", "--machines", "m6i.large")
    refused(result, "p_min=4", "max_machines=2")
