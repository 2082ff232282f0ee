"""The optimum in hindsight: by dynamic programming over time and work left.

It never saves (it knows the preemptions) and restores in whole ticks rounded down, so it is a lower bound.
"""

from __future__ import annotations

import numpy as np

from benchmarks.placement_traces import TICK_S
from benchmarks.placement_world import Task


def least_usd(task: Task) -> float:
    market = task.market
    ticks, work = int(task.deadline_s / TICK_S), int(np.ceil(task.work_s / TICK_S))
    setup = max(1, round(task.switching.setup_s / TICK_S))
    overlap = setup - int(task.switching.restore_s / TICK_S)
    span = slice(task.start, task.start + ticks)
    kept = np.full((1, ticks), market.on_demand_usd_per_hour)
    price = np.concatenate([market.usd_per_hour[:, span], kept]) * TICK_S / 3600
    up = np.concatenate([market.up[:, span], np.ones((1, ticks), dtype=bool)])
    price = np.where(up, price, np.inf)

    machines = len(price)
    never = np.full((machines, work + 1), np.inf)
    never[:, 0] = 0.0
    ahead = [never] * setup  # values on each machine, one tick ahead and so on
    idle = never[0]
    for tick in reversed(range(ticks)):
        launched = np.inf * np.ones(work + 1)
        if tick + setup <= ticks:
            paid = price[:, tick : tick + setup].sum(axis=1)
            launched = (paid[:, None] + ahead[setup - 1]).min(axis=0)
        idle = np.minimum(idle, launched)
        here = np.empty_like(never)
        here[:, 0] = 0.0
        here[:, 1:] = np.minimum(price[:, tick, None] + ahead[0][:, :-1], idle[1:])
        if tick + setup <= ticks:
            both = price[:, tick : tick + overlap].sum(axis=1)[:, None]
            moved = np.concatenate([np.zeros(overlap), launched[:-overlap]]) if overlap else launched
            here[:, 1 + overlap :] = np.minimum(here[:, 1 + overlap :], both + moved[None, 1 + overlap :])
        idle = idle.copy()
        idle[0] = 0.0
        ahead = [here, *ahead[:-1]]
    return float(idle[work])
