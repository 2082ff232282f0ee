"""The slack programme: what the rest of a job is expected to cost, for every amount of work and slack left.

A dynamic programme over (work left, slack, what is held). Work on any machine lowers the work and leaves the slack as
it is; waiting, set-ups and lost work use up slack. Where the slack runs out only on-demand machines are left. The
value of slack follows from that, and with it when to wait, when to pay more and when to go back to spot.

All columns of slack at one amount of work are computed at once, row by row.
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
MOST_COLUMNS, MOST_ROWS_EVER = 1008, 500
"""Who has a week of slack decides as one who has two, if set-ups and saves take hours at most; and work of months needs
no row for each half hour. Without these, each table of a study of months would take seconds and a hundred megabytes."""


@dataclass(frozen=True)
class SlackMarket:
    """The market as the programme models it: one kind of spot machine, one kind of on-demand machine."""

    spot_usd_per_hour: float
    on_demand_usd_per_hour: float
    young_losses_per_h: float
    """Of the zone that would be chosen, in the first hour of a spell."""
    old_losses_per_h: float
    elsewhere: float
    """Probability that another zone has machines when this one preempts its own."""
    returns_per_h: float
    """Rate at which a zone has machines again when none has."""
    redo_s: float = 0.0
    """Work lost per preemption, on average."""


@dataclass(frozen=True)
class SlackTable:
    """Expected dollars to the end, by work left (rows) and slack (columns)."""

    on_demand_usd_per_hour: float
    work_grid_s: float
    slack_grid_s: float
    nothing: Table
    """Holding nothing, and no zone has machines."""
    wait: Table
    """The same, waiting for them now."""
    young: Table
    """On a spot machine whose zone has had machines for less than an hour."""
    old: Table
    on_demand: Table
    """Staying on on-demand for now, while no zone has spot machines."""
    on_demand_spot_up: Table
    """Staying on on-demand for now, though a zone has spot machines."""

    def at(self, table: Table, work_s: float, slack_s: float) -> float:
        """A value between the points of the grid; outside it, the value at its edge."""
        rows, columns = table.shape
        row, right = _between(work_s / self.work_grid_s, rows)
        column, down = _between(slack_s / self.slack_grid_s, columns)
        upper = table.item(row, column) * (1 - down) + table.item(row, column + 1) * down
        lower = table.item(row + 1, column) * (1 - down) + table.item(row + 1, column + 1) * down
        return float(upper * (1 - right) + lower * right)


def slack_grid_s(slack_s: float) -> float:
    """Forty steps of slack, within limits: no finer than pays, not too coarse for a set-up to show."""
    return min(MOST_GRID_S, max(LEAST_GRID_S, slack_s / 40))


def solve(terms: SlackMarket, switching: Switching, work_s: float, slack_s: float) -> SlackTable:
    """All values up to this much work and slack. A day's job takes some milliseconds."""
    import numpy as np

    used_up_s = switching.line_s + switching.setup_s + switching.restore_s + switching.save_s
    slack_s = min(slack_s, max(MOST_COLUMNS * MOST_GRID_S, 4 * used_up_s))
    step = max(slack_grid_s(slack_s), slack_s / MOST_COLUMNS)
    work_step = max(step, min(MOST_ROW_S, work_s / MOST_ROWS), work_s / MOST_ROWS_EVER)
    rows, columns = int(work_s / work_step) + 2, int(max(slack_s, 0.0) / step) + 2
    hours, setup_h, restore_h = work_step / 3600, switching.setup_s / 3600, switching.restore_s / 3600
    spot_usd, on_demand_usd = terms.spot_usd_per_hour, terms.on_demand_usd_per_hour
    lost_young = 1 - exp(-terms.young_losses_per_h * hours)
    lost_old = 1 - exp(-terms.old_losses_per_h * hours)
    none_left = lost_young * (1 - terms.elsewhere)
    back, back_waiting = (1 - exp(-terms.returns_per_h * seconds / 3600) for seconds in (work_step, step))
    ages = min(1.0, hours)

    slack = np.arange(columns, dtype=np.float64) * step
    setup, restore, redo = (_Later(slack, by, step) for by in (switching.setup_s, switching.restore_s, terms.redo_s))
    # from which column on; what is allowed with some slack is with more
    before_line = int((slack < switching.line_s).sum())
    spot_from = columns - int((slack >= switching.line_s + switching.setup_s).sum())
    leave_from = columns - int((slack >= switching.line_s + switching.restore_s + switching.save_s).sum())
    wait_from = columns - int((slack - step >= switching.setup_s).sum())
    # the probability to survive a set-up, which is wasted if not
    lasts = np.array([[exp(-losses * setup_h)] for losses in (terms.young_losses_per_h, terms.old_losses_per_h)])
    first_usd = np.array([[spot_usd * hours]] * 2 + [[on_demand_usd * hours]] * 2)
    loses = np.array([[lost_young], [lost_old], [back], [none_left]])
    keeps, wasted = 1 - loses, 1 - lasts

    nothing, wait = np.zeros((rows, columns)), np.zeros((rows, columns))
    # young, old, on_demand, on_demand_spot_up; and last, what is left when a machine is preempted
    tables = np.zeros((rows, 5, columns))
    spot_up = np.zeros((2, columns))  # not held, in a young and in an old spell
    usual, other, best = np.zeros((4, columns)), np.zeros((4, columns)), np.zeros((2, columns))
    for row in range(1, rows):
        before, now = tables[row - 1], tables[row]
        gone = terms.elsewhere * spot_up[1] + (1 - terms.elsewhere) * nothing[row - 1]
        usual[0], usual[1], usual[2:] = (1 - ages) * before[0] + ages * before[1], before[1], best
        other[:2], other[2:] = redo(gone), best[::-1]
        np.add(first_usd + keeps * usual, loses * other, out=now[:4])
        now[:2, :before_line] = on_demand_usd * (row * hours + restore_h) + spot_usd * setup_h
        now[4] = gone

        started = setup(now)
        go_on_demand = on_demand_usd * setup_h + started[2:4]
        start = spot_usd * setup_h + lasts * started[:2] + wasted * (started[4] + spot_usd * hours)
        spot_up[:] = go_on_demand[1]
        np.minimum(spot_up[:, spot_from:], start[:, spot_from:], out=spot_up[:, spot_from:])
        wait[row], nothing[row] = _waited(go_on_demand[0], spot_up[0], back_waiting, wait_from)
        best[:] = now[2:4]
        np.minimum(best[0, leave_from:], nothing[row, leave_from:], out=best[0, leave_from:])
        leave = spot_usd * setup_h + restore(now[0])
        np.minimum(best[1, leave_from:], leave[leave_from:], out=best[1, leave_from:])
    young, old, on_demand, on_demand_spot_up = (tables[:, kind] for kind in range(4))
    return SlackTable(on_demand_usd, work_step, step, nothing, wait, young, old, on_demand, on_demand_spot_up)


