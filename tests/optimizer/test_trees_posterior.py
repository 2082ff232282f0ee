"""The posterior by trees: extrapolated trends, calibrated variances, joint runs, and updates near a new run."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoestring.optimizer.as_printed.trees import PrintedTreePosterior
from shoestring.optimizer.candidates import Candidates, of_table
from shoestring.optimizer.observations import FULL
from shoestring.optimizer.outcome_model import ERROR, SPENDING, OutcomeData
from shoestring.optimizer.transforms import Transform
from shoestring.optimizer.trees.posterior import TREES, TreePosterior

LOG = Transform(True, floor=1e-4)
FRACTIONS = (1 / 32, 1 / 8, 1 / 2, 1.0)
CANDIDATES: Candidates = of_table([{"rate": rate, "kind": kind} for rate in range(12) for kind in ("a", "b", "c")])
EVERY = np.arange(len(CANDIDATES))


def level(rows: np.ndarray, fraction: float | np.ndarray) -> np.ndarray:
    """The logarithm of an error that falls with the data, by the exponent that is expected of errors."""
    rate, kind = CANDIDATES.x[rows, 0], CANDIDATES.x[rows, 1:] @ np.array([0.0, 0.4, 1.0])
    return -3.0 + 4.0 * (rate - 0.6) ** 2 + kind - 0.3 * np.log(fraction)


def told(rows: list[int], fractions: list[float], noise: float = 0.0, killed: int = 0) -> OutcomeData:
    """The last `killed` of them were ended early."""
    at, s = np.array(rows, dtype=np.intp), np.array(fractions)
    levels = level(at, s) + noise * np.random.default_rng(0).standard_normal(len(at))
    return OutcomeData(at, np.log(s), levels, np.arange(len(at)) >= len(at) - killed)


def some(count: int, fractions: tuple[float, ...], noise: float = 0.0, seed: int = 1) -> OutcomeData:
    rng = np.random.default_rng(seed)
    return told(rng.integers(len(CANDIDATES), size=count).tolist(), rng.choice(fractions, count).tolist(), noise)


def believed(measured: OutcomeData, seed: int = 0) -> TreePosterior:
    return TreePosterior(measured, LOG, ERROR, CANDIDATES, FRACTIONS[0], [seed])


def test_a_trend_is_extrapolated_which_trees_in_print_cannot() -> None:
    measured = some(40, FRACTIONS[:2])
    ours, printed = believed(measured).at(FULL), PrintedTreePosterior(measured, LOG, CANDIDATES, [0]).at(FULL)
    truth = level(EVERY, FULL)
    assert abs((ours.mean - truth).mean()) < 0.15
    assert (printed.mean - truth).mean() > 0.5
    assert (printed.mean >= measured.levels.min()).all()


def test_far_from_the_observed_fractions_the_variance_is_larger_and_a_full_run_reduces_it() -> None:
    small = believed(some(12, FRACTIONS[:1]))
    assert (small.at(FULL).deviation > small.at(FRACTIONS[0]).deviation).mean() > 0.9
    # the exponent alone leaves so much doubt
    assert small.at(FULL).deviation.min() > 0.5 * ERROR.spread * math.log(32)
    both = told([*range(0, 36, 3)] * 2, [FRACTIONS[0]] * 12 + [FULL] * 12)
    assert np.median(believed(both).at(FULL).deviation) < 0.5 * np.median(small.at(FULL).deviation)


def test_predictions_are_calibrated() -> None:
    for seed, noise in ((2, 0.0), (3, 0.3)):
        ahead = believed(some(40, FRACTIONS, noise, seed)).at(FULL)
        off = np.abs(ahead.mean - level(EVERY, FULL)) / ahead.measured_deviation
        assert 0.6 < (off < 1.0).mean()
        assert (off < 3.0).mean() > 0.97


def test_noise_is_what_trees_cannot_explain() -> None:
    calm, loud = (believed(some(150, FRACTIONS, noise)).noise for noise in (0.0, 0.6))
    assert calm < 0.15
    assert loud == pytest.approx(0.6, abs=0.25)


def test_a_censored_run_counts_as_what_others_predict_if_that_is_more() -> None:
    transform, rows = Transform(True, floor=1e-9), [0, 3, 6, 9, 12, 15, 18, 21, 15]
    seconds = np.array([5.0, 5.1, 5.2, 5.0, 4.9, 5.1, 5.0, 5.2, 1.0])
    killed = OutcomeData(np.array(rows), np.zeros(9), seconds, np.arange(9) == 8)
    whole = OutcomeData(np.array(rows), np.zeros(9), seconds, np.zeros(9, dtype=bool))
    ended, believing = (TreePosterior(one, transform, SPENDING, CANDIDATES, 1.0, [0]) for one in (killed, whole))
    assert ended.at(FULL).mean[15] > 4.7 > believing.at(FULL).mean[15]
    alone = OutcomeData(np.array([4]), np.zeros(1), np.array([2.0]), np.ones(1, dtype=bool))
    assert TreePosterior(alone, transform, SPENDING, CANDIDATES, 1.0, [0]).at(FULL).mean[4] == pytest.approx(
        2.0, abs=0.2
    )


def test_joint_statistics_are_computed_over_the_trees() -> None:
    posterior = believed(some(25, FRACTIONS))
    draws = posterior.draws(EVERY, TREES, [1]).values
    ahead = posterior.at(FULL)
    assert draws.mean(axis=0) == pytest.approx(ahead.mean, abs=1e-4)
    assert np.sqrt(np.diag(posterior.covariance(EVERY, FULL, EVERY, FULL))) == pytest.approx(ahead.deviation, abs=1e-6)
    assert np.cov(draws.T, ddof=0) == pytest.approx(posterior.covariance(EVERY, FULL, EVERY, FULL), abs=1e-4)
    across = posterior.covariance(EVERY, FRACTIONS[1], EVERY, FULL)
    own = np.diag(across) / (posterior.at(FRACTIONS[1]).deviation * ahead.deviation)
    assert np.median(own) > 0.3  # runs on a part of the data tell of the run on all of it
    assert posterior.at(FULL, EVERY[3:5]).mean.tolist() == ahead.mean[3:5].tolist()


def test_the_same_seed_gives_the_same_posterior() -> None:
    one, same, other = (believed(some(20, FRACTIONS), seed).at(FULL).mean for seed in (4, 4, 5))
    assert (one == same).all()
    assert (one != other).any()


def test_one_more_run_moves_the_draws_of_what_is_near_towards_it_and_leaves_the_rest() -> None:
    posterior = believed(some(20, FRACTIONS))
    rows, draws = np.array([3, 20]), posterior.draws(EVERY, 3 * TREES, [2])
    down, same, up = draws.conditioned(rows, FULL, [-2.0, 0.0, 2.0])
    assert up.shape == (2, 3 * TREES, len(CANDIDATES))
    for place, row in enumerate(rows):
        assert same[place][:, row].std() < 0.8 * draws.values[:, row].std()
        assert down[place][:, row].mean() < same[place][:, row].mean() < up[place][:, row].mean()
        apart = posterior.leaves(FULL)[:, None, :] != posterior.leaves(FULL)[row]
        never = EVERY[apart[:, 0].all(axis=1)]
        assert (up[place][:, never] == draws.values[:, never]).all()


def test_draws_move_about_as_those_of_trees_that_are_grown_anew() -> None:
    measured = some(20, FRACTIONS)
    moved, anew = [], []
    for seed in range(6):
        posterior, row = believed(measured, seed), 7
        ahead = posterior.at(FULL)
        draws = posterior.draws(EVERY, TREES, [seed])
        (after,) = draws.conditioned(np.array([row]), FULL, [2.0])
        moved.append(after[0].mean(axis=0) - draws.values.mean(axis=0))
        value = ahead.mean[row] + 2.0 * ahead.measured_deviation[row]
        more = OutcomeData(
            np.append(measured.rows, row),
            np.append(measured.log_s, 0.0),
            np.append(measured.levels, value),
            np.append(measured.at_least, False),
        )
        anew.append(believed(more, seed + 100).at(FULL).mean - ahead.mean)
    ours, theirs = np.mean(moved, axis=0), np.mean(anew, axis=0)
    assert ours[7] == pytest.approx(theirs[7], rel=0.5)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.6


def test_a_pending_run_keeps_its_mean_and_reduces_variance() -> None:
    posterior = believed(some(20, FRACTIONS))
    before = posterior.at(FULL)
    posterior.expecting(7, FULL)
    after = posterior.at(FULL)
    assert after.mean[7] == pytest.approx(before.mean[7], abs=0.3 * before.deviation[7])
    assert after.deviation[7] < 0.8 * before.deviation[7]


def test_a_single_observation_is_enough_for_a_prediction() -> None:
    posterior = believed(told([5], [FULL]))
    ahead = posterior.at(FULL)
    assert ahead.mean == pytest.approx(level(np.array([5]), FULL)[0], abs=0.2)
    assert (ahead.deviation > 0.0).all()
    assert np.isfinite(posterior.at(FRACTIONS[0]).mean).all()
