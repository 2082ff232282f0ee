"""Whole simulated studies of sixteen recorded curves: what the search `theta` gains from the predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.earlycurve_groups import Group
from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Config
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.space.space import Int, Space
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Curve, Workload
from shoestring.world.sim.world import SimWorld


@dataclass(frozen=True)
class Outcome:
    steps: float
    """The share of all steps that was trained."""
    kept_best: bool
    """Was the best of all trained to the end?"""


def studied(group: Group, recipe: str) -> Outcome:
    """All trials at once, on on-demand machines."""
    market = SimulatedProvider.modern(seed=0, interruptions_per_hour=0.0)
    trials = len(group.curves)
    spec = RunSpec(
        name="earlycurve",
        space=Space(params={"row": Int(0, trials - 1)}),
        metric="value",
        direction=group.direction,
        given=tuple({"row": row} for row in range(trials)),
        trials=trials,
        max_steps=group.steps,
        budget_usd=1e6,
        deadline_s=30 * 86400.0,
        listings=market.listings,
        max_machines=trials,
        recipe=recipe,
        options={"every_s": "1m"},
    )

    def curve(config: Config) -> Curve:
        values = group.curves[int(config["row"] or 0)]
        return lambda step: {"value": float(values[step - 1])}

    workload = Workload(curve=curve, seconds_per_step=lambda *_: 60.0)
    world = SimWorld(market, workload, start=market.start)
    first = [RunStarted(at=market.start, spec=spec, seed=0)]
    state = run(world, MemoryJournal(), recipes.build(spec), BudgetAndDeadline(), first=first)
    best = state.jobs[f"j{int(np.argmin(group.finals))}"]
    trained = sum(pace.steps for job in state.jobs.values() for pace in job.paces.values())
    return Outcome(trained / group.curves.size, best.status == "finished" or not math.isfinite(group.finals.min()))
