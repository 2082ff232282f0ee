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

    step = slack_grid_s(slack_s)
    work_step = max(step, min(MOST_ROW_S, work_s / MOST_ROWS))
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
    past_line = slack < switching.line_s
    may_spot = slack >= switching.line_s + switching.setup_s
    may_leave = slack >= switching.line_s + switching.restore_s + switching.save_s
    may_wait = slack - step >= switching.setup_s
    wait_from = int(may_wait.argmax()) if may_wait.any() else columns

    nothing, wait, spot_up, spot_up_old, young, old, on_demand, on_demand_spot_up = (
        np.zeros((rows, columns)) for _ in range(8)
    )
    held, held_spot_up = np.zeros(columns), np.zeros(columns)
    for row in range(1, rows):
        before = row - 1
        lost = redo(terms.elsewhere * spot_up_old[before] + (1 - terms.elsewhere) * nothing[before])
        grown = (1 - ages) * young[before] + ages * old[before]
        to_the_end = on_demand_usd * (row * hours + restore_h) + spot_usd * setup_h
        young[row] = spot_usd * hours + (1 - lost_young) * grown + lost_young * lost
        old[row] = spot_usd * hours + (1 - lost_old) * old[before] + lost_old * lost
        young[row][past_line] = old[row][past_line] = to_the_end
        on_demand[row] = on_demand_usd * hours + (1 - back) * held + back * held_spot_up
        on_demand_spot_up[row] = on_demand_usd * hours + (1 - none_left) * held_spot_up + none_left * held

        go_on_demand = on_demand_usd * setup_h + setup(on_demand_spot_up[row])
        gone = setup(terms.elsewhere * spot_up_old[before] + (1 - terms.elsewhere) * nothing[before]) + spot_usd * hours
        for values, on_it, losses_per_h in (
            (spot_up, young, terms.young_losses_per_h),
            (spot_up_old, old, terms.old_losses_per_h),
        ):
            lasts = exp(-losses_per_h * setup_h)  # probability to survive its set-up, which is wasted if not
            start = spot_usd * setup_h + lasts * setup(on_it[row]) + (1 - lasts) * gone
            values[row] = np.where(may_spot, np.minimum(go_on_demand, start), go_on_demand)
        go_on_demand = on_demand_usd * setup_h + setup(on_demand[row])
        wait[row], nothing[row] = _waited(go_on_demand, spot_up[row], back_waiting, wait_from)
        leave = spot_usd * setup_h + restore(young[row])
        held = np.where(may_leave, np.minimum(on_demand[row], nothing[row]), on_demand[row])
        held_spot_up = np.where(may_leave, np.minimum(on_demand_spot_up[row], leave), on_demand_spot_up[row])
    return SlackTable(on_demand_usd, work_step, step, nothing, wait, young, old, on_demand, on_demand_spot_up)


class _Later:
    """A column of values after some slack is used up. Negative slack counts as zero."""

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
