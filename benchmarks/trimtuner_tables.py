"""Recorded searches with data fractions as tables: candidate x fraction -> objective, seconds, dollars.

A fraction is a share of the data (TrimTuner, HyperJump's MNIST grid, LCDB) or of the epochs (the same grid,
NAS-Bench-NLP). datasets.toml says what each is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.datasets import NoSuchFile, files, held_out
from shoestring.errors import DataError
from shoestring.space.space import Choice, Config, Float, Int, Space

Numbers = NDArray[np.float64]

HALVINGS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Fractions of every table without published ones: those of HyperJump's grid."""
PAPER_LIMITS_USD = {"rnn": 0.02, "cnn": 0.10}
ONE_MACHINE_USD_H = 1.0
"""Where only times were recorded, on one kind of machine: the price cancels out of every ratio."""


@dataclass(frozen=True)
class Table:
    """Everything that was measured. NaN is an objective that was never reached, infinity a run that never ended."""

    name: str
    family: str
    space: Space
    configs: Sequence[Config]
    fractions: tuple[float, ...]
    """Ascending, the last is 1."""
    metric: str
    direction: Literal["maximize", "minimize"]
    objective: Numbers
    """A row for each candidate, a column for each fraction; so are the seconds."""
    seconds: Numbers
    usd_per_hour: Numbers
    """Of each candidate's machines: known in advance."""
    limit_usd: float
    """A full run may cost at most this much, and is killed when its bill reaches it."""

    @cached_property
    def usd(self) -> Numbers:
        return self.seconds * self.usd_per_hour[:, None] / 3600

    @cached_property
    def points(self) -> Numbers:
        """The candidates as numbers from 0 to 1."""
        return np.array([self.space.encode(config) for config in self.configs])

    @cached_property
    def quality(self) -> Numbers:
        """Of each candidate's full run, more is better: an accuracy, or one over a loss. 0 where there is none."""
        full = self.objective[:, -1]
        return np.nan_to_num(full if self.direction == "maximize" else 1 / full, nan=0.0)

    @cached_property
    def feasible(self) -> NDArray[np.bool_]:
        return np.asarray((self.usd[:, -1] <= self.limit_usd) & np.isfinite(self.objective[:, -1]))

    @cached_property
    def optimum(self) -> float:
        """The best quality within the limit."""
        return float(self.quality[self.feasible].max())

    def near_the_best(self, share: float = 0.95) -> int:
        """How many feasible candidates have at least this share of the optimum."""
        return int((self.feasible & (self.quality >= share * self.optimum)).sum())

    def limited(self, factor: float) -> Table:
        return replace(self, name=f"{self.name} x{factor:g}", family="limits", limit_usd=self.limit_usd * factor)


def load(families: Sequence[str] = ("trimtuner", "mnist", "lcdb", "nlp")) -> list[Table]:
    """The tables of these families. Raises DataError where a file is missing; a held-out folder need not have all."""
    if held_out() is None:
        return [table for family in families for table in _FAMILIES[family]()]
    found: list[Table] = []
    for family in families:
        with suppress(NoSuchFile):
            found += _FAMILIES[family]()
    if not found:
        raise DataError(f"no table of {', '.join(families)} in {held_out()}", hint="see benchmarks/README.md")
    return found


def _trimtuner() -> Iterator[Table]:
    """The paper's own: networks on clusters of every shape, with the paper's limits; of other networks the median full
    run."""
    measured = _read("trimtuner_*nn.parquet")
    measured = measured.assign(vcpus=measured.vcpus_per_vm * measured.n_workers)
    names = ("vm_type", "vcpus", "learning_rate", "batch_size", "sync_mode")
    space = Space(
        params={
            "vm_type": Choice(tuple(sorted(measured.vm_type.unique()))),
            "vcpus": Int(8, 80, log=True),
            "learning_rate": Float(1e-5, 1e-3, log=True),
            "batch_size": Int(16, 256, log=True),
            "sync_mode": Choice(("async", "sync")),
        }
    )
    for network in sorted(measured.network.unique(), reverse=True):
        mine = measured[measured.network == network]
        full = mine[mine.s == 1.0].sort_values("config_id")
        yield Table(
            network,
            "trimtuner",
            space,
            _configs(full, names),
            tuple(sorted(float(s) for s in mine.s.unique())),
            "accuracy",
            "maximize",
            _pivot(mine, "config_id", "s", "accuracy"),
            _pivot(mine, "config_id", "s", "training_time_s"),
            full.cluster_price_usd_hr.to_numpy(dtype=float),
            PAPER_LIMITS_USD.get(network, float(full.cost_usd.median())),
        )


