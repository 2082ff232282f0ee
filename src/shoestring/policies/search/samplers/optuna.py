"""Configurations proposed by one of Optuna's samplers: `sampler: optuna:tpe`.

No state is kept between two samples. An in-memory Optuna study is rebuilt from the run's state, used for one `ask` and
discarded, so that a controller that has only the journal proposes the same. Samplers with a state of their own beside
the trials (the populations of CmaEsSampler and NSGAIISampler) cannot be supported that way.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shoestring.errors import SpecError, need
from shoestring.kernel.records import Settled
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.samplers.protocol import SampledConfig
from shoestring.space.parameters import Choice, Constant, Float, Int, Parameter
from shoestring.space.space import Space
from shoestring.values import Config, did_you_mean

LEARN = {"tpe": "TPESampler", "gp": "GPSampler"}
"""All that these know is in the trials: each sample uses a new instance."""
COUNT = {"qmc": "QMCSampler"}
"""This one only counts: the tenth trial gets the tenth point, whatever the results of the others."""


@dataclass(frozen=True)
class OptunaSampler:
    """Trials are passed on with Optuna's states: finished ones as COMPLETE with their value, those paused or pruned on
    a rung as PRUNED at that step, those without a result yet as RUNNING, failed and diverged ones as FAIL."""

    sampler: str = "TPESampler"
    """A class of `optuna.samplers`."""

    @classmethod
    def named(cls, name: str) -> OptunaSampler:
        """By short name or class; fails at once if the library, or what the sampler itself needs, is absent."""
        short = LEARN | COUNT
        sampler = short.get(name.lower(), name)
        if sampler not in short.values():
            raise SpecError(
                f"options.sampler='optuna:{name}' is not a sampler of Optuna's that can be rebuilt from a journal",
                hint=did_you_mean(name, [*short, *short.values()]),
            )
        if sampler == "GPSampler":
            need("torch", extra="optuna")
        need("optuna", extra="optuna")
        return cls(sampler)

    def draw(self, state: RunView, job: JobId) -> SampledConfig:
        optuna = need("optuna", extra="optuna")
        learns = self.sampler in LEARN.values()
        seed = state.fixed_rng(f"optuna:{job}" if learns else "optuna").getrandbits(32)
        known = 0
        with _quietly(optuna):
            sampler = _make(getattr(optuna.samplers, self.sampler), seed)
            study = optuna.create_study(sampler=sampler, direction=state.spec.direction)
            if learns:
                known = _add_trials(optuna, study, state)
            else:
                for _ in state.jobs:
                    suggested(study.ask(), state.spec.space)
            config = suggested(study.ask(), state.spec.space)
        return SampledConfig(config, f"proposed by Optuna's {self.sampler}{f' from {known} trials' if known else ''}")


# -- the trials so far --------------------------------------------------------------------------------------------
def _add_trials(optuna: Any, study: Any, state: RunView) -> int:
    """Add all trials to the study; returns how many of them have settled."""
    space = state.spec.space
    kinds = {name: _distribution(optuna, param) for name, param in space.params.items() if param.width}
    last = {rest.job: rest for rest in state.settled if rest.status != "paused" or rest.step >= rest.until_step}
    for job in state.jobs.values():
        rest = last.get(job.id)
        outcome = _outcome(rest)
        value = None if rest is None else rest.value
        # a trial given by the user may lie outside the space
        params = {name: job.config[name] for name in kinds if name in job.config}
        params = {name: value for name, value in params.items() if space.params[name].holds(value)}
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState[outcome],
                value=value if outcome == "COMPLETE" else None,
                params=params,
                distributions={name: kinds[name] for name in params},
                intermediate_values={rest.step: value} if outcome == "PRUNED" and rest is not None else {},
            )
        )
    return len(last)


def _outcome(rest: Settled | None) -> str:
    """The name of an Optuna `TrialState`."""
    if rest is None:
        return "RUNNING"
    if rest.status == "failed" or rest.value is None or math.isnan(rest.value):
        return "FAIL"
    return "COMPLETE" if rest.status == "finished" else "PRUNED"


# -- the space -------------------------------------------------------------------------------------------------------
def suggested(trial: Any, space: Space) -> Config:
    """A configuration, parents first, so that it is known what is active."""
    config: Config = {}
    for name, param in space.params.items():
        if param.when and not param.active(config):
            continue
        match param:
            case Constant():
                config[name] = param.value
            case Choice():
                config[name] = trial.suggest_categorical(name, param.options)
            case Int():
                config[name] = trial.suggest_int(name, param.low, param.high, log=param.log)
            case Float():
                config[name] = trial.suggest_float(name, param.low, param.high, log=param.log)
    return config


def _distribution(optuna: Any, param: Parameter) -> Any:
    kinds = optuna.distributions
    match param:
        case Float():
            return kinds.FloatDistribution(param.low, param.high, log=param.log)
        case Int():
            return kinds.IntDistribution(param.low, param.high, log=param.log)
        case Choice():
            return kinds.CategoricalDistribution(param.options)


# -- calling Optuna ---------------------------------------------------------------------------------------------------
def _make(kind: Any, seed: int) -> Any:
    """A sampler that knows that trials run in parallel, or a sequence that starts elsewhere with every seed."""
    usual = {"seed": seed, "constant_liar": True, "scramble": True}
    taken = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in usual.items() if name in taken})


@contextmanager
def _quietly(optuna: Any) -> Iterator[None]:
    """No log line for a study that is made for one sample, and no warning about experimental features."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)
