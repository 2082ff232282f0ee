"""The initial plan of a run, stage by stage, for the recipes that make one.

A recipe makes plans if its search has a method `plan(state)`. The different plans become one table here.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from shoestring import recipes
from shoestring.kernel.events import RunStarted
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import PriceFeed
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.step import replay
from shoestring.kernel.view import RunView
from shoestring.policies.search.rubberband.plan import RubberbandPlan as CheapestPlan
from shoestring.policies.search.seer.bill import BilledPlan
from shoestring.units import show_duration, show_usd

TITLES = ("stage", "start", "stop", "trials", "slots each", "machines", "dollars")


@dataclass(frozen=True)
class StageRow:
    start_s: float
    """Counted from when the first machines are up."""
    stop_s: float
    trials: int
    slots: tuple[tuple[int, int], ...]
    """(trials, slots of each), the fewest slots first."""
    machines: int
    usd: float


@dataclass(frozen=True)
class PlanTable:
    stages: tuple[StageRow, ...]
    usd: float
    seconds: float
    budget_usd: float
    deadline_s: float

    def cells(self) -> list[tuple[str, ...]]:
        return [
            (
                str(number),
                show_duration(row.start_s),
                show_duration(row.stop_s),
                str(row.trials),
                _slots_each(row),
                str(row.machines),
                show_usd(row.usd),
            )
            for number, row in enumerate(self.stages, start=1)
        ]

    @property
    def total(self) -> str:
        """$18.43 of $20.00 · 34m of 1h"""
        money = f"{show_usd(self.usd)} of {show_usd(self.budget_usd)}"
        return f"{money} · {show_duration(self.seconds)} of {show_duration(self.deadline_s)}"

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)


def plan_of(spec: RunSpec, feed: PriceFeed, start: float) -> PlanTable | None:
    """The plan of the spec's recipe at the prices of `start`; None if it makes none. SpecError if no plan exists."""
    search = recipes.search_of(spec)
    if not hasattr(search, "plan"):
        return None
    state = RunState(feed)
    replay(state, Entry(seq=1, event=RunStarted(at=start, spec=spec, seed=spec.seed), decisions=()))
    plan = search.plan(RunView(state))
    match plan:
        case CheapestPlan():
            stages = _cheapest(plan)
        case BilledPlan():
            stages = _billed(plan, spec)
        case _:
            return None  # a third-party search: its plan has another form
    return PlanTable(stages, plan.usd, stages[-1].stop_s, spec.budget_usd, spec.deadline_s)


def _cheapest(plan: CheapestPlan) -> tuple[StageRow, ...]:
    return tuple(
        StageRow(stage.start, stage.stop, stage.trials, ((stage.trials, stage.slots),), stage.machines, stage.usd)
        for stage in plan.stages
    )


def _billed(plan: BilledPlan, spec: RunSpec) -> tuple[StageRow, ...]:
    """The bill is for whole leases: a stage's share of it is its share of all machine time."""
    lengths = [stage.stop - stage.start for stage in plan.stages]
    held = [machines * length for machines, length in zip(plan.machines, lengths, strict=True)]
    whole = math.fsum(held) or 1.0
    return tuple(
        StageRow(
            start_s=stage.start,
            stop_s=stage.stop,
            trials=sum(bracket.trials for bracket in stage.brackets),
            slots=tuple((bracket.trials, bracket.slots * spec.slots) for bracket in stage.brackets),
            machines=machines,
            usd=plan.usd * time / whole,
        )
        for stage, machines, time in zip(plan.stages, plan.machines, held, strict=True)
    )


def _slots_each(row: StageRow) -> str:
    """One number if all trials have the same, else "11x1, 5x2": eleven of one slot and five of two."""
    if len(row.slots) == 1:
        return str(row.slots[0][1])
    return ", ".join(f"{trials}x{slots}" for trials, slots in row.slots)
