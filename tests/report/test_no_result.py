"""A run without a best trial says why, whatever the recipe: what became of its trials is in the sentence."""

from __future__ import annotations

import math

import pytest

import shoestring as ss
from shoestring.report.html import page

SEARCHES = ("random", "grid", "tpe", "asha", "hyperband", "successive_halving", "trimtuner", "theta", "seer", "flex")


def study(recipe: str = "random", *limits: str, value: float = 0.5, metric: str = "loss", **more: object) -> ss.Study:
    """Six trials of three steps of ten minutes."""
    workload = ss.Workload(
        curve=lambda _: lambda _: {metric: value}, seconds_per_step=lambda *_: 600.0, trouble=more.pop("trouble", None)
    )
    asked = {"minimize": "loss", "trials": 6, "max_steps": 3, "budget": "$9", "deadline": "1d", "workload": workload}
    return ss.simulate(space={"x": ss.uniform(0, 1)}, recipe=recipe, constraints=list(limits), **{**asked, **more})


def fails(*_: object) -> str:
    return "fail"


@pytest.mark.parametrize("recipe", SEARCHES)
def test_trials_that_fail_are_counted_in_every_recipe(recipe: str) -> None:
    found = study(recipe, trouble=fails, max_failures=0)
    assert found.answer is None
    assert "no trial has reported a value of loss; " in found.without_best
    assert " trials failed" in found.without_best


@pytest.mark.parametrize("recipe", ["random", "asha", "trimtuner"])
def test_values_that_are_not_numbers_are_named(recipe: str) -> None:
    assert "trials reported NaN only" in study(recipe, value=math.nan).without_best


def test_another_metric_than_the_one_to_optimize_is_named() -> None:
    assert "6 of 6 trials ended without a report of loss, only of los" in study(metric="los").without_best


def test_a_constraint_that_no_trial_satisfies_comes_with_the_nearest_miss() -> None:
    found = study("random", "loss <= 0.1")
    assert found.without_best == "no trial satisfies every constraint"
    assert found.answer is not None
    assert "the nearest miss violates loss <= 0.1" in found.answer.why


def test_trials_on_data_fractions_alone_are_no_result_and_not_said_to_be_without_a_value() -> None:
    found = study("trimtuner", trials=2, fractions=[0.25, 1], options={"parallel": 2})
    assert found.best is None
    assert found.without_best == "no trial has reported a value of loss on all of the data"


def test_an_end_before_the_first_report_is_named() -> None:
    found = study(deadline="5m")
    assert "no trial has reported a value of loss" in found.without_best
    assert found.state.ending in found.without_best


def test_the_sentence_is_in_every_report() -> None:
    found = study(trouble=fails, max_failures=0)
    assert found.to_plain()["without_best"] == found.without_best
    assert "No trial has reported a value of loss; 6 of 6 trials failed" in page(found)
    assert study().without_best == ""
