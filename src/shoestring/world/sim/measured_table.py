"""Measured runs as a workload: a trial behaves as the table's row for its configuration and data fraction.

Trials have one step, which takes as long as the measured run. Where the table's configurations name machines, so do the
trials': the time is that of the row, whatever machine the simulator has put the trial on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shoestring.errors import DataError
from shoestring.kernel.types import Config, Listing, Metrics, Value
from shoestring.units import show_number
from shoestring.world.sim.workload import Curve, SnapshotAt, Workload

_Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run that was measured: its time and its metrics."""

    config: Config
    fraction: float = 1.0
    seconds: float
    metrics: Metrics


def table_workload(runs: Iterable[MeasuredRun], *, checkpoint_gb: float | None = None) -> Workload:
    """Trials that behave like these runs, for the configurations and data fractions that are among them.

    A trial can report the metrics of a run on a smaller fraction as a snapshot, once it has run for as long as that run
    took. A parameter of the trial that is not in the table is ignored.
    """
    return _Table(runs).workload(1.0, checkpoint_gb)


class _Table:
    def __init__(self, runs: Iterable[MeasuredRun]) -> None:
        self._rows: dict[float, dict[_Key, MeasuredRun]] = {}
        self._names: tuple[str, ...] = ()
        for run in runs:
            self._add(run)
        if not self._rows:
            raise DataError("a table without runs cannot be simulated from", hint="give at least one run")

    def _add(self, run: MeasuredRun) -> None:
        self._names = self._names or tuple(run.config)
        if set(run.config) != set(self._names):
            raise DataError(
                f"runs of one table have different parameters: {', '.join(self._names)} and {', '.join(run.config)}",
                hint="give all runs the same parameters",
            )
        if not (0 < run.fraction <= 1 and 0 < run.seconds < float("inf")):
            raise DataError(
                f"a run with fraction={run.fraction!r} and seconds={run.seconds!r} is not possible",
                hint="the fraction must be above 0 and at most 1, the time above 0",
            )
        rows = self._rows.setdefault(run.fraction, {})
        key = self._key(run.config)
        if key in rows:
            raise DataError(
                f"the table has two runs of {_shown(run.config)} on {show_number(run.fraction)} of the data",
                hint="keep one of them, or give their mean",
            )
        rows[key] = run

    def workload(self, fraction: float, checkpoint_gb: float | None) -> Workload:
        def curve(config: Config) -> Curve:
            metrics = self._run(config, fraction).metrics
            return lambda _: metrics

        def seconds_per_step(config: Config, _listing: Listing, _slots: int) -> float:
            return self._run(config, fraction).seconds

        def snapshots(config: Config) -> list[SnapshotAt]:
            own, key = self._run(config, fraction), self._key(config)
            smaller = [rows[key] for less, rows in sorted(self._rows.items()) if less < fraction and key in rows]
            return [SnapshotAt(min(1.0, run.seconds / own.seconds), run.fraction, run.metrics) for run in smaller]

        return Workload(
            curve=curve,
            seconds_per_step=seconds_per_step,
            checkpoint_gb=checkpoint_gb,
            on_fraction=lambda smaller: self.workload(smaller, checkpoint_gb),
            snapshots=snapshots,
        )

    def _run(self, config: Config, fraction: float) -> MeasuredRun:
        run = self._rows.get(fraction, {}).get(self._key(config))
        if run is None:
            known = [show_number(other) for other, rows in sorted(self._rows.items()) if self._key(config) in rows]
            raise DataError(
                f"the table has no run of {_shown(config)} on {show_number(fraction)} of the data",
                hint=f"there are runs of it on {', '.join(known)}" if known else "limit the space to measured ones",
            )
        return run

    def _key(self, config: Config) -> _Key:
        return tuple(config.get(name) for name in self._names)


def _shown(config: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items()) or "a trial without parameters"
