"""What a run would cost and when it would be done, from many simulations of it: one market after another.

Every simulation has a seed of its own for the market and for the search. How trials behave comes from an earlier run or
is guessed, and a forecast says which: money and time are only as sure as the speed they rest on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.state import RunState
from shoestring.market.simulated.synthetic_prices import DEFAULT_START
from shoestring.report.study import Study
from shoestring.runs.plan_table import PlanTable, plan_of
from shoestring.specs.request import RunRequest
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Workload
from shoestring.world.sim.world import SimWorld

NEAR = "the deadline is near"


@dataclass(frozen=True)
class Rehearsal:
    """What one simulation came to."""

    seed: int
    usd: float
    seconds: float
    best: float | None
    trials: int
    revoked: int
    out_of_time: bool
    """The deadline came with work left."""
    out_of_money: bool


@dataclass(frozen=True)
class Forecast:
    recipe: str
    plan: PlanTable | None
    rehearsals: tuple[Rehearsal, ...]

    @property
    def count(self) -> int:
        return len(self.rehearsals)

    def usd(self, share: float) -> float:
        """So many of the simulations cost no more."""
        return _quantile([x.usd for x in self.rehearsals], share)

    def seconds(self, share: float) -> float:
        return _quantile([x.seconds for x in self.rehearsals], share)

    @property
    def misses_deadline(self) -> float:
        """The part of the simulations that the deadline ended."""
        return statistics.fmean(x.out_of_time for x in self.rehearsals)

    @property
    def runs_out_of_money(self) -> float:
        return statistics.fmean(x.out_of_money for x in self.rehearsals)

    @property
    def best(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the best value."""
        values = [x.best for x in self.rehearsals if x.best is not None]
        return (statistics.fmean(values), statistics.pstdev(values)) if values else None

    def to_plain(self) -> dict[str, Any]:
        best = self.best
        return {
            "recipe": self.recipe,
            "cost_usd": {"p50": self.usd(0.5), "p90": self.usd(0.9)},
            "done_s": {"p50": self.seconds(0.5), "p90": self.seconds(0.9)},
            "misses_deadline": self.misses_deadline,
            "runs_out_of_money": self.runs_out_of_money,
            "best_value": None if best is None else {"mean": best[0], "sd": best[1]},
            "plan": None if self.plan is None else self.plan.to_plain(),
            "simulations": [asdict(x) for x in self.rehearsals],
        }


def forecast(
    asked: RunRequest, workload: Workload, runs: int, progress: Callable[[int], None]
) -> tuple[Forecast, Study]:
    """Simulate what was asked so many times; also the first simulation, whole. `progress` is told how many are done."""
    first = asked.provider.start or DEFAULT_START
    plan = plan_of(asked.spec, asked.provider.feed, first)
    rehearsals: list[Rehearsal] = []
    journals: list[MemoryJournal] = []
    for number in range(runs):
        state, journal = _simulated(asked, workload, number)
        rehearsals.append(_came_to(state, asked.spec.seed + number))
        journals = journals or [journal]
        progress(number + 1)
    return Forecast(asked.spec.recipe, plan, tuple(rehearsals)), Study(journals[0].read)


def _simulated(asked: RunRequest, workload: Workload, number: int) -> tuple[RunState, MemoryJournal]:
    spec = msgspec.structs.replace(asked.spec, seed=asked.spec.seed + number)
    market = msgspec.structs.replace(asked.market, seed=asked.market.seed + number)
    provider = asked.provider if number == 0 else market.open(spec.deadline_s)
    start, journal = provider.start or DEFAULT_START, MemoryJournal()
    state = run(
        SimWorld(provider, workload, start=start),
        journal,
        recipes.build(spec),
        BudgetAndDeadline(),
        first=[RunStarted(at=start, spec=spec, seed=spec.seed)],
    )
    return state, journal


def _came_to(state: RunState, seed: int) -> Rehearsal:
    best = None if state.best is None else state.jobs[state.best].best
    return Rehearsal(
        seed=seed,
        usd=state.spent_usd,
        seconds=state.now - state.started_at,
        best=best,
        trials=len(state.jobs),
        revoked=state.revocations,
        out_of_time=state.unfinished and state.ending == NEAR,
        out_of_money=state.unfinished and state.ending != NEAR,
    )


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
