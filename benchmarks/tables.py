"""The tables of recorded learning curves, which of them are for tuning, and how each is read.

The tables are not part of the project: they are read from the folder in SHOESTRING_DATA, else from ../shared/data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.curve_task import CurveTask
from shoestring.errors import DataError
from shoestring.kernel.types import Direction
from shoestring.space.space import Float, Int, Space

if TYPE_CHECKING:
    from benchmarks.curve_task import Numbers

MEDIAN_STEP_S = 60.0
"""Recorded times are scaled so that a step of the median configuration takes this long on one slot."""


def data_folder() -> Path:
    return Path(os.environ.get("SHOESTRING_DATA") or Path(__file__).parents[2] / "shared" / "data")


TASKSET = (
    "imdb_patch128_LSTM128_avg_bs64",
    "imdb_patch128_LSTM128_embed128_bs64",
    "imdb_patch32_GRU64_avg_bs128",
    "imdb_patch32_IRNN64_relu_last_bs128",
    "imdb_patch32_LSTM128_bs128",
    "imdb_patch32_VRNN64_relu_avg_bs128",
)
LCBENCH = (3945, 34539, 146212, 167149, 167190, 168335, 189354)

CHOOSING = (*(f"taskset/{task}" for task in TASKSET[:2]), *(f"lcbench/{task}" for task in LCBENCH[:2]))
"""The only tasks on which anything may be tuned."""
REPORTING = (
    *(f"taskset/{task}" for task in TASKSET[2:]),
    *(f"lcbench/{task}" for task in LCBENCH[2:]),
    "mnist/grid",
    "nlp/wikitext2",
)


def load(names: tuple[str, ...]) -> dict[str, CurveTask]:
    """The tasks of these names, each family's file read once. Raises DataError where a file or a name is missing."""
    wanted = dict.fromkeys(names)
    found: dict[str, CurveTask] = {}
    for family, tasks in _FAMILIES.items():
        if any(name.partition("/")[0] == family for name in wanted):
            found.update((task.name, task) for task in tasks() if task.name in wanted)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise DataError(f"no task {', '.join(missing)}", hint=f"known: {', '.join(CHOOSING + REPORTING)}")
    return {name: found[name] for name in wanted}


def _taskset() -> Iterator[CurveTask]:
    curves, configs = _table("lc_taskset_imdb_curves.parquet"), _table("lc_taskset_imdb_configs.parquet")
    configs = configs.assign(one_minus_beta1=1.0 - configs.beta1, one_minus_beta2=1.0 - configs.beta2)
    betas, decays = ("one_minus_beta1", "one_minus_beta2"), ("linear_decay", "exponential_decay")
    names = ("learning_rate", *betas, "epsilon", "l1", "l2", *decays)
    ends = {name: (float(configs[name].min()), float(configs[name].max())) for name in names}
    space = Space(params={name: Float(low, high, log=True) for name, (low, high) in ends.items()})
    for task in TASKSET:
        values = _by_step(curves[(curves.task == task) & (curves.step > 0)], "step", "val_loss")
        rows = configs[configs.task == task].sort_values("config_id")
        yield _task(f"taskset/{task}", "val_loss", "minimize", space, rows, values, None)


def _lcbench() -> Iterator[CurveTask]:
    """The surrogate's curves. Its "epoch 1" is the network before training (accuracy at chance, cross-entropy of the
    uniform guess), so a trial's first step is epoch 2; what passed until then is start-up and no step's time."""
    curves, configs = _table("lc_lcbench_surrogate_curves.parquet"), _table("lc_lcbench_surrogate_configs.parquet")
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
    for number in LCBENCH:
        mine = curves[curves.openml_task == number]
        values = _by_step(mine, "epoch", "val_accuracy")[:, 1:]
        passed = _by_step(mine, "epoch", "time_s")
        seconds = (passed[:, -1] - passed[:, 0]) / values.shape[1]
        rows = configs[configs.openml_task == number].sort_values("config_id")
        yield _task(f"lcbench/{number}", "val_accuracy", "maximize", space, rows, values, seconds)


def _mnist() -> Iterator[CurveTask]:
    """A full grid, four values a parameter: searched by the place on the grid, so that all are equally likely."""
    import numpy as np

    grid = _table("lc_hyperjump_mnist_grid.parquet")
    grid = grid[grid.data_fraction == 1.0]
    names = ("lr", "momentum", "batch_size", "weight_decay")
    epochs = sorted(grid.epoch.unique())
    known = _by_step(grid, "epoch", "test_error")
    # between two recorded epochs a trial reports the earlier one
    values = known[:, [np.searchsorted(epochs, epoch, side="right") - 1 for epoch in range(1, epochs[-1] + 1)]]
    seconds = _by_step(grid, "epoch", "train_time_s")[:, -1] / epochs[-1]
    rows = grid[grid.epoch == epochs[-1]].sort_values("config_id")
    rows = rows.assign(**{name: np.unique(rows[name], return_inverse=True)[1] for name in names})
    space = Space(params={name: Int(0, 3) for name in names})
    yield _task("mnist/grid", "test_error", "minimize", space, rows, values, seconds)


def _nlp() -> Iterator[CurveTask]:
    """Architectures, told apart by counts: searched by their ranks, so that no stretch of the space is empty."""
    curves, configs = _table("lc_nasbench_nlp_curves.parquet"), _table("lc_nasbench_nlp_configs.csv.gz")
    rows = configs.sort_values("config_id")
    ops = ("linear", "activation_tanh", "activation_sigm", "activation_leaky_relu")
    counts = [dict(part.split(":") for part in row.split(";")) for row in rows.ops]
    rows = rows.assign(**{op: [int(count.get(op, 0)) for count in counts] for op in ops})
    names = ("num_params", "n_ops", "n_hidden_states", *ops)
    rows = rows.assign(**{name: (rows[name].rank() - 1) / (len(rows) - 1) for name in names})
    values = _by_step(curves, "epoch", "val_loss")
    seconds = curves.groupby("config_id").epoch_time_s.mean().to_numpy()
    space = Space(params={name: Float(0.0, 1.0) for name in names})
    yield _task("nlp/wikitext2", "val_loss", "minimize", space, rows, values, seconds)


_FAMILIES: Mapping[str, Callable[[], Iterator[CurveTask]]] = {
    "taskset": _taskset,
    "lcbench": _lcbench,
    "mnist": _mnist,
    "nlp": _nlp,
}


def _task(
    name: str,
    metric: str,
    direction: Direction,
    space: Space,
    rows: Any,
    values: Numbers,
    seconds: Numbers | None,
) -> CurveTask:
    """`seconds` None: no times were recorded, every configuration takes the median time."""
    import numpy as np

    configs = rows[list(space.params)].to_dict("records")
    points = np.array([space.encode(config) for config in configs])
    pace = np.ones(len(points)) if seconds is None else seconds / np.median(seconds)
    return CurveTask(name, metric, direction, space, points, values, pace * MEDIAN_STEP_S)


def _by_step(curves: Any, step: str, value: str) -> Numbers:
    """A row for each configuration, a column for each step; NaN where nothing was recorded."""
    table: Numbers = curves.pivot(index="config_id", columns=step, values=value).to_numpy(dtype=float)
    return table


def _table(name: str) -> Any:
    import pandas as pd

    path = data_folder() / name
    if not path.exists():
        raise DataError(f"{path} is missing", hint="set SHOESTRING_DATA to the folder that has the recorded curves")
    return pd.read_parquet(path) if name.endswith(".parquet") else pd.read_csv(path)
