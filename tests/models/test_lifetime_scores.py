"""Models are scored on held-out machines, and released machines are censored there too."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.datasets import data_folder
from benchmarks.lifetimes import gain_error
from shoestring.errors import SpecError
from shoestring.models.lifetimes.families import Exponential, Weibull
from shoestring.models.lifetimes.fit import DEFAULT, fit
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.models.lifetimes.records import read_lifetimes
from shoestring.models.lifetimes.scores import cross_validated, folds, ks_of_shares
from tests.models.lifetime_machines import machines

H = HOUR_S
TRUTH = Weibull(scale_s=100 * H, shape=0.5, limit_s=24 * H)


def test_every_machine_is_held_out_once_and_days_stay_together() -> None:
    seen = machines(TRUTH, 300, days=20)
    parts = folds(seen, 5)
    assert sorted(np.concatenate(parts).tolist()) == list(range(300))
    days = np.floor(seen.launched_at / 86400)
    for part in parts:
        others = np.setdiff1d(np.arange(300), part)
        assert not set(days[part]) & set(days[others])
        assert 40 <= len(part) <= 80


def test_machines_of_one_day_are_split_one_by_one() -> None:
    parts = folds(machines(TRUTH, 20, days=1), 5)
    assert [len(part) for part in parts] == [4] * 5
    with pytest.raises(SpecError, match="3 machines cannot be split into 5 folds"):
        folds(machines(TRUTH, 3), 5)


def test_the_true_model_has_a_small_ks_however_many_are_censored() -> None:
    seen = machines(TRUTH, 3000, given_back_after_s=10 * H, days=100)
    parts = folds(seen, 2)
    assert cross_validated(lambda _: TRUTH, seen, parts).ks < 0.03
    wrong = cross_validated(lambda _: Exponential(scale_s=20 * H), seen, parts)
    assert wrong.ks > 0.2


def test_the_distance_is_kolmogorovs_where_none_is_censored() -> None:
    shares = np.array([0.1, 0.2, 0.9])
    # after the second of three, two thirds are gone where a fifth was foretold
    assert ks_of_shares(shares, shares, np.ones(3, dtype=bool)) == pytest.approx(2 / 3 - 0.2)


def test_the_true_model_scores_best() -> None:
    seen = machines(TRUTH, 500, given_back_after_s=20 * H)
    parts = folds(seen, 3)
    right = cross_validated(partial(fit, "weibull_atom"), seen, parts)
    wrong = cross_validated(partial(fit, "exponential"), seen, parts)
    assert right.log_likelihood > wrong.log_likelihood + 3 * gain_error(right, wrong)


def test_on_published_lifetimes_the_default_beats_the_papers_fit() -> None:
    path = data_folder() / "google_preemptible_2019.csv.gz"
    if not path.exists():
        pytest.skip(f"{path} is missing: set SHOESTRING_DATA to the folder that has it")
    seen = read_lifetimes(path)
    parts = folds(seen, 3)
    default, paper = (cross_validated(partial(fit, name), seen, parts) for name in (DEFAULT, "bathtub_printed"))
    assert default.log_likelihood - paper.log_likelihood >= 0.15
    assert default.ks <= 0.05
    # the paper's own statement, with its own procedure: early deaths fill A, and F is well below 1 at 24 h
    assert 0.4 < float(fit("bathtub_printed", seen).cdf(12 * H)) < 0.5
    assert 0.5 < float(fit("bathtub_printed", seen).cdf(24 * H)) < 0.7
