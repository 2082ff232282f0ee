"""The study of Optuna's in the examples: a machine that reads digits, and is small enough."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("optuna")
pytest.importorskip("sklearn")

EXAMPLE = Path(__file__).parents[2] / "examples" / "optuna_study.py"


def test_it_finds_a_small_model_from_parts_of_the_data() -> None:
    answer, study = runpy.run_path(str(EXAMPLE))["search"](trials=16)
    assert answer.feasible
    assert answer.objective < 0.1
    assert sum(trial.user_attrs["fraction"] for trial in study.trials) < 8
