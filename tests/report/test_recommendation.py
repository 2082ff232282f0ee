"""The answer of a study: the recommended configuration, measured or predicted, or the nearest miss."""

from __future__ import annotations

import pytest

import shoestring as ss
from shoestring.report.html import page

WIDTHS = (1, 2, 4)


def study(*limits: str, recipe: str = "grid", **more: object) -> ss.Study:
    """Each width once: the wider the better, and the slower."""
    workload = ss.Workload(
        curve=lambda config: lambda _: {"loss": 1 / config["width"], "latency": 10.0 * config["width"]},
        seconds_per_step=lambda config, *_: 600.0 * config["width"],
    )
    space = {"width": ss.choice(*WIDTHS)}
    asked = {"minimize": "loss", "budget": "$9", "deadline": "1d", "recipe": recipe, "workload": workload}
    return ss.simulate(space=space, constraints=list(limits), **{**asked, **more})


def test_without_constraints_it_is_the_best_trial() -> None:
    answer = study().answer
    assert answer is not None
    assert (answer.config, answer.measured, answer.constraints) == ({"width": 4}, True, ())
    assert "answer" not in study().to_plain()


def test_every_recipe_answers_with_the_best_feasible_trial() -> None:
    found = study("latency <= 25", "time <= 1h")
    answer = found.answer
    assert answer is not None
    assert found.best is not None
    assert answer.config == found.best.config == {"width": 2}
    assert [(outlook.value, outlook.measured, outlook.probability) for outlook in answer.constraints] == [
        (20.0, True, 1.0),
        (pytest.approx(1200.0), True, 1.0),
    ]
    assert found.to_plain()["answer"]["feasible"] is True
    assert [row.feasible for row in found.trials] == [True, True, False]
    assert {row["feasible"] for row in found.trials.to_plain()} == {True, False}


def test_the_nearest_miss_is_named_where_no_trial_is_feasible() -> None:
    found = study("latency <= 8")
    answer = found.answer
    assert found.best is None
    assert answer is not None
    assert (answer.config, answer.feasible) == ({"width": 1}, False)
    assert "the nearest miss violates latency <= 8: 10 (measured)" in answer.why
    assert "no trial satisfies every constraint" in page(found).lower()
    assert "no trial satisfies every constraint" in found.without_best


def test_a_metric_that_no_trial_has_reported_is_named() -> None:
    answer = study("memory <= 8").answer
    assert answer is not None
    assert "no trial has reported memory" in answer.why


def test_the_page_and_the_decision_log_show_constraints() -> None:
    found = study("latency <= 25")
    assert "<strong>Use</strong>" in page(found)
    assert "judged: 40m of training" in str(found.why(2))
    assert "violates latency &lt;= 25" in page(found)
