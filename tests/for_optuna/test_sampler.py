"""The sampler in whole studies: it learns, handles failed and pruned trials, and satisfies constraints."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("optuna")
import optuna

from shoestring.errors import SpecError
from shoestring.for_optuna import TrimTunerSampler
from shoestring.for_optuna.chooser import Chooser
from tests.for_optuna.studies import LEAST_OF_BRANIN, branin, params, study


# -- it learns -------------------------------------------------------------------------------------------------------
def test_it_comes_close_to_the_optimum_in_few_trials() -> None:
    run = study(TrimTunerSampler(seed=0))
    run.optimize(branin, n_trials=25)
    assert run.best_value < LEAST_OF_BRANIN + 0.5  # by lot: 2 to 3 above


def test_it_maximises_as_well() -> None:
    run = study(TrimTunerSampler(seed=0), direction="maximize")
    run.optimize(lambda trial: -abs(trial.suggest_float("x", 0, 1) - 0.3), n_trials=12)
    assert run.best_params["x"] == pytest.approx(0.3, abs=0.05)


def test_the_same_seed_suggests_the_same_and_another_one_something_else() -> None:
    runs = []
    for seed in (1, 1, 2):
        runs.append(study(TrimTunerSampler(seed=seed)))
        runs[-1].optimize(branin, n_trials=7)
    assert params(runs[0]) == params(runs[1])
    assert params(runs[0])[-1] != params(runs[2])[-1]


def test_trials_are_read_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    tell = Chooser._tell
    monkeypatch.setattr(Chooser, "_tell", lambda self, run, trial: (read.append(trial.number), tell(self, run, trial)))
    run = study(TrimTunerSampler(seed=0))
    run.optimize(branin, n_trials=9)
    assert read == list(range(8))


def test_one_sampler_may_serve_one_study_after_another() -> None:
    sampler = TrimTunerSampler(seed=0)
    first, second = study(sampler), study(sampler, direction="maximize")
    for run, objective in ((first, branin), (second, lambda trial: trial.suggest_int("z", 0, 99)), (first, branin)):
        run.optimize(objective, n_trials=4)
    assert (len(first.trials), len(second.trials)) == (8, 4)
    assert sampler.best(first).config == first.best_params
    assert sampler.best(second).config.keys() == {"z"}


# -- trials that do not come to their end ----------------------------------------------------------------------------
@pytest.mark.parametrize("broken", [lambda: math.nan, lambda: 1 / 0], ids=["nan", "raises"])
def test_it_avoids_regions_where_trials_fail(broken: Any) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return broken() if x > 0.5 else x

    run = study(TrimTunerSampler(seed=0))
    run.optimize(objective, n_trials=14, catch=ZeroDivisionError)
    assert [trial.state.name for trial in run.trials[6:]].count("FAIL") <= 2
    assert len({trial.params["x"] for trial in run.trials}) == 14  # the same failure is not asked for again


def test_a_trial_that_fails_before_it_suggests_anything_does_no_harm() -> None:
    run = study(TrimTunerSampler(seed=0))
    run.optimize(branin, n_trials=2)
    run.optimize(lambda _trial: 1 / 0, n_trials=1, catch=ZeroDivisionError)
    run.optimize(branin, n_trials=3)
    assert [trial.state.name for trial in run.trials].count("COMPLETE") == 5


def test_pruned_trials_are_learned_from() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for step in range(3):
            trial.report(abs(x - 0.3) + 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return abs(x - 0.3)

    run = study(TrimTunerSampler(seed=0), pruner=optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=1))
    run.optimize(objective, n_trials=16)
    assert {trial.state.name for trial in run.trials} == {"COMPLETE", "PRUNED"}
    assert run.best_value < 0.05


def test_brackets_of_hyperband_do_not_hide_trials_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    tell = Chooser._tell
    monkeypatch.setattr(Chooser, "_tell", lambda self, run, trial: (read.append(trial.number), tell(self, run, trial)))
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3)
    run = study(TrimTunerSampler(seed=0), pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        value = branin(trial)
        trial.report(value, 9)
        return value

    run.optimize(objective, n_trials=8)
    assert read == list(range(7))


# -- spaces as the objective makes them ------------------------------------------------------------------------------
def test_conditional_parameters_are_sampled_independently() -> None:
    def objective(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
        if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd":
            return abs(math.log10(rate) + 2) + 1 - trial.suggest_float("momentum", 0, 1)
        return abs(math.log10(rate) + 3) + 0.8

    sampler = TrimTunerSampler(seed=0)
    run = study(sampler)
    run.optimize(objective, n_trials=20)
    answer = sampler.best(run)
    assert run.best_value < 0.9
    assert (answer.config, answer.objective) == (run.best_params, run.best_value)
    assert ("momentum" in answer.config) == (answer.config["optimizer"] == "sgd")


def test_names_and_choices_may_be_anything() -> None:
    def objective(trial: optuna.Trial) -> float:
        layers = trial.suggest_categorical("hidden layers", [(64,), (64, 32), None])
        return trial.suggest_float("lr/1", 0, 1) + trial.suggest_float("LR/1", 0, 1) + len(layers or ())

    run = study(TrimTunerSampler(seed=0))
    with pytest.warns(UserWarning, match="Choices for a categorical distribution"):
        run.optimize(objective, n_trials=12)
    assert run.best_params["hidden layers"] is None


def test_an_exhausted_space_still_gives_suggestions() -> None:
    run = study(TrimTunerSampler(seed=0))
    run.optimize(lambda trial: trial.suggest_int("x", 0, 2), n_trials=8)
    assert {trial.params["x"] for trial in run.trials} == {0, 1, 2}


def test_numbers_too_large_for_the_models_are_sampled_independently() -> None:
    run = study(TrimTunerSampler(seed=0))
    run.optimize(lambda trial: trial.suggest_int("x", 0, 2**60) * 1e-18 + trial.suggest_float("y", 0, 1), n_trials=6)
    assert len(run.trials) == 6


# -- limits ----------------------------------------------------------------------------------------------------------
def wide_is_good_but_slow(trial: optuna.Trial) -> tuple[float, float]:
    width = trial.suggest_float("width", 1, 100, log=True)
    return 1 / width + 0.01 * trial.suggest_float("rate", 0, 1), width / 2


def test_our_constraints_are_satisfied() -> None:
    def objective(trial: optuna.Trial) -> float:
        error, latency = wide_is_good_but_slow(trial)
        trial.set_user_attr("latency", latency)
        return error

    sampler = TrimTunerSampler(seed=0, constraints="latency <= 20")
    run = study(sampler)
    run.optimize(objective, n_trials=20)
    answer = sampler.best(run)
    assert answer.feasible
    assert answer.objective < 1 / 30  # the best that keeps the limit: 1 / 40


@pytest.mark.parametrize("form", ["constraints_func", "set_constraint"])
def test_optunas_constraints_are_satisfied(form: str) -> None:
    if form == "set_constraint" and not hasattr(optuna.Trial, form):
        pytest.skip("this release of Optuna has constraints_func only")

    def objective(trial: optuna.Trial) -> float:
        error, latency = wide_is_good_but_slow(trial)
        trial.set_user_attr("latency", latency)
        if form == "set_constraint":
            trial.set_constraint("latency", latency - 20)
        return error

    func = (lambda trial: [trial.user_attrs["latency"] - 20]) if form == "constraints_func" else None
    sampler = TrimTunerSampler(seed=0, constraints_func=func)
    run = study(sampler)
    run.optimize(objective, n_trials=16)
    answer = sampler.best(run)
    assert answer.feasible
    assert answer.config["width"] <= 40
    assert answer.objective < 1 / 20


def test_a_constraint_on_an_unreported_metric_ends_the_study_with_an_error() -> None:
    run = study(TrimTunerSampler(seed=0, constraints="latency <= 20"))
    with pytest.raises(SpecError, match="latency has a constraint"):
        run.optimize(branin, n_trials=3)
    assert len(run.trials) == 1


def test_a_constraint_that_is_nan_ends_the_study_with_an_error() -> None:
    run = study(TrimTunerSampler(seed=0, constraints_func=lambda _trial: [math.nan]))
    with pytest.raises(SpecError, match="constraints_func returns NaN for trial 0"):
        run.optimize(branin, n_trials=3)


def test_prices_depend_on_parameters_that_every_trial_has() -> None:
    sampler = TrimTunerSampler(seed=0, usd_per_hour=lambda params: 0.1 * params["x"], constraints="cost <= $1")

    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("seconds", 3600)
        return -trial.suggest_int("x", 1, 100) - trial.suggest_float("y", 0, 1)

    run = study(sampler)
    run.optimize(objective, n_trials=14)
    (cost,) = sampler.best(run).constraints
    assert 0.7 <= cost.value <= 1.0
    lost = study(TrimTunerSampler(seed=0, usd_per_hour=lambda params: params["machines"]))
    with pytest.raises(SpecError, match="usd_per_hour uses 'machines'") as caught:
        lost.optimize(branin, n_trials=2)
    assert "x, y" in caught.value.hint
    free = study(TrimTunerSampler(seed=0, usd_per_hour=lambda params: 0 * params["x"]))
    with pytest.raises(SpecError, match=r"usd_per_hour is -?0.0 for \{'x': "):
        free.optimize(branin, n_trials=2)


# -- what it refuses -------------------------------------------------------------------------------------------------
def test_several_objectives_are_refused_with_a_hint() -> None:
    run = study(TrimTunerSampler(seed=0), directions=["minimize", "maximize"])
    with pytest.raises(SpecError, match="optimizes one objective, and this study has 2") as caught:
        run.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=1)
    assert "constraints=" in caught.value.hint


def test_nothing_is_recommended_before_a_trial_has_completed() -> None:
    sampler = TrimTunerSampler(seed=0)
    with pytest.raises(SpecError, match="no trial has completed"):
        sampler.best(study(sampler))


@pytest.mark.parametrize("wrong", [{"fractions": [0, 1]}, {"fractions": [2]}, {"constraints": "latency below 3"}])
def test_bad_options_are_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        TrimTunerSampler(**wrong)


def test_without_the_library_the_install_command_is_named() -> None:
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "try:\n    import shoestring.for_optuna\n"
        "except ImportError as error:\n    print(error.hint)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "pip install 'shoestring[optuna]'"
