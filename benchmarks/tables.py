"""The tables of recorded learning curves, and how each is read. Which of them are for choosing is in datasets.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.curve_task import CurveTask, task_of
from benchmarks.datasets import NoSuchFile, files, held_out, names, reported_folder
from benchmarks.own_tables import PATTERN as OWN
from benchmarks.own_tables import read_own
from shoestring.errors import DataError
from shoestring.space.space import Float, Int, Space

if TYPE_CHECKING:
    from benchmarks.curve_task import Numbers

CHOOSING = names("curves", "choosing")
"""The only tasks on which anything may be tuned."""


def reporting(*families: str) -> tuple[str, ...]:
    """The tasks that are reported, of these families or of all; of a held-out folder, whatever it has."""
    wanted = names("curves", "reporting") if held_out() is None else tuple(_found())
    return tuple(name for name in wanted if not families or name.startswith(families))


def load(wanted: tuple[str, ...]) -> dict[str, CurveTask]:
    """The tasks of these names, each family's file read once. Raises DataError where a file or a name is missing."""
    if not wanted:
        raise DataError(f"{reported_folder()} has no recorded curves", hint="benchmarks/README.md has the formats")
    found: dict[str, CurveTask] = {}
    for family, tasks in _FAMILIES.items():
        if any(name.partition("/")[0] == family for name in wanted):
            found.update((task.name, task) for task in tasks() if task.name in wanted)
    missing = [name for name in wanted if name not in found]
    if missing:
        known = CHOOSING + names("curves", "reporting")
        raise DataError(f"no task {', '.join(missing)}", hint=f"known: {', '.join(known)}")
    return {name: found[name] for name in wanted}


def _found() -> Iterator[str]:
    """The tasks of all files in a held-out folder."""
    for tasks in _FAMILIES.values():
        with suppress(NoSuchFile):
            yield from (task.name for task in tasks())


def _taskset() -> Iterator[CurveTask]:
    for _, curves, configs in _tables("lc_taskset*_curves.parquet", "configs.parquet"):
        configs = configs.assign(one_minus_beta1=1.0 - configs.beta1, one_minus_beta2=1.0 - configs.beta2)
        betas, decays = ("one_minus_beta1", "one_minus_beta2"), ("linear_decay", "exponential_decay")
        columns = ("learning_rate", *betas, "epsilon", "l1", "l2", *decays)
        ends = {name: (float(configs[name].min()), float(configs[name].max())) for name in columns}
        space = Space(params={name: Float(low, high, log=True) for name, (low, high) in ends.items()})
        for task in sorted(curves.task.unique()):
            values = _by_step(curves[(curves.task == task) & (curves.step > 0)], "step", "val_loss")
            rows = configs[configs.task == task].sort_values("config_id")
            yield task_of(f"taskset/{task}", "val_loss", "minimize", space, rows, values, None)


def _lcbench() -> Iterator[CurveTask]:
    """The surrogate's curves. Its "epoch 1" is the network before training (accuracy at chance, cross-entropy of the
    uniform guess), so a trial's first step is epoch 2; what passed until then is start-up and no step's time."""
    space = Space(
        params={
            "batch_size": Int(16, 512, log=True),
            "learning_rate": Float(1e-4, 0.1, log=True),
            "max_dropout": Float(0.0, 1.0),
            "max_units": Int(64, 1024, log=True),
            "momentum": Float(0.1, 0.99),
            "num_layers": Int(1, 5),
            "weight_decay": Float(1e-5, 0.1),
        }
    )
    for _, curves, configs in _tables("lc_lcbench*_curves.parquet", "configs.parquet"):
        for number in sorted(curves.openml_task.unique()):
            mine = curves[curves.openml_task == number]
            values = _by_step(mine, "epoch", "val_accuracy")[:, 1:]
            passed = _by_step(mine, "epoch", "time_s")
            seconds = (passed[:, -1] - passed[:, 0]) / values.shape[1]
            rows = configs[configs.openml_task == number].sort_values("config_id")
            yield task_of(f"lcbench/{number}", "val_accuracy", "maximize", space, rows, values, seconds)


def _mnist() -> Iterator[CurveTask]:
    """A full grid, four values a parameter: searched by the place on the grid, so that all are equally likely."""
    import numpy as np

    columns = ("lr", "momentum", "batch_size", "weight_decay")
    space = Space(params={name: Int(0, 3) for name in columns})
    for path, whole, _ in _tables("lc_hyperjump*_grid.parquet"):
        grid = whole[whole.data_fraction == 1.0]
        epochs = sorted(grid.epoch.unique())
        known = _by_step(grid, "epoch", "test_error")
        # between two recorded epochs a trial reports the earlier one
        values = known[:, [np.searchsorted(epochs, epoch, side="right") - 1 for epoch in range(1, epochs[-1] + 1)]]
        seconds = _by_step(grid, "epoch", "train_time_s")[:, -1] / epochs[-1]
        rows = grid[grid.epoch == epochs[-1]].sort_values("config_id")
        rows = rows.assign(**{name: np.unique(rows[name], return_inverse=True)[1] for name in columns})
        yield task_of(_name("mnist/grid", path), "test_error", "minimize", space, rows, values, seconds)


def _nlp() -> Iterator[CurveTask]:
    """Architectures, told apart by counts: searched by their ranks, so that no stretch of the space is empty."""
    ops = ("linear", "activation_tanh", "activation_sigm", "activation_leaky_relu")
    columns = ("num_params", "n_ops", "n_hidden_states", *ops)
    space = Space(params={name: Float(0.0, 1.0) for name in columns})
    for path, curves, configs in _tables("lc_nasbench_nlp*_curves.parquet", "configs.csv.gz"):
        rows = configs.sort_values("config_id")
        counts = [dict(part.split(":") for part in row.split(";")) for row in rows.ops]
        rows = rows.assign(**{op: [int(count.get(op, 0)) for count in counts] for op in ops})
        rows = rows.assign(**{name: (rows[name].rank() - 1) / (len(rows) - 1) for name in columns})
        values = _by_step(curves, "epoch", "val_loss")
        seconds = curves.groupby("config_id").epoch_time_s.mean().to_numpy()
        yield task_of(_name("nlp/wikitext2", path), "val_loss", "minimize", space, rows, values, seconds)


def _own() -> Iterator[CurveTask]:
    for path in files(OWN):
        yield read_own(path)


_FAMILIES: Mapping[str, Callable[[], Iterator[CurveTask]]] = {
    "taskset": _taskset,
    "lcbench": _lcbench,
    "mnist": _mnist,
    "nlp": _nlp,
    "own": _own,
}


def _by_step(curves: Any, step: str, value: str) -> Numbers:
    """A row for each configuration, a column for each step; NaN where nothing was recorded."""
    table: Numbers = curves.pivot(index="config_id", columns=step, values=value).to_numpy(dtype=float)
    return table


def _tables(pattern: str, beside: str = "") -> Iterator[tuple[Path, Any, Any]]:
    """Every file of curves of this pattern, and the configurations in the file named alike."""
    for path in files(pattern):
        configs = path.with_name(path.name.replace("curves.parquet", beside)) if beside else None
        if configs is not None and not configs.exists():
            raise DataError(f"{path} has no {configs.name} beside it", hint="benchmarks/README.md has the formats")
        yield path, _read(path), None if configs is None else _read(configs)


def _read(path: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def _name(usual: str, path: Path) -> str:
    """Of the one task of a file; in a held-out folder by its file, because there may be several."""
    return usual if held_out() is None else f"{usual.partition('/')[0]}/{path.name.split('.')[0]}"
