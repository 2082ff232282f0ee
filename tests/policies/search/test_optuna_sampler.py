"""Optuna's samplers as search: the same space, the current trials, and no state kept between samples."""

from __future__ import annotations

import math
import random
import sys
from statistics import median

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shoestring import recipes
from shoestring.errors import MissingExtra, SpecError
from shoestring.kernel import decisions as d
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.halving.asha import Asha
from shoestring.policies.search.halving.hyperband import Hyperband
from shoestring.policies.search.halving.successive import SuccessiveHalving
from shoestring.policies.search.run_to_completion import RandomSearch, Sampled
from shoestring.policies.search.samplers.model_based import TpeSampler
from shoestring.policies.search.samplers.optuna import OptunaSampler, _add_trials, _quietly
from shoestring.space.space import Float, Int
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC, Story
from tests.policies.search.studies import finish, running, study
from tests.policies.search.test_tpe import MIXED
from tests.space.test_space import spaces

optuna = pytest.importorskip("optuna")

TPE, QMC = OptunaSampler("TPESampler"), OptunaSampler("QMCSampler")


def optuna_trials(run: Story) -> list:
    """The study that Optuna would be shown now."""
    with _quietly(optuna):
        shown = optuna.create_study(direction=run.spec.direction)
        _add_trials(optuna, shown, run.view)
    return shown.get_trials()


# -- drawing -------------------------------------------------------------------------------------------------------
def test_tpe_learns_where_good_trials_lie() -> None:
    run = study(Sampled(TPE), trials=40)
    while jobs := running(run):
        finish(run, jobs[0], abs(run.state.jobs[jobs[0]].config["x"] - 0.3))
    distances = [abs(job.config["x"] - 0.3) for job in run.state.jobs.values()]
    assert median(distances[20:]) < 0.1  # chance: 0.27
    origins = [x.why for entry in run.entries for x in entry.decisions if isinstance(x, d.AddJob)]
    assert origins[-1].endswith("proposed by Optuna's TPESampler from 36 trials")


def test_tpe_learns_from_trials_that_were_stopped_early() -> None:
    run = study(Asha(eta=2, sampler=TPE), trials=60, direction="maximize")
    while jobs := running(run):
        finish(run, jobs[0], -abs(run.state.jobs[jobs[0]].config["x"] - 0.8))
    late = [abs(job.config["x"] - 0.8) for job in list(run.state.jobs.values())[30:]]
    assert median(late) < 0.15  # chance: 0.34


def test_a_sequence_covers_the_space_evenly_whatever_the_values_are() -> None:
    first, second = (study(Sampled(QMC), trials=33, places=3) for _ in range(2))
    for run, value in ((first, 1.0), (second, 0.0)):
        while jobs := running(run):
            finish(run, jobs[-1], value)
    drawn = [job.config["x"] for job in first.state.jobs.values()]
    assert drawn == [job.config["x"] for job in second.state.jobs.values()]
    assert {int(x * 16) for x in drawn[1:]} == set(range(16))


@settings(max_examples=25, deadline=None)
@given(spaces(), st.integers(0, 2**32))
def test_samples_are_always_in_the_space(space, seed: int) -> None:
    ranges = [param for param in space.params.values() if isinstance(param, Int | Float)]
    # Optuna's floats break beyond, and its squares overflow
    most = {Int: 2**40, Float: 1e150}
    assume(all(max(abs(param.low), abs(param.high)) < most[type(param)] for param in ranges))
    run = study(Sampled(TPE), space=space, trials=14, places=2, seed=seed)
    values = random.Random(seed)
    while jobs := running(run):
        finish(run, jobs[0], values.random())
    for job in run.state.jobs.values():
        space.check(job.config)


def test_conditional_parameters_come_and_go_with_their_parents() -> None:
    run = study(Sampled(TPE), space=MIXED, trials=30)
    while jobs := running(run):
        config = run.state.jobs[jobs[0]].config
        assert ("momentum" in config) == (config["kind"] == "sgd")
        assert config["seed"] == 7
        finish(run, jobs[0], abs(config.get("momentum", 2.0) - 0.9))
    assert sum(job.config["kind"] == "sgd" for job in list(run.state.jobs.values())[15:]) > 10


