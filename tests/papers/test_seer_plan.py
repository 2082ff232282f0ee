"""SEER's planner: the worked example to the digit, and thousands of plans that never cost too much or run late."""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction
from itertools import pairwise

import pytest

from shoestring.errors import SpecError
from shoestring.policies.search.seer.plan import (
    Bracket,
    Request,
    bracket_budgets,
    bracket_parameters,
    plan,
    plan_as_printed,
    rounds,
)
from tests.numbers import over_numbers

EXAMPLE = Request(deadline=10, budget=80, eta=2)
"""Section 3.4: ten minutes, 80 GPU-minutes, eta = 2."""


def sevenths(numerator: int) -> object:
    return pytest.approx(float(Fraction(numerator, 7)), rel=1e-12)


def test_the_worked_example_has_three_rounds() -> None:
    R, K = rounds(EXAMPLE)
    assert (R, K) == (sevenths(40), 3)


def test_the_worked_example_has_two_whole_brackets_and_a_rest() -> None:
    """The print shows B[1] = 17.142; its own formula, B0 nu^(q-1), gives 34.28."""
    B, P = bracket_budgets(EXAMPLE, 120 / 7)
    assert P == (1, 2, 4)
    assert B == (sevenths(240), sevenths(240), sevenths(80))


def test_the_worked_example_has_the_trials_of_the_paper() -> None:
    found = bracket_parameters(EXAMPLE)
    assert (found.t1, found.B0) == (sevenths(10), sevenths(120))
    assert found.N == (8, 4, 0)


def test_the_plan_as_printed_leaves_money_over_and_ours_spends_it() -> None:
    printed, ours = plan_as_printed(EXAMPLE), plan(EXAMPLE)
    assert [stage.slots for stage in printed.stages] == [16, 8, 4]
    assert [stage.slots * (stage.stop - stage.start) for stage in printed.stages] == [sevenths(160)] * 3
    assert printed.cost == sevenths(480)
    assert ours.stages[0].brackets == (Bracket(trials=11, slots=1), Bracket(trials=5, slots=2))
    assert ours.cost == sevenths(550)


def test_stages_follow_each_other_to_the_deadline_each_eta_times_as_long() -> None:
    stages = plan(EXAMPLE).stages
    assert stages[0].start == 0
    assert all(earlier.stop == pytest.approx(later.start) for earlier, later in pairwise(stages))
    assert [stage.stop - stage.start for stage in stages] == [sevenths(10), sevenths(20), sevenths(40)]
    assert stages[-1].stop == pytest.approx(10)


def test_p_max_turns_brackets_into_trials() -> None:
    B, P = bracket_budgets(Request(deadline=10, budget=800, eta=2, p_max=4), 120 / 7)
    assert P == (1, 2, 4)
    assert B == (pytest.approx(800 / 3),) * 3


@pytest.mark.parametrize(
    "request_", [Request(deadline=9, budget=50, p_min=2, p_max=2), Request(deadline=9, budget=50, nu=1)]
)
def test_one_width_is_one_bracket(request_: Request) -> None:
    assert len(plan(request_).stages[0].brackets) == 1


def test_a_small_budget_makes_one_bracket_that_ends_before_the_deadline() -> None:
    small = plan(Request(deadline=1000, budget=20, eta=2))
    assert [bracket.slots for bracket in small.stages[0].brackets] == [1]
    assert small.stages[-1].stop < 1000


def test_the_least_that_works_is_one_trial_for_the_least_time() -> None:
    least = plan(Request(deadline=2, budget=6, p_min=3, t_min=2))
    assert [stage.brackets for stage in least.stages] == [(Bracket(trials=1, slots=3),)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"deadline": 0.5}, "deadline 1 and budget 1"),
        ({"budget": 3.0, "p_min": 4}, "budget 4"),
        ({"eta": 1.0}, "more than 1"),
        ({"nu": 0.5}, "1 or more"),
        ({"p_min": 4, "p_max": 2.0}, "less than p_min"),
        ({"t_min": 0.0}, "t_min=0.0"),
        ({"deadline": math.inf}, "deadline=inf"),
    ],
)
def test_an_infeasible_plan_is_refused_with_the_minimum(changes: dict[str, float], words: str) -> None:
    with pytest.raises(SpecError) as refused:
        Request(**{"deadline": 10.0, "budget": 80.0, **changes})
    assert words in f"{refused.value} {refused.value.hint}"


def random_request(rng: random.Random) -> Request:
    p_min = rng.choice([1, 1, 2, 4])
    t_min = 10 ** rng.uniform(-1, 1)
    return Request(
        deadline=t_min * 10 ** rng.uniform(0, 2.5),
        budget=t_min * p_min * 10 ** rng.uniform(0, 4),
        eta=rng.choice([1.5, 2, 2.7, 3, 4]),
        nu=rng.choice([1, 1.5, 2, 3]),
        p_min=p_min,
        p_max=rng.choice([math.inf, p_min, 2 * p_min, 3 * p_min, 8 * p_min]),
        t_min=t_min,
    )


@over_numbers(3000)
def test_no_plan_costs_more_than_its_budget_or_ends_after_its_deadline(number: int) -> None:
    request = random_request(random.Random(number))
    for made in (plan(request), plan_as_printed(request)):
        assert made.cost <= request.budget * (1 + 1e-9)
        assert made.stages[-1].stop <= request.deadline
        assert made.stages[0].stop >= request.t_min * (1 - 1e-9)
        for stage in made.stages:
            assert all(request.p_min <= bracket.slots <= request.p_max for bracket in stage.brackets)
    widths = [bracket.slots for bracket in plan(request).stages[0].brackets]
    assert widths == sorted(set(widths))


def test_plans_spend_what_they_may() -> None:
    """Where the budget pays for more than a handful of trials."""
    shares = []
    for number in range(2000):
        request = random_request(random.Random(f"share/{number}"))
        found = bracket_parameters(request)
        if request.budget > 20 * request.p_min * found.K * found.t1:
            shares.append(plan(request).cost / request.budget)
    assert len(shares) > 500
    assert statistics.mean(shares) >= 0.98
    assert statistics.quantiles(shares, n=20)[0] >= 0.95
