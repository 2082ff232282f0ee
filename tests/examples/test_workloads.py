"""The example workloads: sixteen configurations that learn, correct gradients, and above all resumed trials that equal
uninterrupted ones to the bit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoestring as ss
from shoestring.kernel.types import Config, Metrics
from shoestring.space.space import from_plain
from shoestring.trial import Trial
from shoestring.worker.loading import load_function

FOLDER = Path(__file__).parents[2] / "examples" / "workloads"
NAMES = ("logistic", "svm", "trees", "linear", "mlp", "cnn")


class Host:
    """Leaves after a given number of steps, and saves when it leaves."""

    def __init__(self, folder: Path, leave_after: int | None = None) -> None:
        self._folder, self._leave_after = folder, leave_after
        self.values: list[float] = []
        self.checkpoint: Path | None = None
        self.step = 0

    def leaving(self) -> bool:
        return len(self.values) == self._leave_after

    def save_due(self, step: int) -> bool:
        return step == self._leave_after

    def reported(self, step: int, metrics: Metrics) -> None:  # noqa: ARG002
        (value,) = metrics.values()
        self.values.append(value)

    def folder(self) -> Path:
        making = self._folder / "making"
        making.mkdir()
        return making

    def saved(self, step: int, folder: Path, began: float) -> None:  # noqa: ARG002
        self.checkpoint, self.step = self._folder / f"step{step}", step
        shutil.copytree(folder, self.checkpoint)


def workload(name: str) -> dict[str, Any]:
    return load_function(f"{name}.py:train", FOLDER).__globals__


@pytest.fixture(scope="module")
def few_pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few images in the files of the real ones: enough for these tests."""
    folder = tmp_path_factory.mktemp("pictures")
    generated = workload("linear")["fashion"].__globals__["generated"](train=1500, test=300)
    train_x, test_x = ((255 * x).astype(np.uint8) for x in (generated.train_x, generated.test_x))
    np.savez(
        folder / "fashion_mnist_20k_5k.npz",
        x_train=train_x,
        y_train=generated.train_y,
        x_test=test_x,
        y_test=generated.test_y,
    )
    np.savez(folder / "mnist_10k.npz", x=train_x, y=generated.train_y)
    return folder


@pytest.fixture(autouse=True)
def _data(few_pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOESTRING_DATA", str(few_pictures))


def configs(module: dict[str, Any]) -> list[Config]:
    return list(from_plain(module["SPACE"]).grid(16))


@pytest.mark.parametrize("name", NAMES)
def test_there_are_sixteen_configurations(name: str) -> None:
    assert len(configs(workload(name))) == 16


@pytest.mark.parametrize(("name", "number"), [*((name, 15) for name in NAMES), ("svm", 0), ("cnn", 0)])
def test_an_interrupted_trial_resumes_as_if_nothing_had_happened(name: str, number: int, tmp_path: Path) -> None:
    module = workload(name)
    config = configs(module)[number]

    def trained(host: Host, until_step: int, since: Host | None = None) -> list[float]:
        begin = {} if since is None else {"step": since.step, "checkpoint": since.checkpoint}
        module["train"](Trial(job="j0", config=config, until_step=until_step, host=host, **begin))
        return host.values

    whole = trained(Host(tmp_path), 3)
    stopped = Host(tmp_path, leave_after=2)
    begun = trained(stopped, 3)
    assert stopped.checkpoint is not None
    assert begun + trained(Host(tmp_path), 3, since=stopped) == whole  # to the bit
    assert len(whole) == 3
    assert whole[-1] < whole[0]


def test_so_does_one_that_trains_on_a_part_of_the_data_on_a_machine_of_its_choice(tmp_path: Path) -> None:
    module = workload("trimmed")
    config: Config = {"lr": 3e-3, "width": 16, "batch": 32, "machine": "m5.2xlarge", "spot": False}

    def trained(host: Host, since: Host | None = None, fraction: float = 0.25) -> list[float]:
        begin = {} if since is None else {"step": since.step, "checkpoint": since.checkpoint}
        module["train"](Trial(job="j0", config=config, until_step=3, host=host, fraction=fraction, **begin))
        return host.values

    whole = trained(Host(tmp_path))
    stopped = Host(tmp_path, leave_after=2)
    assert trained(stopped) + trained(Host(tmp_path), since=stopped) == whole
    assert trained(Host(tmp_path), fraction=1.0)[-1] > whole[-1] > 0.1


def test_the_declared_stages_are_those_of_the_learning_rate() -> None:
    module = workload("cnn")
    assert set(module["STAGES"]) == set(module["SPACE"]["decay_at"].options)
    assert all(0 < first < second < module["MAX_STEPS"] for first, second in module["STAGES"].values())


def test_gradients_of_the_network_are_those_of_its_loss() -> None:
    module = workload("mlp")
    rng = np.random.default_rng(3)
    weights = {name: array.astype(float) for name, array in module["fresh_weights"]().items()}
    x, y = rng.uniform(size=(6, 784)), rng.integers(0, 10, 6)
    check_gradients(weights, lambda: module["forward"](weights, x)[-1], module["gradients"](weights, x, y), y)


@pytest.mark.parametrize("version", [1, 2])
def test_gradients_of_the_convolutional_network_are_those_of_its_loss(version: int) -> None:
    module, config = workload("cnn"), {"version": version, "blocks": 2}
    rng = np.random.default_rng(3)
    weights = {name: array.astype(float) for name, array in module["fresh_weights"](2).items()}
    x, y = rng.uniform(size=(4, 14, 14, 1)), rng.integers(0, 10, 4)
    gradients = module["gradients"](weights, x, y, config)
    check_gradients(weights, lambda: module["forward"](weights, x, config)[0], gradients, y)


def check_gradients(weights: dict[str, Any], probabilities: Any, gradients: dict[str, Any], y: np.ndarray) -> None:
    """Against differences of the loss, at a few weights of every layer."""
    rng = np.random.default_rng(4)
    assert set(gradients) == set(weights)
    for name, array in weights.items():
        for place in rng.integers(0, array.size, 3):
            losses = []
            for step in (1e-5, -1e-5):
                array.flat[place] += step
                losses.append(-np.log(probabilities()[np.arange(len(y)), y]).mean())
                array.flat[place] -= step
            assert gradients[name].flat[place] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-4, abs=1e-8)


def test_a_workload_runs_as_a_study_in_processes_of_its_own(tmp_path: Path) -> None:
    module = workload("linear")
    study = ss.tune(
        module["train"],
        space=module["SPACE"],
        given=[configs(module)[0]],
        recipe="given",
        minimize=module["METRIC"],
        trials=1,
        max_steps=2,
        store=tmp_path / "runs",
    )
    assert study.best.value < 0.2


@pytest.mark.parametrize("name", ["fashion", "mnist"])
def test_pictures_are_read_where_they_are_and_made_up_where_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = workload("linear")["fashion"].__globals__
    read = pictures[name](train=20, test=10)
    monkeypatch.setenv("SHOESTRING_DATA", str(tmp_path))
    invented = pictures[name](train=20, test=10)
    for found in (read, invented):
        assert found.train_x.shape == (20, 28, 28)
        assert found.test_x.shape == (10, 28, 28)
        assert (len(found.train_y), len(found.test_y)) == (20, 10)
        assert found.train_x.dtype == np.float32
        assert 0 <= found.train_x.min() < found.train_x.max() <= 1
