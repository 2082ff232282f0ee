"""The paper's own method: its kernels, its initial design, its recommendations."""

from __future__ import annotations

import numpy as np
import pytest

from shoestring.optimizer.acquisition.cea import cea, chance_feasible
from shoestring.optimizer.acquisition.next_incumbent import SURE
from shoestring.optimizer.as_printed.gp import PrintedFrame
from shoestring.optimizer.as_printed.incumbent import answer, as_printed, as_published, best_unconstrained
from shoestring.optimizer.filters.filters import ByRandom
from shoestring.optimizer.methods.entropy import TrimTunerGpAsPrinted, first_sizes
from shoestring.optimizer.methods.registry import METHODS
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.outcome_model import OutcomePosterior
from shoestring.optimizer.posterior import Posteriors
from tests.optimizer.posteriors import believed, printed
from tests.optimizer.synthetic import FEW, FRACTIONS, LIMIT_USD, optimizer, run, space_for, spent_until_good

OF_ENTROPY = ["trimtuner_gp", "trimtuner_gp_as_printed", "fabolas"]


@pytest.mark.parametrize("falling", [True, False], ids=["objective", "cost"])
def test_the_kernel_is_a_matern_times_a_line_in_the_size(falling: bool) -> None:
    posteriors = printed()
    posterior = posteriors.objective if falling else posteriors.modelled_constraints()[0].posterior
    assert isinstance(posterior, OutcomePosterior)
    process, shape = posterior._gp, posterior.shape
    t = 1.0 - process.points.log_s / np.log(FRACTIONS[0])
    phi = np.stack([np.ones_like(t), (1.0 - t) ** 2 if falling else t], axis=1)
    root = shape.a * np.array([[1.0, 0.0], [shape.b, np.sqrt(shape.c2)]])
    apart = (process.points.x[:, None, :] - process.points.x) / shape.lengths[process.frame.parameter]
    r = np.sqrt(5.0 * (apart**2).sum(axis=2))
    written_out = (1 + r + r**2 / 3) * np.exp(-r) * (phi @ root @ root.T @ phi.T)
    inverse = process.whitener.T @ process.whitener
    covariance = np.linalg.inv(inverse) - np.diag(shape.noise(process.points.p))
    assert covariance == pytest.approx(written_out, abs=1e-6)
    assert isinstance(process.frame, PrintedFrame)


def test_costs_are_modelled_even_where_prices_are_known_and_their_median_counts() -> None:
    posteriors = printed()
    assert posteriors.history.usd_per_hour is None
    (limit,) = posteriors.modelled_constraints()
    assert posteriors.expected_cost(0.25) == pytest.approx(np.exp(limit.posterior.at(0.25).mean))
    assert limit.level == pytest.approx(np.full(len(limit.level), np.log(LIMIT_USD)))


@pytest.mark.parametrize("method", ["trimtuner_gp_as_printed", "fabolas"])
def test_one_configuration_is_run_at_four_sizes_first(method: str) -> None:
    one = optimizer(method=method)
    first = [one.ask() for _ in range(4)]
    assert [suggestion.fraction for suggestion in first] == list(reversed(FRACTIONS[:4]))
    assert all(suggestion.config == first[0].config for suggestion in first)
    for suggestion in first:
        run(one, suggestion)
    assert "initial design" not in one.ask().why
    others = {str(optimizer(method=method, seed=seed).ask().config) for seed in range(5)}
    assert len(others) > 1


@pytest.mark.parametrize("method", ["trimtuner_gp_as_printed", "trimtuner_dt_as_printed"])
def test_a_run_that_reports_smaller_sizes_on_its_way_is_all_of_the_initial_design(method: str) -> None:
    one = optimizer(method=method, space=FEW)
    first = one.ask()
    assert first.fraction == 1 / 2
    for fraction in FRACTIONS[:4]:
        run(one, Suggestion(first.config, fraction))
    assert "initial design" not in one.ask().why


def test_the_initial_design_does_not_end_before_its_largest_size_was_run() -> None:
    """Snapshots of the smaller sizes are more than four observations before the largest was run."""
    config = optimizer(method="trimtuner_gp_as_printed").ask().config
    one = optimizer(method="trimtuner_gp_as_printed")
    for fraction in (1 / 32, 1 / 32, 1 / 8, 1 / 32, 1 / 8, 1 / 4):
        run(one, Suggestion(config, fraction))
    assert one.ask() == Suggestion(config, 1 / 2)