def _mnist() -> Iterator[Table]:
    """One grid, two kinds of fidelity: a data fraction for all 16 epochs, or all data for fewer epochs."""
    grid = _read("lc_hyperjump*_grid.parquet")
    names = ("lr", "momentum", "batch_size", "weight_decay")
    grid = grid.assign(accuracy=1 - grid.test_error, epoch_share=grid.epoch / grid.epoch.max())
    rows = grid[(grid.data_fraction == 1.0) & (grid.epoch_share == 1.0)].sort_values("config_id")
    # by the place on the grid: momentum and weight decay have a 0 or steps that no one scale fits
    rows = rows.assign(**{name: np.unique(rows[name], return_inverse=True)[1] for name in names})
    space = Space(params={name: Int(0, 3) for name in names})
    for name, share, other in (
        ("mnist/data", "data_fraction", "epoch_share"),
        ("mnist/epochs", "epoch_share", "data_fraction"),
    ):
        mine = grid[grid[other] == 1.0]
        accuracy = _pivot(mine, "config_id", share, "accuracy")
        seconds = _pivot(mine, "config_id", share, "train_time_s")
        yield _timed(name, "mnist", space, _configs(rows, names), HALVINGS, "accuracy", "maximize", accuracy, seconds)


def _lcdb() -> Iterator[Table]:
    """Which of twenty learners, told apart by name only? A learner that crashes at the smallest size is none."""
    runs = _read("lc_lcdb*.parquet")
    for dataset, mine in runs.groupby("dataset", observed=True):
        known = np.sort(mine.n_train.unique())
        sizes = [int(known[np.abs(np.log(known / (share * known[-1]))).argmin()]) for share in HALVINGS]
        mine = mine[mine.n_train.isin(sizes)].assign(learner=lambda rows: rows.learner.astype(str))
        learners = sorted(mine[mine.n_train == sizes[0]].learner.unique())
        mine = mine[mine.learner.isin(learners)]
        means = mine.groupby(["learner", "n_train"])[["acc_valid", "train_time_s"]].mean().reset_index()
        yield _timed(
            f"lcdb/{dataset}",
            "lcdb",
            Space(params={"learner": Choice(tuple(learners))}),
            [{"learner": learner} for learner in learners],
            tuple(size / sizes[-1] for size in sizes),
            "accuracy",
            "maximize",
            _pivot(means, "learner", "n_train", "acc_valid"),
            np.nan_to_num(_pivot(means, "learner", "n_train", "train_time_s"), nan=np.inf),
        )


def _nlp() -> Iterator[Table]:
    """Architectures, told apart by counts, each as its rank; of those with the same counts the first.

    A run that diverged ended where its record ends.
    """
    curves, configs = _read("lc_nasbench_nlp*_curves.parquet"), _read("lc_nasbench_nlp*_configs.csv.gz")
    rows = configs.sort_values("config_id", ignore_index=True)
    ops = ("linear", "activation_tanh", "activation_sigm", "activation_leaky_relu")
    counts = [dict(part.split(":") for part in row.split(";")) for row in rows.ops]
    rows = rows.assign(**{op: [int(count.get(op, 0)) for count in counts] for op in ops})
    names = ("num_params", "n_ops", "n_hidden_states", *ops)
    rows = rows.assign(**{name: (rows[name].rank() - 1) / (len(rows) - 1) for name in names})
    rows = rows.drop_duplicates(list(names))
    losses = _pivot(curves, "config_id", "epoch", "val_loss")
    elapsed = np.nancumsum(_pivot(curves, "config_id", "epoch", "epoch_time_s"), axis=1)
    epochs = losses.shape[1]
    last = [int(share * epochs) for share in HALVINGS]
    chosen = np.ix_(rows.index, [epoch - 1 for epoch in last])
    yield _timed(
        "nlp/wikitext2",
        "nlp",
        Space(params={name: Float(0.0, 1.0) for name in names}),
        _configs(rows, names),
        tuple(epoch / epochs for epoch in last),
        "val_loss",
        "minimize",
        losses[chosen],
        elapsed[chosen],
    )


_FAMILIES: Mapping[str, Callable[[], Iterator[Table]]] = {
    "trimtuner": _trimtuner,
    "mnist": _mnist,
    "lcdb": _lcdb,
    "nlp": _nlp,
}


def _timed(
    name: str,
    family: str,
    space: Space,
    configs: Sequence[Config],
    fractions: tuple[float, ...],
    metric: str,
    direction: Literal["maximize", "minimize"],
    objective: Numbers,
    seconds: Numbers,
) -> Table:
    """Times on one machine, without a published limit: the median full run, so half of the candidates are feasible."""
    price = np.full(len(configs), ONE_MACHINE_USD_H)
    limit_usd = float(np.median(seconds[:, -1])) * ONE_MACHINE_USD_H / 3600
    return Table(name, family, space, configs, fractions, metric, direction, objective, seconds, price, limit_usd)


def _configs(rows: pd.DataFrame, names: Sequence[str]) -> list[Config]:
    """As plain Python values, as a user would write them in a space."""
    return [
        {str(name): value.item() if hasattr(value, "item") else value for name, value in row.items()}
        for row in rows[list(names)].to_dict("records")
    ]


def _pivot(rows: pd.DataFrame, index: str, columns: str, values: str) -> Numbers:
    table: Numbers = rows.pivot(index=index, columns=columns, values=values).sort_index().to_numpy(dtype=float)
    return table


def _read(pattern: str) -> Any:
    path, *_ = files(pattern)
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
