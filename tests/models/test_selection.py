"""Machines and how many of them, by expected dollars."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.scispot_portfolio import shares
from shoestring.errors import SpecError
from shoestring.models.lifetimes.job_cost import (
    Prospect,
    expected_improvement_usd,
    job_usd,
    next_to_use,
    printed_job_usd,
    worth_of_a_try_usd,
)
from tests.models.lifetimes import HOUR_S, YOUNG_DIE_FIRST, life_s


def test_machines_that_are_not_preempted_cost_their_price() -> None:
    assert job_usd(4, 0.5, 2 * HOUR_S, None) == pytest.approx(4.0)


def test_a_gang_costs_the_mean_of_many_simulated_gangs() -> None:
    rng, work_s, restart_s = np.random.default_rng(5), 2 * HOUR_S, 180.0

    def played_s() -> float:
        passed_s = 0.0
        while (first := min(life_s(rng) for _ in range(4))) <= work_s:
            passed_s += first + restart_s
        return passed_s + work_s

    seconds = [played_s() for _ in range(3000)]
    error = 4 * np.std(seconds) / np.sqrt(len(seconds)) * 4 * 0.5 / HOUR_S
    expected = job_usd(4, 0.5, work_s, YOUNG_DIE_FIRST, restart_s=restart_s)
    assert expected == pytest.approx(np.mean(seconds) * 4 * 0.5 / HOUR_S, abs=error)


def test_a_job_longer_than_any_gang_lasts_has_an_infinite_price() -> None:
    assert math.isinf(job_usd(1, 1.0, 25 * HOUR_S, YOUNG_DIE_FIRST))


def test_in_print_many_small_machines_look_as_safe_as_one() -> None:
    """Per CPU the price is the same: in print the cheapest is what scales best, however many machines it takes."""
    many, one = (lambda n, work: printed_job_usd(n, 1.0 / n, work, YOUNG_DIE_FIRST)), job_usd
    assert many(32, 0.99 * HOUR_S) < many(1, HOUR_S)
    assert one(32, 1.0 / 32, 0.99 * HOUR_S, YOUNG_DIE_FIRST) > 5 * one(1, 1.0, HOUR_S, YOUNG_DIE_FIRST)


def test_the_expected_improvement_is_the_mean_over_what_a_job_may_cost() -> None:
    """By brute force: draws of a log-normal cost with this mean."""
    for mean, log_sd in ((1.5, 0.6), (3.0, 0.9), (0.8, 0.3)):
        normal = np.random.default_rng(1).standard_normal(400_000)
        costs = mean * np.exp(log_sd * normal - log_sd**2 / 2)
        by_hand = np.maximum(0.0, 1.0 - costs).mean()
        assert expected_improvement_usd(Prospect(mean, log_sd), 1.0) == pytest.approx(by_hand, rel=0.02)


def test_without_a_spread_the_improvement_is_the_difference() -> None:
    assert expected_improvement_usd(Prospect(0.7), 1.0) == pytest.approx(0.3)
    assert expected_improvement_usd(Prospect(1.3), 1.0) == 0.0
    assert expected_improvement_usd(Prospect(math.inf, 1.0), 1.0) == 0.0


def test_a_try_is_worth_what_it_saves_on_later_jobs_less_what_it_costs() -> None:
    it = Prospect(1.5, 0.6)
    gain = expected_improvement_usd(it, 1.0)
    assert worth_of_a_try_usd(it, 1.0, jobs_after=100) == pytest.approx(100 * gain - 0.5)


def test_the_cheapest_is_used_when_nothing_else_could_be_cheaper() -> None:
    known = [Prospect(1.0, tried=True), Prospect(1.3, 0.05)]
    assert next_to_use(known, [1000, 1000]) == 0


def test_a_candidate_that_might_be_cheaper_is_tried_while_enough_jobs_are_left() -> None:
    known = [Prospect(1.0, tried=True), Prospect(1.5, 0.5)]
    assert next_to_use(known, [100, 100]) == 1
    assert next_to_use(known, [3, 3]) == 0


def test_a_candidate_of_which_nothing_more_is_to_be_learned_is_not_used_again() -> None:
    known = [Prospect(1.0, tried=True), Prospect(1.5, 0.0, tried=True)]
    assert next_to_use(known, [100, 100]) == 0


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0, 1)), min_size=1, max_size=8), st.integers(1, 50))
def test_tries_end(costs: list[tuple[float, float]], jobs: int) -> None:
    """A try that leaves nothing unknown is made at most once."""
    prospects = [Prospect(usd, log_sd) for usd, log_sd in costs]
    uses: list[int] = []
    for left in range(jobs, 0, -1):
        at = next_to_use(prospects, [left - 1] * len(costs))
        uses.append(at)
        prospects[at] = Prospect(costs[at][0], tried=True)
    best = min(usd for usd, _ in costs)
    dearer = [at for at in uses if costs[at][0] > best]
    assert len(dearer) == len(set(dearer))


def test_a_portfolio_takes_the_best_market_where_risk_does_not_count() -> None:
    rng = np.random.default_rng(0)
    returns = np.array([0.6, 0.7, 0.5]) + rng.normal(0, 0.1, (500, 3))
    assert shares(returns, aversion=0.0).argmax() == 1


def test_a_portfolio_spreads_over_markets_that_move_apart() -> None:
    rng = np.random.default_rng(0)
    common, apart = rng.normal(0, 0.1, 500), rng.normal(0, 0.1, 500)
    returns = 0.6 + np.stack([common, common, apart], axis=1)
    weights = shares(returns, aversion=100.0)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[2] == pytest.approx(0.5, abs=0.05)


@given(st.integers(1, 6), st.floats(0, 50))
@settings(deadline=None)
def test_no_other_portfolio_is_better(markets: int, aversion: float) -> None:
    rng = np.random.default_rng(markets)
    returns = rng.normal(0.5, 0.2, (60, markets))
    covariance = np.cov(returns.T, bias=True).reshape(markets, markets)

    def worth(weights: np.ndarray) -> float:
        return float(returns.mean(axis=0) @ weights - aversion * weights @ covariance @ weights)

    best = worth(shares(returns, aversion))
    assert all(worth(rng.dirichlet(np.ones(markets))) <= best + 1e-4 for _ in range(20))


def test_nonsense_is_refused() -> None:
    with pytest.raises(SpecError, match="table"):
        shares(np.array([1.0, 2.0]))
    with pytest.raises(SpecError, match="aversion"):
        shares(np.ones((3, 2)), aversion=-1.0)
