"""A search that is through with most of its budget unspent says what was left, and which options would use it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

import shoestring as ss
from shoestring.kernel.spec import RunSpec
from shoestring.report.study import Study
from shoestring.report.unspent import unspent
from shoestring.space.space import Float, Int, Space

X = Space(params={"x": Float(low=0.0, high=1.0)})
SPEC = RunSpec(name="s", space=X, metric="loss", trials=160, budget_usd=4.0, deadline_s=36 * 3600.0)
HOUR_S = 3600.0


@cache
def simulated(trials: int, recipe: str = "asha") -> Study:
    return ss.simulate(
        name="s",
        space={"x": ss.uniform(0, 1)},
        minimize="loss",
        recipe=recipe,
        trials=trials,
        max_steps=9,
        budget=0.5,
        deadline="36h",
        max_machines=4,
        market="modern",
    )


def test_trials_are_suggested_that_the_budget_pays() -> None:
    left = unspent(SPEC, 1.0, 2 * HOUR_S, 160, name="s-2")
    assert left is not None
    assert left.options == "--trials 570"
    assert str(left) == (
        "$3.00 of $4.00 left: all 160 trials are over. To use it: the same command with --trials 570 --name s-2"
    )


def test_more_machines_are_suggested_where_there_would_not_be_time() -> None:
    left = unspent(SPEC, 0.2, 4.5 * HOUR_S, 160)
    assert left is not None
    assert left.way == "To use it: the same command with --trials 2800 --max-machines 12"
    most = unspent(replace(SPEC, budget_usd=1000.0), 0.2, 20 * HOUR_S, 160)
    assert most is not None
    assert most.way == "To use more of it: the same command with --trials 2500 --max-machines 40"


def test_a_search_that_stopped_before_its_ceiling_would_not_be_helped_by_more_trials() -> None:
    left = unspent(SPEC, 0.04, HOUR_S, 4)
    assert left is not None
    assert "ended by itself after 4 trials" in str(left)
    assert "--trials" not in left.way


@pytest.mark.parametrize(
    ("spec", "spent_usd"),
    [
        (SPEC, 2.1),
        (SPEC, 0.0),  # machines that are free of charge
        (replace(SPEC, kind="bag"), 0.2),
        (replace(SPEC, recipe="grid"), 0.2),
        (replace(SPEC, space=Space(params={"x": Int(low=1, high=160)})), 0.2),  # all of them were tried
    ],
)
def test_nothing_is_said_where_nothing_could_be_used(spec: RunSpec, spent_usd: float) -> None:
    assert unspent(spec, spent_usd, HOUR_S, 160) is None


def test_the_options_use_what_was_left() -> None:
    first = simulated(32)
    assert len(first.state.jobs) == 32  # a ceiling all the same
    left = first.unspent
    assert left is not None
    _, trials = left.options.split()
    more = simulated(int(trials))
    assert more.status == "completed"
    assert 0.25 < more.spent <= 0.5
    assert more.unspent is None


def test_a_run_that_its_budget_or_deadline_ended_says_nothing(tmp_path: Path) -> None:
    study = ss.simulate(
        name="late", space={"x": ss.uniform(0, 1)}, minimize="loss", recipe="random", trials=99, max_steps=9, budget=99,
        deadline="1h", max_machines=2, market="modern", store=tmp_path,
    )  # fmt: skip
    assert study.status == "deadline_reached"
    assert study.unspent is None
