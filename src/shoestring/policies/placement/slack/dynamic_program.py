"""The slack programme: what the rest of a job is expected to cost, for every amount of work and slack left.

A dynamic programme over (work left, slack, what is held). Work on any machine lowers the work and leaves the slack as
it is; waiting, set-ups and lost work use up slack. Where the slack runs out only on-demand machines are left, so the
value of slack, and with it when to wait, when to pay more and when to go back to spot, comes out by itself.

All columns of slack at one amount of work are done at once; amounts of work follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING

from shoestring.policies.placement.slack.guarantee import Switching

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]

LEAST_GRID_S, MOST_GRID_S = 120.0, 600.0
MOST_ROWS, MOST_ROW_S = 100, 1800.0
"""Work needs a coarser grid than slack: values change almost linearly with it."""


@dataclass(frozen=True)
class SlackMarket:
    """The market, as the programme sees it: one kind of spot machine that comes and goes, one that stays."""

    spot_usd_per_hour: float
    on_demand_usd_per_hour: float
    young_losses_per_h: float
    """Of the zone that would be chosen, in the first hour of a spell."""
    old_losses_per_h: float
    elsewhere: float
    """The chance that another zone has machines when this one takes its own away."""
    returns_per_h: float
    """How soon any zone has machines again when none has."""
    redo_s: float = 0.0
    """Work lost with a machine, on average."""


@dataclass(frozen=True)
class SlackTable:
    """Expected dollars to the end, by work left (rows) and slack (columns)."""

    on_demand_usd_per_hour: float
    work_grid_s: float
    slack_grid_s: float
    nothing: Table
    """Holding nothing, and no zone has machines."""
    wait: Table
    """The same, if it waits for them now."""
    young: Table
    """On a spot machine whose zone has had machines for less than an hour."""
    old: Table
    kept: Table
    """Staying on demand for now, while no zone has machines."""
    kept_could: Table
    """Staying on demand for now, though there are spot machines to be had."""

    def at(self, table: Table, work_s: float, slack_s: float) -> float:
        """A value between the points of the grid; outside it, the value at its edge."""
        rows, columns = table.shape
        row, right = _between(work_s / self.work_grid_s, rows)
        column, down = _between(slack_s / self.slack_grid_s, columns)
        upper = table.item(row, column) * (1 - down) + table.item(row, column + 1) * down
        lower = table.item(row + 1, column) * (1 - down) + table.item(row + 1, column + 1) * down
        return float(upper * (1 - right) + lower * right)


def slack_grid_s(slack_s: float) -> float:
    """Forty steps of slack, where that is neither finer than pays nor too coarse to see a set-up."""
    return min(MOST_GRID_S, max(LEAST_GRID_S, slack_s / 40))


def solve(terms: SlackMarket, switching: Switching, work_s: float, slack_s: float) -> SlackTable:
    """All values up to this much work and slack. A day's job takes some milliseconds."""
    import numpy as np

    step = slack_grid_s(slack_s)
    work_step = max(step, min(MOST_ROW_S, work_s / MOST_ROWS))
    rows, columns = int(work_s / work_step) + 2, int(max(slack_s, 0.0) / step) + 2
    hours, setup_h, restore_h = work_step / 3600, switching.setup_s / 3600, switching.restore_s / 3600
    spot_usd, kept_usd = terms.spot_usd_per_hour, terms.on_demand_usd_per_hour
    lost_young = 1 - exp(-terms.young_losses_per_h * hours)
    lost_old = 1 - exp(-terms.old_losses_per_h * hours)
    none_left = lost_young * (1 - terms.elsewhere)
    back, back_waiting = (1 - exp(-terms.returns_per_h * seconds / 3600) for seconds in (work_step, step))
    ages = min(1.0, hours)

    slack = np.arange(columns, dtype=np.float64) * step
    setup, restore, redo = (_Later(slack, by, step) for by in (switching.setup_s, switching.restore_s, terms.redo_s))
    past_line = slack < switching.line_s
    may_spot = slack >= switching.line_s + switching.setup_s
    may_leave = slack >= switching.line_s + switching.restore_s + switching.save_s
    may_wait = slack - step >= switching.setup_s
    wait_from = int(may_wait.argmax()) if may_wait.any() else columns

    nothing, wait, could, could_old, young, old, kept, kept_could = (np.zeros((rows, columns)) for _ in range(8))
    idle_kept, idle_kept_could = np.zeros(columns), np.zeros(columns)
    for row in range(1, rows):
        before = row - 1
        lost = redo(terms.elsewhere * could_old[before] + (1 - terms.elsewhere) * nothing[before])
        grown = (1 - ages) * young[before] + ages * old[before]
        to_the_end = kept_usd * (row * hours + restore_h) + spot_usd * setup_h
        young[row] = spot_usd * hours + (1 - lost_young) * grown + lost_young * lost
        old[row] = spot_usd * hours + (1 - lost_old) * old[before] + lost_old * lost
        young[row][past_line] = old[row][past_line] = to_the_end
        kept[row] = kept_usd * hours + (1 - back) * idle_kept + back * idle_kept_could
        kept_could[row] = kept_usd * hours + (1 - none_left) * idle_kept_could + none_left * idle_kept

        go_on_demand = kept_usd * setup_h + setup(kept_could[row])
        gone = setup(terms.elsewhere * could_old[before] + (1 - terms.elsewhere) * nothing[before]) + spot_usd * hours
        for reach, on_it, losses_per_h in (
            (could, young, terms.young_losses_per_h),
            (could_old, old, terms.old_losses_per_h),
        ):
            lasts = exp(-losses_per_h * setup_h)  # through its set-up; if not, all of that was for nothing
            start = spot_usd * setup_h + lasts * setup(on_it[row]) + (1 - lasts) * gone
            reach[row] = np.where(may_spot, np.minimum(go_on_demand, start), go_on_demand)
        go_on_demand = kept_usd * setup_h + setup(kept[row])
        wait[row], nothing[row] = _waited(go_on_demand, could[row], back_waiting, wait_from)
        leave = spot_usd * setup_h + restore(young[row])
        idle_kept = np.where(may_leave, np.minimum(kept[row], nothing[row]), kept[row])
        idle_kept_could = np.where(may_leave, np.minimum(kept_could[row], leave), kept_could[row])
    return SlackTable(kept_usd, work_step, step, nothing, wait, young, old, kept, kept_could)


class _Later:
    """A column of values as it is when some slack has been used up. Less than none is counted as none."""

    def __init__(self, slack: Table, by_s: float, step_s: float) -> None:
        import numpy as np

        place = np.maximum(slack - by_s, 0.0) / step_s
        self._floor = place.astype(int)
        self._ceil = np.minimum(self._floor + 1, len(slack) - 1)
        self._share = place - self._floor

    def __call__(self, values: Table) -> Table:
        floor: Table = values[self._floor]
        later: Table = floor + self._share * (values[self._ceil] - floor)
        return later


def _waited(go_on_demand: Table, could: Table, back: float, wait_from: int) -> tuple[list[float], list[float]]:
    """Waiting for machines, and the better of that and going on demand: each column of slack needs the one before."""
    at_once, taken = go_on_demand.tolist(), could.tolist()
    wait, best = list(at_once), list(at_once)
    for column in range(max(1, wait_from), len(best)):
        wait[column] = (1 - back) * best[column - 1] + back * taken[column - 1]
        best[column] = min(at_once[column], wait[column])
    return wait, best


def _between(place: float, length: int) -> tuple[int, float]:
    inside = min(max(place, 0.0), length - 1.0)
    floor = min(int(inside), length - 2)
    return floor, inside - floor
