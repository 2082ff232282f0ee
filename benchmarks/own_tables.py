"""Learning curves in a table of your own: own_NAME.csv or own_NAME.parquet in the folder of --held-out.

A row is a step of a configuration: `config_id`, `step` (1 is after the first step of training), the metric in a column
named `minimize NAME` or `maximize NAME`, optionally the `seconds` of the step, and the hyperparameters in all other
columns. A configuration that diverged has no metric from then on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.curve_task import CurveTask, task_of
from shoestring.errors import DataError
from shoestring.kernel.types import Direction
from shoestring.space.space import Choice, Float, Int, Parameter, Space

PATTERN = "own_*"
LOG_FROM = 50.0
"""A positive hyperparameter whose largest value is this many times its smallest is searched on a logarithmic scale."""


def read_own(path: Path) -> CurveTask:
    import numpy as np
    import pandas as pd

    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    metrics = [name for name in table.columns if name.partition(" ")[0] in ("minimize", "maximize")]
    if len(metrics) != 1 or not {"config_id", "step"} <= set(table.columns):
        raise DataError(
            f"{path} needs the columns config_id, step and one metric; it has {', '.join(table.columns)}",
            hint="name the metric's column 'minimize NAME' or 'maximize NAME'",
        )
    direction: Direction = "minimize" if metrics[0].startswith("minimize") else "maximize"
    named = [name for name in table.columns if name not in ("config_id", "step", "seconds", metrics[0])]
    configs = table.groupby("config_id", sort=True)[named].first()
    if not named or configs.isna().any().any():
        raise DataError(f"{path}: every configuration needs a value of each of its hyperparameters", hint=__doc__)
    values = table.pivot(index="config_id", columns="step", values=metrics[0]).to_numpy(dtype=float)
    seconds = None
    if "seconds" in table.columns:
        seconds = np.asarray(table.groupby("config_id", sort=True).seconds.mean(), dtype=float)
    space = Space(params={str(name): _param(configs[name]) for name in named})
    task = f"own/{path.name.split('.')[0].removeprefix('own_')}"
    return task_of(task, metrics[0].partition(" ")[2], direction, space, configs, values, seconds)


def _param(column: Any) -> Parameter:
    if column.dtype.kind not in "if":
        return Choice(tuple(sorted(map(str, column.unique()))))
    low, high = column.min().item(), column.max().item()
    if low == high:
        return Choice((low,))
    log = low > 0 and high / low >= LOG_FROM
    return Int(low, high, log=log) if column.dtype.kind == "i" else Float(low, high, log=log)