# -- the trials passed to Optuna ---------------------------------------------------------------------------------------
def test_the_space_is_passed_to_optuna_unchanged() -> None:
    run = study(
        Sampled(TPE), space=MIXED, given=({"kind": "sgd", "lr": 0.1, "momentum": 0.6, "batch": 9, "layers": 2},)
    )
    trial = optuna_trials(run)[0]
    kinds = optuna.distributions
    assert trial.distributions == {
        "kind": kinds.CategoricalDistribution(("sgd", "adam", "rms")),
        "lr": kinds.FloatDistribution(1e-6, 1.0, log=True),
        "momentum": kinds.FloatDistribution(0.5, 0.99),
        "batch": kinds.IntDistribution(8, 512, log=True),
        "layers": kinds.IntDistribution(1, 6),
    }
    assert trial.params == {"kind": "sgd", "lr": 0.1, "momentum": 0.6, "batch": 9, "layers": 2}


def test_trials_are_passed_as_complete_pruned_running_or_failed() -> None:
    run = study(Asha(sampler=TPE), trials=6, places=6, max_failures=0)
    finish(run, "j0", 0.1)
    finish(run, "j1", 0.5)
    finish(run, "j2", math.nan)
    run.end("j3", "failed", step=0)
    trials = optuna_trials(run)
    assert [trial.state.name for trial in trials] == ["PRUNED", "PRUNED", "FAIL", "FAIL", "RUNNING", "RUNNING"]
    assert [trial.intermediate_values for trial in trials[:2]] == [{1: 0.1}, {1: 0.5}]
    whole = study(Sampled(TPE), trials=2, places=1)
    finish(whole, "j0", 0.25)
    assert [(trial.state.name, trial.value) for trial in optuna_trials(whole)] == [
        ("COMPLETE", 0.25),
        ("RUNNING", None),
    ]


def test_a_trial_that_was_given_may_lie_outside_the_space() -> None:
    run = study(Sampled(TPE), given=({"x": 7.0},), trials=4, places=1)
    finish(run, "j0", 0.1)
    assert optuna_trials(run)[0].params == {}
    assert 0 <= run.state.jobs["j1"].config["x"] <= 1


# -- nothing is kept -----------------------------------------------------------------------------------------------
def test_a_draw_leaves_optuna_as_it_was() -> None:
    before = optuna.logging.get_verbosity()
    study(Sampled(TPE), trials=3)
    assert optuna.logging.get_verbosity() == before


class _Sampled(PolicySuite):
    seeds = (1, 2)

    def policies(self, spec: RunSpec):
        return recipes.build(spec)


class TestAshaWithOptunasTpe(_Sampled):
    spec = replace(SPEC, recipe="asha", trials=14, options={"sampler": "optuna:tpe"})


class TestRandomWithASequence(_Sampled):
    spec = replace(SPEC, recipe="random", trials=8, options={"sampler": "optuna:QMCSampler"})


# -- by name -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("recipe", "sampler", "search"),
    [
        ("random", "random", RandomSearch()),
        ("random", "tpe", Sampled(TpeSampler())),
        ("random", "optuna:tpe", Sampled(TPE)),
        ("random", "optuna:QMC", Sampled(QMC)),
        ("asha", "optuna:TPESampler", Asha(sampler=TPE)),
        ("asha", "random", Asha()),
        ("hyperband", "optuna:tpe", Hyperband(sampler=TPE)),
        ("successive_halving", "tpe", SuccessiveHalving(sampler=TpeSampler())),
    ],
)
def test_a_recipe_takes_its_sampler_by_name(recipe: str, sampler: str, search) -> None:
    assert recipes.build(replace(SPEC, recipe=recipe, options={"sampler": sampler}))[0] == search


@pytest.mark.parametrize(
    ("sampler", "says", "hint"),
    [
        ("optuna", "options.sampler='optuna' is unknown", "optuna:tpe"),
        ("tpee", "options.sampler='tpee' is unknown", "tpe"),
        ("optuna:TPESamplr", "is not a sampler of Optuna's that can be rebuilt", "TPESampler"),
        ("optuna:CmaEsSampler", "is not a sampler of Optuna's that can be rebuilt", "Sampler"),
        (3, "options.sampler=3 is not text", "quotes"),
    ],
)
def test_an_unknown_sampler_is_an_error_with_a_hint(sampler, says: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        recipes.build(replace(SPEC, recipe="asha", options={"sampler": sampler}))
    assert says in str(caught.value)
    assert hint in caught.value.hint


def test_without_the_library_the_line_to_type_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra) as caught:
        recipes.build(replace(SPEC, recipe="asha", options={"sampler": "optuna:tpe"}))
    assert "shoestring[optuna]" in caught.value.hint


def test_sampled_trials_cannot_be_ranked_without_a_metric() -> None:
    bag = replace(SPEC, kind="bag", metric=None, given=({"x": 0.5},), options={"sampler": "tpe"})
    with pytest.raises(SpecError, match="no metric"):
        recipes.build(replace(bag, recipe="random"))
