"""Parts of the data, as a training function sees them: nested, the same everywhere, and told of one by one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.trial import ReportError, Trial
from shoestring.worker.subsampling import FractionError, part_of, subsample

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
def test_each_part_is_the_beginning_of_the_next(n, fractions, seed):
    parts = [subsample(n, fraction, seed) for fraction in fractions]
    for small, large in pairwise(parts):
        assert np.array_equal(small, large[: len(small)])


@given(n=SIZES, fraction=FRACTIONS, seed=SEEDS)
def test_a_part_is_as_large_as_its_fraction_says_and_never_empty(n, fraction, seed):
    part = subsample(n, fraction, seed)
    assert len(part) == max(1, round(fraction * n))
    assert len(set(part.tolist())) == len(part)
    assert set(part.tolist()) <= set(range(n))


@given(n=SIZES, fraction=FRACTIONS, seed=SEEDS)
def test_two_trials_of_a_run_draw_the_same_samples(n, fraction, seed):
    one, other = (trial_on(fraction, seed=seed).subsample(n) for _ in range(2))
    assert np.array_equal(one, other)


def test_all_of_the_data_is_all_of_it_in_another_order():
    drawn = trial_on(seed=3).subsample(1000)
    assert sorted(drawn.tolist()) == list(range(1000))
    assert drawn.tolist() != list(range(1000))


def test_another_seed_draws_others():
    assert trial_on(0.1, seed=1).subsample(1000).tolist() != trial_on(0.1, seed=2).subsample(1000).tolist()


def test_samples_stay_the_same_from_version_to_version():
    """A run that goes on with a newer shoestring, or another NumPy, must not change its data."""
    assert subsample(10, 0.5, seed=7).tolist() == [8, 0, 7, 2, 1]


def test_a_smaller_part_than_its_own_can_be_had_and_a_larger_one_not():
    trial = trial_on(0.5, seed=5)
    assert trial.subsample(100, 0.1).tolist() == trial.subsample(100)[:10].tolist()
    assert len(trial.subsample(100, 0.5)) == 50
    with pytest.raises(FractionError, match=r"fraction=1 is more than this trial has, which is 0\.5 of the data"):
        trial.subsample(100, 1.0)


@pytest.mark.parametrize("n", [0, -3])
def test_there_is_no_part_of_nothing(n):
    with pytest.raises(FractionError, match=f"no part of {n} samples"):
        trial_on().subsample(n)


def test_a_report_of_a_smaller_part_is_told_at_once_and_is_none_of_the_steps():
    host = Host()
    trial = trial_on(host=host, until_step=1, fractions=(1 / 16, 1 / 4))
    for _ in trial.steps():
        for fraction in trial.fractions:
            trial.report(loss=1 - fraction, fraction=fraction)
        assert [fraction for _, fraction, _ in host.snapshots] == [1 / 16, 1 / 4]
        trial.report(loss=0.0, fraction=trial.fraction)
    assert host.snapshots == [(1, 1 / 16, {"loss": 15 / 16}), (1, 1 / 4, {"loss": 3 / 4})]
    assert host.reports == [(1, {"loss": 0.0})]


def test_a_loop_of_ones_own_does_not_count_reports_of_smaller_parts():
    host = Host()
    trial = trial_on(host=host, fractions=(0.25,))
    trial.report(loss=0.5, fraction=0.25)
    trial.report(loss=0.4)
    assert (host.snapshots, host.reports) == ([(0, 0.25, {"loss": 0.5})], [(1, {"loss": 0.4})])


def test_reports_of_smaller_parts_are_no_report_of_the_metric():
    trial = trial_on()
    trial.report(loss=0.5, fraction=0.25)
    assert trial.metric_names == set()


def test_a_part_that_nobody_wants_to_know_of_is_not_told():
    """Such as one told before an interruption, by code that has its parts written into it."""
    host = Host()
    trial = trial_on(host=host, fractions=(0.25,))
    for fraction in (0.0625, 0.25):
        trial.report(loss=0.5, fraction=fraction)
    assert (host.snapshots, host.reports) == ([(0, 0.25, {"loss": 0.5})], [])


def test_a_fraction_with_a_few_digits_is_the_one_that_was_meant():
    host = Host()
    trial = trial_on(host=host, fractions=(1 / 60, 1 / 10))
    trial.report(loss=0.5, fraction=0.01667)
    trial.report(loss=0.4, fraction=np.float32(0.1))
    assert [fraction for _, fraction, _ in host.snapshots] == [1 / 60, 1 / 10]


@given(own=FRACTIONS, asked=FRACTIONS)
def test_a_number_is_a_smaller_part_or_all_that_there_is_or_too_much(own, asked):
    try:
        part = part_of(own, asked)
    except FractionError:
        assert asked > own
    else:
        assert asked <= own * 1.002
        assert part in (None, asked)


@pytest.mark.parametrize(
    ("fraction", "message"),
    [
        (0.0, "fraction=0.0 is no part of the data"),
        (-0.5, "fraction=-0.5 is no part of the data"),
        (1.5, "fraction=1.5 is no part of the data"),
        (float("nan"), "fraction=nan is no part of the data"),
        (0.75, "fraction=0.75 is more than this trial has, which is 0.5 of the data"),
    ],
)
def test_a_part_that_there_cannot_be_is_an_error(fraction, message):
    with pytest.raises(FractionError, match=message):
        trial_on(0.5).report(loss=1.0, fraction=fraction)


def test_a_fraction_must_be_a_number():
    with pytest.raises(ReportError, match="metric 'fraction' is 'half'"):
        trial_on().report(loss=1.0, fraction="half")
