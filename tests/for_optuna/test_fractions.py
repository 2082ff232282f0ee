"""Trials on data fractions: which they use, and what is recommended from them."""

from __future__ import annotations

import pytest

pytest.importorskip("optuna")
import optuna

from shoestring.for_optuna import TrimTunerSampler
from tests.for_optuna.studies import FRACTIONS, params, study


def sized(sampler: TrimTunerSampler):
    def objective(trial: optuna.Trial) -> float:
        fraction = sampler.fraction(trial)
        error = 0.05 + abs(trial.suggest_float("x", 0, 1) - 0.3)
        assert sampler.fraction(trial) == fraction
        return error * fraction**-0.2

    return objective


def test_it_learns_from_small_fractions_and_recommends_for_the_full_data() -> None:
    sampler = TrimTunerSampler(seed=0, fractions=FRACTIONS)
    run = study(sampler)
    run.optimize(sized(sampler), n_trials=20)
    used = [sampler.fraction(trial) for trial in run.trials]
    assert used[:4] == [1 / 16] * 4
    assert set(used) <= set(FRACTIONS)
    assert 1 in used
    answer = sampler.best(run)
    assert answer.config["x"] == pytest.approx(0.3, abs=0.05)


def test_the_fraction_may_be_read_before_the_parameters_or_after() -> None:
    before, after = (TrimTunerSampler(seed=0, fractions=FRACTIONS) for _ in range(2))
    first, second = study(before), study(after)

    def late(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return (0.05 + abs(x - 0.3)) * after.fraction(trial) ** -0.2

    first.optimize(sized(before), n_trials=8)
    second.optimize(late, n_trials=8)
    assert params(first) == params(second)


def test_an_enqueued_trial_runs_on_the_full_data_or_on_its_own_fraction() -> None:
    sampler = TrimTunerSampler(seed=0, fractions=FRACTIONS)
    run = study(sampler)
    run.enqueue_trial({"x": 0.9})
    run.enqueue_trial({"x": 0.8}, user_attrs={"fraction": 0.25})
    run.optimize(sized(sampler), n_trials=3)
    assert [(trial.params["x"], sampler.fraction(trial)) for trial in run.trials[:2]] == [(0.9, 1.0), (0.8, 0.25)]


def test_without_fractions_every_trial_uses_the_full_data() -> None:
    sampler = TrimTunerSampler(seed=0)
    run = study(sampler)
    assert sampler.fraction(run.ask()) == 1.0
    assert TrimTunerSampler(fractions=FRACTIONS).fraction(optuna.trial.FixedTrial({})) == 1.0


def test_where_trials_share_no_parameter_they_use_the_full_data() -> None:
    sampler = TrimTunerSampler(seed=0, fractions=FRACTIONS)
    run = study(sampler)
    run.optimize(lambda trial: sampler.fraction(trial) + trial.suggest_float(f"x{trial.number}", 0, 1), n_trials=4)
    assert [sampler.fraction(trial) for trial in run.trials] == [1 / 16, 1 / 16, 1, 1]
