"""What newcomers type first: the demo and the examples."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import shoestring as ss
from shoestring.demo.digits import SPACE, train
from tests.cli.prompt import Prompt

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def examples(prompt: Prompt) -> Prompt:
    shutil.copytree(EXAMPLES, prompt.folder / "examples")
    return prompt


def test_a_program_in_a_yaml_file(examples: Prompt) -> None:
    result = examples("run", "examples/command.yaml", "--trials", "2", "--max-steps", "5")
    assert result.exit_code == 0, result.output
    assert "checkpoint in .shoestring/command" in result.output


def test_a_bag_in_a_python_file(examples: Prompt) -> None:
    result = examples("run", "examples/bag.py", "--max-steps", "2")
    assert result.exit_code == 0, result.output
    assert examples("export", "bag").stdout.count("finished") == 12


def test_the_digits_in_a_python_file(examples: Prompt) -> None:
    result = examples("run", "examples/digits.py", "--trials", "2", "--max-steps", "1")
    assert result.exit_code == 0, result.output
    assert "best  Trial " in result.output


def test_digits_are_learnt_and_hyperparameters_matter(prompt: Prompt) -> None:
    good = {"lr": 0.1, "momentum": 0.7, "width": 64, "l2": 1e-5, "batch": 16}
    bad = {"lr": 1e-3, "momentum": 0.0, "width": 8, "l2": 0.1, "batch": 256}
    study = ss.tune(
        train,
        space=SPACE,
        given=[good, bad],
        recipe="given",
        minimize="error",
        trials=2,
        max_steps=9,
        on="inline",
        store=prompt.folder,
    )
    assert study.trials[0].value < 0.25
    assert study.trials[1].value > 0.7


@pytest.mark.heavy
def test_the_demo_survives_its_market_and_ends_in_two_receipts(prompt: Prompt) -> None:
    result = prompt("demo")
    assert result.exit_code == 0, result.output
    assert result.output.count("total") == 2
    assert "24/24" in result.output
    assert "256/256" in result.output
    assert "next: shoestring report demo" in result.output