def test_of_many_sizes_the_initial_design_has_the_smallest_and_the_largest_below_full() -> None:
    assert first_sizes(FRACTIONS) == list(FRACTIONS[:4])
    assert first_sizes([1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0]) == [1 / 64, 1 / 16, 1 / 8, 1 / 2]
    assert first_sizes([1 / 4, 1.0]) == [1 / 4]
    assert first_sizes([1.0]) == [1.0]


def test_with_the_full_data_only_the_initial_design_is_one_run() -> None:
    one = optimizer(method="trimtuner_gp_as_printed", fractions=[1.0])
    for _ in range(3):
        run(one, one.ask())
    assert {seen.fraction for seen in one.observations} == {1.0}


def test_in_print_the_best_of_those_sure_to_be_feasible_is_recommended() -> None:
    posteriors = printed(25)
    sure = chance_feasible(posteriors) >= SURE
    assert sure.any()
    row = as_printed(posteriors)
    assert sure[row]
    assert posteriors.objective.at(1.0).mean[row] == posteriors.objective.at(1.0).mean[sure].min()


def test_in_print_if_none_is_sure_constrained_expected_accuracy_decides() -> None:
    posteriors = printed(25, constraints="cost <= 0.00001")
    assert chance_feasible(posteriors).max() < SURE
    assert as_printed(posteriors) == int(cea(posteriors, 1.0).argmax())


def test_the_published_code_recommends_only_what_was_run() -> None:
    posteriors = printed(25)
    visited = sorted(set(posteriors.history.rows))
    row = as_published(posteriors)
    assert row in visited
    assert cea(posteriors, 1.0)[row] == cea(posteriors, 1.0)[visited].max()


@pytest.mark.parametrize("kind", [believed, printed], ids=["our models", "the paper's"])
def test_an_answer_has_what_was_measured_and_predicts_the_rest(kind: object) -> None:
    posteriors: Posteriors = kind(25)  # type: ignore[operator]
    history = posteriors.history
    (measured, seen), *_ = history.feasible.items()
    assert answer(posteriors, measured).measured
    assert answer(posteriors, measured).objective == seen.objective
    row = next(row for row in range(len(history.candidates)) if row not in history.measured)
    assert not answer(posteriors, row).measured
    assert posteriors.objective.at(1.0).mean[best_unconstrained(posteriors)] == posteriors.objective.at(1.0).mean.min()


@pytest.mark.parametrize("method", OF_ENTROPY)
def test_several_pending_suggestions_differ_and_take_each_other_into_account(method: str) -> None:
    one = optimizer(method=method, space=space_for(method))
    for _ in range(5):
        run(one, one.ask())
    found = [one.ask() for _ in range(3)]
    assert len({(str(suggestion.config), suggestion.fraction) for suggestion in found}) == 3


def test_filters_and_incumbents_can_be_chosen() -> None:
    one = optimizer(method=TrimTunerGpAsPrinted(ByRandom(0.02), as_published))
    for _ in range(6):
        run(one, one.ask())
    assert one.best().config in [seen.config for seen in one.observations]


def test_corrected_it_finds_the_optimum_for_less_than_full_data_runs() -> None:
    mended = spent_until_good(optimizer(method="trimtuner_gp"), 0.97, budget_usd=0.5)
    assert mended < 0.5
    assert mended <= spent_until_good(optimizer(method="eic"), 0.97, budget_usd=0.5)


def test_fabolas_suggests_the_same_whatever_the_constraints() -> None:
    strict, lax = (optimizer(method="fabolas", space=FEW, constraints=f"cost <= {usd}") for usd in (0.001, 10.0))
    for _ in range(7):
        suggestion = strict.ask()
        assert suggestion == lax.ask()
        run(strict, suggestion)
        run(lax, suggestion)
    assert strict.best().config == lax.best().config


def test_expected_improvement_alone_uses_the_full_data() -> None:
    one = optimizer(method="ei")
    for _ in range(6):
        run(one, one.ask())
    assert {seen.fraction for seen in one.observations} == {1.0}
    assert set(OF_ENTROPY) <= set(METHODS)
