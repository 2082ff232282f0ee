"""Small studies with known answers."""

from __future__ import annotations

import math
from typing import Any

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)

LEAST_OF_BRANIN = 0.397887
FRACTIONS = [1 / 16, 1 / 4, 1]


def branin(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    bend = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def study(sampler: optuna.samplers.BaseSampler, **more: Any) -> optuna.Study:
    return optuna.create_study(sampler=sampler, **more)


def params(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]