class _Later:
    """Columns of values after some slack is used up. Negative slack counts as zero."""

    def __init__(self, slack: Table, by_s: float, step_s: float) -> None:
        import numpy as np

        place = np.maximum(slack - by_s, 0.0) / step_s
        self._floor = place.astype(int)
        self._ceil = np.minimum(self._floor + 1, len(slack) - 1)
        self._share = place - self._floor

    def __call__(self, values: Table) -> Table:
        floor: Table = values.take(self._floor, axis=-1)
        later: Table = values.take(self._ceil, axis=-1)
        later -= floor
        later *= self._share
        later += floor
        return later


def _waited(go_on_demand: Table, spot_up: Table, back: float, wait_from: int) -> tuple[list[float], list[float]]:
    """Values of waiting for spot machines, and of the better of that and an on-demand machine: each column of slack
    needs the one before."""
    at_once, first, stay = go_on_demand.tolist(), max(1, wait_from), 1 - back
    wait, best = at_once[:first], at_once[:first]
    before = best[-1]
    for direct, returned in zip(at_once[first:], (back * spot_up[first - 1 : -1]).tolist(), strict=False):
        waited = stay * before + returned
        before = waited if waited < direct else direct
        wait.append(waited)
        best.append(before)
    return wait, best


def _between(place: float, length: int) -> tuple[int, float]:
    inside = min(max(place, 0.0), length - 1.0)
    floor = min(int(inside), length - 2)
    return floor, inside - floor
