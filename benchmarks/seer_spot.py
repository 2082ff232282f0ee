"""The same dollars on spot machines: a third of the price, with occasional preemptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.curve_task import CurveTask
from benchmarks.rows import Row
from benchmarks.seer_arena import Outcome, Setting
from benchmarks.seer_contestants import CONTESTANTS, DEFAULT
from benchmarks.seer_field import entries, hold
from benchmarks.seer_market import SPOT_REVOCATIONS_PER_HOUR, SPOT_SHARE, Cell
from benchmarks.seer_scores import Scores

NAMES = ("asha_tpe", "seer", DEFAULT)
CELLS = (Cell(15, 240), Cell(30, 480))


def spot_rows(
    on_demand: Scores, tasks: Mapping[str, CurveTask], seeds: int, processes: int
) -> tuple[list[Row], list[Outcome]]:
    """Of contestants and cells that also ran on demand; and the runs themselves."""
    cells = [cell for cell in CELLS if cell in on_demand.cells]
    settings = {name: {cell: _setting(name, cell) for cell in cells} for name in NAMES if name in on_demand.regret}
    if not cells or not settings:
        return [], []
    outcomes = hold(entries(list(tasks), cells, settings, seeds, spot=True), tasks, processes)
    return list(_rows(on_demand, Scores(outcomes), list(settings))), outcomes


def _setting(name: str, cell: Cell) -> Setting:
    """A fixed cluster is as large as spot prices allow; the others are set up as before."""
    return CONTESTANTS[name].setting(Cell(cell.minutes, round(cell.slot_minutes / SPOT_SHARE)))


def _rows(on_demand: Scores, spot: Scores, names: Sequence[str]) -> Iterator[Row]:
    told = f"{SPOT_SHARE:.0%} of the price, {SPOT_REVOCATIONS_PER_HOUR:g} revocations an hour a machine, equal dollars"
    for name in names:
        there = sum(spot.of_cell(name, cell).value for cell in spot.cells)
        here = sum(on_demand.of_cell(name, cell).value for cell in spot.cells)
        yield Row(f"spot_over_on_demand_{name}", there / here, "ratio", f"regret in {_list(spot.cells)}; {told}")


def _list(cells: Sequence[Cell]) -> str:
    return ", ".join(map(str, cells))
