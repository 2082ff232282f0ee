"""Entropy search: against brute force where possible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import spearmanr

from shoestring.optimizer.acquisition.cea import chance_feasible
from shoestring.optimizer.acquisition.entropy_search import (
    AS_PRINTED,
    CORRECTED,
    UNCONSTRAINED,
    EntropySearch,
    draws_needed,
    representer_points,
)
from shoestring.optimizer.acquisition.next_incumbent import SURE, NextIncumbent
from shoestring.optimizer.acquisition.p_opt import information, information_after, p_opt
from shoestring.optimizer.acquisition.quadrature import gauss_hermite
from shoestring.optimizer.candidates import Rows
from shoestring.optimizer.outcome_model import OutcomePosterior
from tests.optimizer.posteriors import after, believed, printed


def two_rivals(posterior: OutcomePosterior) -> Rows:
    """Two candidates of which either may be better."""
    mean = posterior.at(1.0).mean
    best = int(mean.argmin())
    others = np.array([row for row in range(0, len(mean), 7) if row != best])
    variance = [abs(0.3 - chance_of_two(posterior, np.array([best, row]))[1]) for row in others]
    return np.array([best, others[int(np.argmin(variance))]])


def chance_of_two(posterior: OutcomePosterior, two: Rows) -> np.ndarray:
    """The chance of each of two to be the best, by the formula for two jointly normal values."""
    mean = posterior.at(1.0, two).mean
    (own, both), (_, other) = posterior.covariance(two, 1.0, two, 1.0)
    first = float(ndtr((mean[1] - mean[0]) / math.sqrt(own + other - 2.0 * both)))
    return np.array([first, 1.0 - first])


def test_the_chance_to_be_the_best_is_that_of_the_formula_for_two() -> None:
    posterior = believed().objective
    two = two_rivals(posterior)
    assert p_opt(posterior.draws(two, 100_000, [0]).values) == pytest.approx(chance_of_two(posterior, two), abs=0.01)


def test_the_chance_to_be_the_best_is_counted_in_each_line_of_draws() -> None:
    values = np.array([[[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]], [[5.0, 4.0, 3.0], [3.0, 2.0, 1.0]]])
    assert p_opt(values).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    assert p_opt(values[0]).tolist() == [0.5, 0.5, 0.0]


def test_information_is_0_for_the_uniform_and_largest_for_the_certain() -> None:
    chance = np.array([[0.25, 0.25, 0.25, 0.25], [0.0, 1.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]])
    assert information(chance) == pytest.approx([0.0, math.log(4.0), math.log(2.0)])


@pytest.mark.parametrize("roots", [1, 3, 5])
def test_the_information_after_a_run_is_that_of_models_updated_at_every_root(roots: int) -> None:
    posterior = believed().objective
    nodes, two = gauss_hermite(roots), two_rivals(posterior)
    draws = posterior.draws(two, 100_000, [0])
    for row, fraction in [(int(two[0]), 1.0), (41, 1 / 8), (int(two[1]), 1 / 2)]:
        later = [after(posterior, row, fraction, float(surprise)) for surprise in nodes.surprises[:, 0]]
        brute_force = nodes.weights @ [information(chance_of_two(twin, two)) for twin in later]
        assert information_after(draws, np.array([row]), fraction, nodes)[0] == pytest.approx(brute_force, abs=0.01)


def test_no_run_has_a_negative_expected_information_gain() -> None:
    posterior = believed().objective
    two, nodes = two_rivals(posterior), gauss_hermite(5)
    draws = posterior.draws(two, 100_000, [0])
    known = information(chance_of_two(posterior, two))
    for fraction in (1 / 32, 1.0):
        assert (information_after(draws, two, fraction, nodes) > known - 0.01).all()


@pytest.mark.parametrize(("roots", "measured_first"), [(1, False), (3, True)], ids=["as printed", "corrected"])
@pytest.mark.parametrize(
    "constraints", ["cost <= 0.05", ["cost <= 0.05", "time <= 20m"]], ids=["one constraint", "two constraints"]
)
def test_the_chance_of_the_next_recommendation_is_that_of_updated_models(
    roots: int, measured_first: bool, constraints: object
) -> None:
    posteriors = believed(constraints=constraints)
    incumbent = NextIncumbent(posteriors, roots, measured_first=measured_first)
    posterior = posteriors.modelled_constraints()[0].posterior
    assert isinstance(posterior, OutcomePosterior)
    nodes = gauss_hermite(roots, 2)  # both limits are of one model, that of seconds
    contenders, history = incumbent.contenders, posteriors.history
    for row, fraction in [(12, 1 / 32), (200, 1.0)]:
        expected = 0.0
        for (of_level, of_seconds), weight in zip(nodes.surprises, nodes.weights, strict=True):
            level = after(posteriors.objective, row, fraction, of_level).at(1.0, contenders).mean
            seconds = after(posterior, row, fraction, of_seconds).at(1.0, contenders)
            chance = np.ones(len(contenders))
            for limit in posteriors.modelled_constraints():
                chance *= ndtr((limit.level[contenders] - seconds.mean) / seconds.measured_deviation)
            if measured_first:
                chance[np.isin(contenders, list(history.feasible))] = 1.0
                chance[np.isin(contenders, history.infeasible)] = 0.0
            sure = chance >= SURE
            expected += weight * (chance[np.where(sure, level, np.inf).argmin()] if sure.any() else chance.max())
        assert incumbent.chance(np.array([row]), fraction)[0] == pytest.approx(expected, abs=1e-4)


def test_the_acquisition_is_information_times_chance_by_cost() -> None:
    posteriors = printed()
    search, rows = EntropySearch(posteriors, AS_PRINTED), np.array([5, 100, 333])
    known = information_after(search._draws, rows, 1 / 4, gauss_hermite(1))
    cost = posteriors.expected_cost(1 / 4, rows)
    assert search.per_cost(rows, 1 / 4) == pytest.approx(known / cost)
    within = search.per_cost_constrained(rows, 1 / 4)
    assert within == pytest.approx(
        known / cost * NextIncumbent(posteriors, 1, measured_first=False).chance(rows, 1 / 4)
    )


def test_the_current_information_is_subtracted_but_in_print() -> None:
    posteriors, rows = believed(), np.arange(20)
    known = float(information(p_opt(EntropySearch(posteriors, CORRECTED)._draws.values)))
    in_print = EntropySearch(posteriors, AS_PRINTED).per_cost(rows, 1 / 32) * posteriors.expected_cost(1 / 32, rows)
    gain = EntropySearch(posteriors, CORRECTED).per_cost(rows, 1 / 32) * posteriors.expected_cost(1 / 32, rows)
    assert known > 0.0
    assert (gain < in_print).all()


def test_without_constraints_the_chance_is_one() -> None:
    incumbent = NextIncumbent(believed(constraints=()), 3, measured_first=True)
    assert incumbent.chance(np.arange(7), 1.0).tolist() == [1.0] * 7


def test_representer_points_are_feasible_only_in_the_constrained_variant() -> None:
    posteriors = believed(20)
    chance = chance_feasible(posteriors)
    within, anywhere = representer_points(posteriors, CORRECTED), representer_points(posteriors, UNCONSTRAINED)
    assert chance[within].mean() > chance[anywhere].mean()
    assert not set(within.tolist()) & set(posteriors.history.infeasible.tolist())


@pytest.mark.parametrize(
    ("known", "targets", "draws"), [(0.0, 50, 1000), (1.5, 50, 1052), (2.61, 50, 3611), (3.9, 50, 4000), (0.0, 1, 1000)]
)
def test_the_less_is_left_to_know_the_more_draws(known: float, targets: int, draws: int) -> None:
    assert draws_needed(known, targets) == draws


def test_where_information_is_nearly_used_up_runs_are_still_ranked_as_by_many_draws() -> None:
    posteriors, rows = believed(30), np.arange(0, 480, 8)
    points = representer_points(posteriors, CORRECTED)

    def gains(count: int, seed: int) -> np.ndarray:
        draws = posteriors.objective.draws(points, count, [seed])
        return information_after(draws, rows, 1 / 4, gauss_hermite(3)) - information(p_opt(draws.values))

    known = float(information(p_opt(posteriors.objective.draws(points, 1000, [2]).values)))
    exact, few, enough = gains(10_000, 1), gains(200, 2), gains(draws_needed(known, len(points)), 2)
    assert spearmanr(few, exact).statistic < 0.6
    assert spearmanr(enough, exact).statistic > 0.75
