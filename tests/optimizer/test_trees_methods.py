"""Entropy search by trees: what joint samples add to the trees of the paper, and whole searches."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from scipy.special import ndtr

from shoestring.optimizer.acquisition.next_incumbent import SURE, NextIncumbent
from shoestring.optimizer.acquisition.p_opt import information, information_after, p_opt
from shoestring.optimizer.acquisition.quadrature import gauss_hermite
from shoestring.optimizer.methods.tree_entropy import PrintedTreePosteriors, TreePosteriors, TrimTunerDt
from shoestring.optimizer.observations import FULL, Suggestion
from shoestring.optimizer.optimizer import Optimizer
from shoestring.optimizer.posterior import Posteriors
from tests.optimizer.synthetic import FEW, LIMIT_USD, optimizer, quality, run, spent_until_good, usd

METHODS = ("trimtuner_dt", "trimtuner_dt_as_printed")


def told(runs: int, **changes: object) -> Optimizer:
    """An optimiser that knows of some runs sampled at random, large and small."""
    asked, rng = optimizer(**changes), np.random.default_rng(0)
    configs = asked._history().candidates.configs
    fractions = asked._history().problem.fractions
    for row in rng.choice(len(configs), runs, replace=False):
        run(asked, Suggestion(configs[row], float(rng.choice(fractions))))
    return asked


def gained(posteriors: Posteriors, fraction: float, roots: int) -> np.ndarray:
    """The information gain of a run of each candidate on this fraction, about the best at full size."""
    every = np.arange(len(posteriors.history.candidates))
    draws = posteriors.objective.draws(every[::5], 200, [1])
    return information_after(draws, every, fraction, gauss_hermite(roots)) - information(p_opt(draws.values))


@pytest.mark.parametrize("roots", [1, 3])
def test_without_covariances_no_run_on_a_data_fraction_has_information_about_the_best(roots: int) -> None:
    posteriors = PrintedTreePosteriors(told(24)._history(), {})
    for fraction in posteriors.history.problem.fractions[:-1]:
        assert np.abs(gained(posteriors, fraction, roots)).max() < 1e-12


def test_in_print_trees_are_trained_again_with_what_a_run_is_expected_to_measure() -> None:
    posteriors = PrintedTreePosteriors(told(24)._history(), {})
    rows, targets = np.array([7, 200]), np.arange(0, 480, 60)
    (limit,) = posteriors.modelled_constraints()
    for posterior in (posteriors.objective, limit.posterior):
        fantasy = posterior.fantasy(rows, 1 / 8, targets)
        for place, row in enumerate(rows):
            twin = copy.deepcopy(posterior)
            twin.expecting(int(row), 1 / 8)
            assert fantasy.mean(0.0)[place] == pytest.approx(twin.at(FULL, targets).mean)
            assert fantasy.measured_deviation(0.0)[place] == pytest.approx(twin.at(FULL, targets).measured_deviation)
        assert not np.allclose(fantasy.mean(0.0)[0], posterior.at(FULL, targets).mean), "a run elsewhere moves nothing"


def test_the_chance_of_the_next_recommendation_in_print_is_that_of_trees_trained_again() -> None:
    posteriors = PrintedTreePosteriors(told(24)._history(), {})
    incumbent = NextIncumbent(posteriors, 1, measured_first=False)
    (limit,) = posteriors.modelled_constraints()
    level, spent = copy.deepcopy((posteriors.objective, limit.posterior))
    level.expecting(33, 1 / 8)
    spent.expecting(33, 1 / 8)
    after = spent.at(FULL, incumbent.contenders)
    chance = ndtr((limit.level[incumbent.contenders] - after.mean) / after.measured_deviation)
    best = np.where(chance >= SURE, level.at(FULL, incumbent.contenders).mean, math.inf).argmin()
    expected = chance[best] if chance.max() >= SURE else chance.max()
    assert incumbent.chance(np.array([33]), 1 / 8)[0] == pytest.approx(expected)


def test_with_joint_samples_a_run_on_a_data_fraction_has_information_about_the_best() -> None:
    posteriors = TreePosteriors(told(24)._history(), {})
    small, full = (gained(posteriors, fraction, 3) for fraction in (1 / 4, FULL))
    assert np.mean(small > 1e-3) > 0.2
    assert full.mean() > small.mean() > 0.0


def test_trees_find_a_good_configuration_for_less_than_one_run_costs_and_those_in_print_do_not() -> None:
    corrected, printed = (spent_until_good(optimizer(method=name, seed=1), 0.9, 1.5 * LIMIT_USD) for name in METHODS)
    assert corrected < LIMIT_USD < printed


def test_it_continues_from_its_memory() -> None:
    asked = told(10, method="trimtuner_dt")
    history = asked._history()
    first, later = TrimTunerDt(), TrimTunerDt()
    choice = first.choose(history)
    later.recall(first.memory())
    run(asked, Suggestion(history.candidates.configs[choice.row], choice.fraction))
    assert later.choose(asked._history()) == first.choose(asked._history())


def test_the_paper_begins_with_one_configuration_at_four_sizes_and_ours_with_four_at_the_smallest() -> None:
    corrected, printed = (optimizer(method=name, seed=2) for name in METHODS)
    first = []
    for asked in (corrected, printed):
        first.append([asked.ask() for _ in range(4)])
    assert {suggestion.fraction for suggestion in first[0]} == {1 / 32}
    assert len({str(suggestion.config) for suggestion in first[0]}) == 4
    assert [suggestion.fraction for suggestion in first[1]] == [1 / 2, 1 / 4, 1 / 8, 1 / 32]
    assert len({str(suggestion.config) for suggestion in first[1]}) == 1


def test_what_was_measured_to_violate_a_constraint_is_not_recommended_by_ours() -> None:
    asked = optimizer(method="trimtuner_dt", seed=3)
    for _ in range(14):
        run(asked, asked.ask())
        broken = [seen.config for seen in asked.observations if seen.fraction == FULL and usd(seen.config) > LIMIT_USD]
        assert asked.best().config not in broken
    assert quality(asked.best().config) > 0.8


@pytest.mark.parametrize("method", METHODS)
def test_odd_histories_do_no_harm(method: str) -> None:
    asked = optimizer(method=method, space=FEW, constraints=["cost <= 0.05", "latency <= 20"])
    for number in range(7):
        suggestion = asked.ask()
        if number % 3 == 2:
            asked.tell(suggestion, seconds=30.0, killed=True)
        else:
            asked.tell(suggestion, error=math.nan if number == 1 else 0.3, seconds=60.0, latency=5.0)
    assert 0.0 <= asked.best().probability <= 1.0
    alone = Optimizer([{"rate": 1}], minimize="error", method=method, fractions=[0.5])
    for _ in range(2):
        suggestion = alone.ask()
        alone.tell(suggestion, error=0.1)
        if suggestion.fraction == FULL:
            break
    assert alone.best().config == {"rate": 1}
