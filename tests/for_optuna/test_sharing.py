"""One study with several workers: running trials, threads, processes on one storage, copies of the sampler."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path

import pytest

pytest.importorskip("optuna")
import optuna

from shoestring.for_optuna import TrimTunerSampler
from tests.for_optuna.studies import FRACTIONS, branin, params, study


def test_running_trials_are_taken_into_account() -> None:
    space = {"x": optuna.distributions.FloatDistribution(0, 1), "y": optuna.distributions.FloatDistribution(0, 1)}
    run = study(TrimTunerSampler(seed=0))
    for _ in range(5):
        trial = run.ask(space)
        run.tell(trial, sum(trial.params.values()))
    asked = [tuple(run.ask(space).params.values()) for _ in range(4)]
    assert min(math.dist(a, b) for a in asked for b in asked if a is not b) > 0.01


def test_several_threads_share_a_study() -> None:
    run = study(TrimTunerSampler(seed=0))
    run.optimize(branin, n_trials=12, n_jobs=3)
    assert len(run.trials) == 12
    assert len({str(each) for each in params(run)}) == 12


def test_workers_that_share_a_storage_learn_from_each_other(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(storage=storage, study_name="shared")
    workers = [
        optuna.load_study(
            storage=storage, study_name="shared", sampler=TrimTunerSampler(seed=seed, fractions=FRACTIONS)
        )
        for seed in range(2)
    ]
    first = workers[0].ask()
    branin(first)
    workers[0].tell(first, 1.0)
    pending = [worker.ask() for worker in workers]
    values = [branin(trial) for trial in pending]
    assert values[0] != values[1]
    for worker, trial, value in zip(workers, pending, values, strict=True):
        worker.tell(trial, value)
    for _ in range(3):
        for worker in workers:
            worker.optimize(branin, n_trials=1)
    fractions = [trial.user_attrs["fraction"] for trial in workers[0].trials]
    assert len(fractions) == 9
    assert fractions[:4] == [1 / 16] * 4
    answers = [worker.sampler.best(worker) for worker in workers]
    assert len(answers) == 2


def test_assigned_parameters_are_stored_with_the_trial_until_suggested() -> None:
    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    run = study(TrimTunerSampler(seed=0))
    first = run.ask(space)
    run.tell(first, 0.5)
    trial = run.ask()
    frozen = run._storage.get_trial(trial._trial_id)
    drawn = [run.sampler.sample_relative(run, frozen, space) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert trial.suggest_float("x", 0, 1) == drawn[0]["x"]


def test_it_can_be_pickled_and_copied_and_continues() -> None:
    run = study(TrimTunerSampler(seed=0))
    run.optimize(branin, n_trials=3)
    for sampler in (pickle.loads(pickle.dumps(run.sampler)), copy.deepcopy(run.sampler)):
        run.sampler = sampler
        run.optimize(branin, n_trials=1)
    assert len(run.trials) == 5


def test_reseeding_suggests_something_else() -> None:
    found = []
    for reseed in (False, True):
        sampler = TrimTunerSampler(seed=0, independent_sampler=optuna.samplers.RandomSampler(seed=0))
        run = study(sampler)
        run.optimize(branin, n_trials=1)
        if reseed:
            sampler.reseed_rng()
        run.optimize(branin, n_trials=1)
        found.append(params(run))
    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]
