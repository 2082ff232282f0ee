"""What newcomers type first: the demo and the examples."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import shoestring as ss
from shoestring.demo import demo
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


def test_a_demo_that_is_resumed_keeps_its_clock(tmp_path: Path) -> None:
    market = {"kind": "modern", "machines": ["m6i.xlarge"], "speedup": 90, "provision_s": 1}
    ss.tune(
        lambda trial: trial.report(loss=trial["x"]),
        name=demo.NAME,
        space={"x": ss.uniform(0, 1)},
        minimize="loss",
        trials=1,
        budget="$50",
        deadline="9d",
        market=market,
        on="inline",
        store=tmp_path,
    )
    assert demo._hour_s(tmp_path) == 40.0


def test_a_demo_that_could_not_finish_says_so_in_one_sentence() -> None:
    short = ss.simulate(
        space=SPACE, minimize="error", trials=demo.TRIALS, max_steps=81, budget="$5", deadline="1h", max_machines=2
    )
    assert short.status == "deadline_reached"
    said = demo.too_busy(short, 5.0)
    ended = sum(trial.status in ("finished", "pruned") for trial in short.trials)
    assert said.startswith(f"This computer was too busy: {ended} of 24 trials ended in time, at 5 s for a market hour.")
    assert said.count("\n") == 1


@pytest.mark.heavy
def test_the_demo_survives_its_market_and_ends_in_two_receipts(prompt: Prompt) -> None:
    """On any computer: the market is as fast as the computer can follow."""
    result = prompt("demo")
    assert result.exit_code == 0, result.output
    assert result.output.count("total") == 2
    assert "24/24" in result.output
    assert "256/256" in result.output
    assert "next: shoestring report demo" in result.output
