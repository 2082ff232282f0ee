"""Curves are recorded once, and again when they would be others."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import workload_curves
from benchmarks.workload_curves import curves


@pytest.fixture(autouse=True)
def _made_up_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOESTRING_DATA", str(tmp_path))


def test_curves_are_trained_once_and_then_read(tmp_path: Path) -> None:
    first = curves("trees", (15,), tmp_path / "cache")
    assert first.values.shape == first.step_s.shape == (40, 1)
    assert first.values[-1, 0] < first.values[0, 0]
    assert (first.metric, first.stages, first.configs[0]["depth"]) == ("mse", [()], 3)
    again = curves("trees", (15,), tmp_path / "cache")
    assert again.step_s.tolist() == first.step_s.tolist()  # nobody trains twice in the same time


def test_more_configurations_are_added_to_those_there_are(tmp_path: Path) -> None:
    one = curves("trees", (15,), tmp_path)
    two = curves("trees", (13, 15), tmp_path)
    assert two.values.shape == (40, 2)
    assert two.step_s[:, 1].tolist() == one.step_s[:, 0].tolist()


def test_other_data_make_other_curves(tmp_path: Path) -> None:
    without = workload_curves._Source("linear").digest
    (tmp_path / "mnist_10k.npz").touch()
    assert workload_curves._Source("linear").digest != without
