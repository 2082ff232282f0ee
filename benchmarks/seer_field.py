"""Many runs at once: every task, cell, contestant and seed, spread over processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context

from benchmarks.curve_task import CurveTask
from benchmarks.seer_arena import Outcome, Setting, compete, spec_for
from benchmarks.seer_market import Cell, market
from shoestring import recipes


@dataclass(frozen=True)
class Entry:
    """One run to be made."""

    task: str
    cell: Cell
    contestant: str
    setting: Setting
    seed: int
    spot: bool = False


def entries(
    tasks: Sequence[str],
    cells: Sequence[Cell],
    settings: Mapping[str, Mapping[Cell, Setting]],
    seeds: int,
    *,
    spot: bool = False,
) -> list[Entry]:
    """The largest runs first, so that no process is left with one of them at the end."""
    return [
        Entry(task, cell, name, by_cell[cell], seed, spot)
        for cell in sorted(cells, key=lambda cell: -cell.slot_minutes)
        for name, by_cell in settings.items()
        for task in tasks
        for seed in range(seeds)
    ]


def check(task: CurveTask, settings: Mapping[str, Mapping[Cell, Setting]]) -> None:
    """Can every contestant be built? An error is raised before an hour is spent on the others."""
    for by_cell in settings.values():
        for cell, setting in by_cell.items():
            recipes.build(spec_for(task, cell, setting, 0, market()))


def hold(field: Sequence[Entry], tasks: Mapping[str, CurveTask], processes: int) -> list[Outcome]:
    """All outcomes. Processes are forked, so that the tables are read once; each depends on its seed alone."""
    _TASKS.update(tasks)
    if processes == 1:
        return [_one(entry) for entry in field]
    with get_context("fork").Pool(processes) as pool:
        return list(pool.imap(_one, field, chunksize=4))


_TASKS: dict[str, CurveTask] = {}
"""What a forked process finds."""


def _one(entry: Entry) -> Outcome:
    return compete(_TASKS[entry.task], entry.cell, entry.contestant, entry.setting, entry.seed, spot=entry.spot)
