"""Data fractions of a training function: nested, the same in all trials, and reported one by one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.trial import ReportError, Trial
from shoestring.worker.subsampling import FractionError, smaller_fraction, subsample

FRACTIONS = st.floats(min_value=1e-6, max_value=1.0)
SEEDS = st.integers(0, 2**63)
SIZES = st.integers(1, 2000)


class Host:
    def __init__(self):
        self.reports = []
        self.snapshots = []

    def leaving(self):
        return False

    def save_due(self, _step):
        return False

    def reported(self, step, metrics):
        self.reports.append((step, metrics))

    def snapshot(self, step, fraction, metrics):
        self.snapshots.append((step, fraction, metrics))


def trial_on(fraction=1.0, *, host=None, until_step=2, **more):
    return Trial(job="j0", config={}, until_step=until_step, host=host or Host(), fraction=fraction, **more)


@given(n=SIZES, fractions=st.lists(FRACTIONS, min_size=2, max_size=4).map(sorted), seed=SEEDS)
def test_fractions_are_nested(n, fractions, seed):
    subsets = [subsample(n, fraction, seed) for fraction in fractions]
    for small, large in pairwise(subsets):
        assert np.array_equal(small, large[: len(small)])


@given(n=SIZES, fraction=FRACTIONS, seed=SEEDS)
def test_a_subset_has_the_size_of_its_fraction_and_is_never_empty(n, fraction, seed):
    subset = subsample(n, fraction, seed)
    assert len(subset) == max(1, round(fraction * n))
    assert len(set(subset.tolist())) == len(subset)
    assert set(subset.tolist()) <= set(range(n))


@given(n=SIZES, fraction=FRACTIONS, seed=SEEDS)
def test_two_trials_of_a_run_draw_the_same_samples(n, fraction, seed):
    one, other = (trial_on(fraction, seed=seed).subsample(n) for _ in range(2))
    assert np.array_equal(one, other)


def test_the_full_fraction_is_a_permutation_of_the_data():
    drawn = trial_on(seed=3).subsample(1000)
    assert sorted(drawn.tolist()) == list(range(1000))
    assert drawn.tolist() != list(range(1000))


def test_another_seed_draws_other_samples():
    assert trial_on(0.1, seed=1).subsample(1000).tolist() != trial_on(0.1, seed=2).subsample(1000).tolist()


def test_samples_stay_the_same_from_version_to_version():
    """A run resumed with a newer shoestring, or another NumPy, must not change its data."""
    assert subsample(10, 0.5, seed=7).tolist() == [8, 0, 7, 2, 1]


def test_a_smaller_fraction_than_its_own_is_possible_and_a_larger_one_is_not():
    trial = trial_on(0.5, seed=5)
    assert trial.subsample(100, 0.1).tolist() == trial.subsample(100)[:10].tolist()
    assert len(trial.subsample(100, 0.5)) == 50
    with pytest.raises(FractionError, match=r"fraction=1 is more than this trial's fraction, which is 0\.5"):
        trial.subsample(100, 1.0)


@pytest.mark.parametrize("n", [0, -3])
def test_no_samples_cannot_be_subsampled(n):
    with pytest.raises(FractionError, match=f"cannot subsample {n} samples"):
        trial_on().subsample(n)


def test_a_snapshot_is_reported_at_once_and_counts_as_no_step():
    host = Host()
    trial = trial_on(host=host, until_step=1, fractions=(1 / 16, 1 / 4))
    for _ in trial.steps():
        for fraction in trial.fractions:
            trial.report(loss=1 - fraction, fraction=fraction)
        assert [fraction for _, fraction, _ in host.snapshots] == [1 / 16, 1 / 4]
        trial.report(loss=0.0, fraction=trial.fraction)
    assert host.snapshots == [(1, 1 / 16, {"loss": 15 / 16}), (1, 1 / 4, {"loss": 3 / 4})]
    assert host.reports == [(1, {"loss": 0.0})]


def test_a_custom_loop_does_not_count_snapshots():
    host = Host()
    trial = trial_on(host=host, fractions=(0.25,))
    trial.report(loss=0.5, fraction=0.25)
    trial.report(loss=0.4)
    assert (host.snapshots, host.reports) == ([(0, 0.25, {"loss": 0.5})], [(1, {"loss": 0.4})])


def test_a_snapshot_is_no_report_of_the_metric():
    trial = trial_on()
    trial.report(loss=0.5, fraction=0.25)
    assert trial.metric_names == set()


def test_a_snapshot_that_was_not_requested_is_not_reported():
    """Such as one reported before an interruption, by code with fixed fractions."""
    host = Host()
    trial = trial_on(host=host, fractions=(0.25,))
    for fraction in (0.0625, 0.25):
        trial.report(loss=0.5, fraction=fraction)
    assert (host.snapshots, host.reports) == ([(0, 0.25, {"loss": 0.5})], [])


def test_a_rounded_fraction_matches_the_requested_one():
    host = Host()
    trial = trial_on(host=host, fractions=(1 / 60, 1 / 10))
    trial.report(loss=0.5, fraction=0.01667)
    trial.report(loss=0.4, fraction=np.float32(0.1))
    assert [fraction for _, fraction, _ in host.snapshots] == [1 / 60, 1 / 10]


@given(own=FRACTIONS, requested=FRACTIONS)
def test_a_requested_fraction_is_smaller_equal_or_an_error(own, requested):
    try:
        subset = smaller_fraction(own, requested)
    except FractionError:
        assert requested > own
    else:
        assert requested <= own * 1.002
        assert subset in (None, requested)


@pytest.mark.parametrize(
    ("fraction", "message"),
    [
        (0.0, "fraction=0.0 is not a data fraction"),
        (-0.5, "fraction=-0.5 is not a data fraction"),
        (1.5, "fraction=1.5 is not a data fraction"),
        (float("nan"), "fraction=nan is not a data fraction"),
        (0.75, "fraction=0.75 is more than this trial's fraction, which is 0.5"),
    ],
)
def test_an_impossible_fraction_is_an_error(fraction, message):
    with pytest.raises(FractionError, match=message):
        trial_on(0.5).report(loss=1.0, fraction=fraction)


def test_a_fraction_must_be_a_number():
    with pytest.raises(ReportError, match="metric 'fraction' is 'half'"):
        trial_on().report(loss=1.0, fraction="half")
