"""The fluid bound: a lower bound of the cost of a study, with perfectly divisible work.

Work is split arbitrarily over machines and time with knowledge of the future, machines are granted at once, and there
are no set-ups, saves or repeated work. What remains is what no policy can avoid: the capacity of each zone, one machine
per trial at a time, and the deadline.

The order of ticks does not matter then. So ticks with the same machines at the same prices are merged, and the bound is
a linear program of a few thousand variables, solved exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.placement_traces import TICK_S


def fluid_usd(
    counts: NDArray[np.int_],
    usd_per_hour: NDArray[np.float64],
    on_demand_usd_per_hour: float,
    work_s: Sequence[float],
) -> float:
    """Of trials with so much work each, over these ticks: machines and their prices, rows are zones."""
    from scipy.optimize import linprog
    from scipy.sparse import block_array, eye_array, kron

    moments, lasting = np.unique(np.concatenate([counts, usd_per_hour]), axis=1, return_counts=True)
    zones, kinds, trials = len(counts), len(lasting), len(work_s)
    hours = lasting * TICK_S / 3600
    machines, prices = moments[:zones], moments[zones:]

    # Variables: hours of each trial at each kind of moment, then machine-hours of each source there, on demand last.
    sources = zones + 1
    usd = np.concatenate([np.zeros(trials * kinds), prices.ravel(), np.full(kinds, on_demand_usd_per_hour)])
    most = np.concatenate([np.tile(hours, trials), (machines * hours).ravel(), trials * hours])
    all_kinds = eye_array(kinds)
    all_work_done = kron(eye_array(trials), np.ones((1, kinds)))
    on_some_machine = [kron(np.ones((1, trials)), all_kinds), -kron(np.ones((1, sources)), all_kinds)]
    solved = linprog(
        usd,
        A_eq=block_array([[all_work_done, None], on_some_machine]).tocsr(),
        b_eq=np.concatenate([np.asarray(work_s) / 3600, np.zeros(kinds)]),
        bounds=np.stack([np.zeros_like(most), most], axis=1),
        method="highs",
    )
    if not solved.success:
        raise ValueError(f"the study cannot be done in its time: {solved.message}")
    return float(solved.fun)
