"""Filters: for which runs the acquisition is computed, and what they find."""

from __future__ import annotations

import numpy as np
import pytest

from shoestring.optimizer.acquisition.cea import cea
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.filters.cmaes import ByCmaes, Cmaes
from shoestring.optimizer.filters.direct import ByDirect, Cube
from shoestring.optimizer.filters.filters import ByCea, ByRandom, Filter, LazyAcquisition, NoFilter, allowance
from tests.optimizer.posteriors import believed
from tests.optimizer.synthetic import FRACTIONS

BELIEFS = believed()
X = BELIEFS.history.candidates.x
LIMITED = [ByCea(0.1), ByRandom(0.1), ByCmaes(0.1), ByDirect(0.1)]


def hill(rows: Rows, fraction: float) -> Numbers:
    """Largest at a corner of the space, on a quarter of the data."""
    return np.exp(-((X[rows] - 1.0) ** 2).sum(axis=1) - abs(fraction - 0.25))


def test_the_acquisition_is_computed_lazily_and_once_for_each_run() -> None:
    asked: list[tuple[int, float]] = []

    def counted(rows: Rows, fraction: float) -> Numbers:
        asked.extend((int(row), fraction) for row in rows)
        return hill(rows, fraction)

    worth = LazyAcquisition(BELIEFS, counted)
    runs = np.array([12, 3, 12, 40])
    assert worth(runs) == pytest.approx([hill(np.array([run // 5]), FRACTIONS[run % 5])[0] for run in runs])
    worth(runs[:2])
    assert len(asked) == len(set(asked)) == worth.evaluated == 3


def test_without_a_filter_the_best_of_all_untried_runs_is_found() -> None:
    worth = LazyAcquisition(BELIEFS, hill)
    best = NoFilter().best(worth)
    assert worth.evaluated == len(worth.untried)
    assert worth(np.array([best]))[0] == worth(worth.untried).max()


@pytest.mark.parametrize("limited", LIMITED, ids=lambda limited: type(limited).__name__)
def test_no_filter_exceeds_its_allowance_by_much_or_evaluates_tried_runs(limited: Filter) -> None:
    worth = LazyAcquisition(BELIEFS, hill)
    best = limited.best(worth)
    assert best in worth.untried
    assert worth.evaluated <= allowance(worth, 0.1) + 12  # of a generation that was begun


@pytest.mark.parametrize("limited", [ByCmaes(0.1), ByDirect(0.1)], ids=["CMA-ES", "DIRECT"])
def test_optimisers_find_a_run_among_the_best_few_of_a_smooth_acquisition(limited: Filter) -> None:
    worth = LazyAcquisition(BELIEFS, hill)
    found = worth(np.array([limited.best(worth)]))[0]
    assert (worth(worth.untried) > found).mean() < 0.01


@pytest.mark.parametrize("limited", LIMITED, ids=lambda limited: type(limited).__name__)
def test_a_filter_finds_the_same_again(limited: Filter) -> None:
    assert limited.best(LazyAcquisition(BELIEFS, hill)) == limited.best(LazyAcquisition(BELIEFS, hill))


def test_cea_keeps_the_share_with_the_largest_constrained_expected_accuracy() -> None:
    worth = LazyAcquisition(BELIEFS, hill)
    ByCea(0.02).best(worth)
    promise = np.stack([cea(BELIEFS, fraction) for fraction in FRACTIONS], axis=1).ravel()
    evaluated = np.array([run for run in worth.untried if worth.knows(np.array([run]))])
    others = np.setdiff1d(worth.untried, evaluated)
    assert len(evaluated) == allowance(worth, 0.02)
    assert promise[evaluated].min() >= promise[others].max()


def test_every_point_of_the_cube_maps_to_an_untried_run_and_every_run_to_itself() -> None:
    worth = LazyAcquisition(BELIEFS, hill)
    cube = Cube(worth)
    rng = np.random.default_rng(0)
    assert all(cube.run(point) in worth.untried for point in rng.random((50, cube.dimensions)))
    sizes = {cube.run(np.array([0.0, 0.0, 0.0, 0.0, size])) % 5 for size in (0.0, 0.25, 0.5, 0.75, 1.0)}
    assert sizes == {0, 1, 2, 3, 4}


def test_the_evolution_strategy_finds_the_bottom_of_a_narrow_valley() -> None:
    search = Cmaes(4, np.random.default_rng(0))
    bottom, steep = np.array([0.2, 0.7, 0.5, 0.9]), np.array([1.0, 10.0, 100.0, 1000.0])
    for _ in range(150):
        points = search.ask()
        search.tell(points, ((points - bottom) ** 2 * steep).sum(axis=1))
    assert points.mean(axis=0) == pytest.approx(bottom, abs=0.01)
