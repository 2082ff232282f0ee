"""A part of the run time that does not shrink with the data: runs on small fractions are not all ended too soon."""

from __future__ import annotations

import math
from itertools import product

import pytest

import shoestring as ss
from shoestring.policies.search.constraints.judge import ENDED
from shoestring.values import Config
from shoestring.world.sim.measured_table import MeasuredRun, table_workload

FRACTIONS = (1 / 16, 1 / 4, 1.0)
SPACE = {"rate": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3], "width": [16, 32, 64, 128], "dropout": [0.0, 0.2, 0.5]}
CONFIGS: list[Config] = [dict(zip(SPACE, values, strict=True)) for values in product(*SPACE.values())]


def error(config: Config, fraction: float = 1.0) -> float:
    rate, width, dropout = (float(config[name] or 0) for name in SPACE)
    return 0.05 + 0.1 * abs(math.log10(rate / 0.03)) + 1 / width + 0.1 * abs(dropout - 0.2) + 0.02 * fraction**-0.5


def study(fixed_s: float = 120.0, **changes: object) -> ss.Study:
    """72 configurations. Each takes at most 7.5 of the ten minutes it may take."""
    runs = [
        MeasuredRun(
            config=config,
            fraction=part,
            seconds=fixed_s + (200 + float(config["width"] or 0)) * part,
            metrics={"error": error(config, part)},
        )
        for config in CONFIGS
        for part in FRACTIONS
    ]
    asked: dict[str, object] = {
        "workload": table_workload(runs),
        "space": SPACE,
        "minimize": "error",
        "recipe": "trimtuner",
        "constraints": ["time <= 10m"],
        "fractions": FRACTIONS,
        "trials": 14,
        "max_steps": 1,
        "budget": "$20",
        "deadline": "2d",
    }
    return ss.simulate(**{**asked, **changes})


@pytest.mark.parametrize("seed", range(3))
def test_where_every_configuration_satisfies_the_limit_hardly_a_trial_is_ended_and_the_answer_is_good(
    seed: int,
) -> None:
    assert len(CONFIGS) == 72
    found = study(seed=seed)
    assert found.state.by_status["finished"] == 12
    answer = found.answer
    assert answer is not None
    assert answer.feasible
    assert any(trial.fraction == 1.0 for trial in found.trials)
    ranked = sorted(CONFIGS, key=error)
    assert ranked.index(answer.config) < len(ranked) // 4


def test_most_of_the_limit_may_be_fixed() -> None:
    found = study(fixed_s=250.0)
    assert found.state.by_status["pruned"] <= 3
    assert found.best is not None


def test_an_answer_that_is_empty_says_why() -> None:
    """No configuration can satisfy this limit."""
    found = study(fixed_s=700.0)
    assert found.answer is None
    assert all(ENDED in job.tags for job in found.state.jobs.values())
    assert "14 of 14 trials were ended because of seconds <= 10m, the longest after 10m" in found.without_best
    assert found.to_plain()["without_best"] == found.without_best
