"""Forecast of cost and time of a run, from many simulations of it.

Every simulation has its own seed of the market and the search. Learning curves and speed come from an earlier run or
are guessed, and a forecast says which: cost and time are only as certain as the speed they rest on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.market.simulated.synthetic_prices import DEFAULT_START
from shoestring.report.study import Study
from shoestring.report.unspent import Unspent, unspent
from shoestring.runs.bag_workload import as_run
from shoestring.runs.plan_table import PlanTable, plan_of
from shoestring.specs.request import RunRequest
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Workload
from shoestring.world.sim.world import SimWorld


@dataclass(frozen=True)
class SimulationOutcome:
    """The outcome of one simulation."""

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
    spec: RunSpec
    plan: PlanTable | None
    outcomes: tuple[SimulationOutcome, ...]

    @property
    def recipe(self) -> str:
        return self.spec.recipe

    @property
    def count(self) -> int:
        return len(self.outcomes)

    def usd(self, q: float) -> float:
        """The quantile of the cost."""
        return _quantile([x.usd for x in self.outcomes], q)

    def seconds(self, q: float) -> float:
        return _quantile([x.seconds for x in self.outcomes], q)

    @property
    def misses_deadline(self) -> float:
        """The fraction of simulations that the deadline ended."""
        return statistics.fmean(x.out_of_time for x in self.outcomes)

    @property
    def runs_out_of_money(self) -> float:
        return statistics.fmean(x.out_of_money for x in self.outcomes)

    @property
    def best(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the best value."""
        values = [x.best for x in self.outcomes if x.best is not None]
        return (statistics.fmean(values), statistics.pstdev(values)) if values else None

    @property
    def unspent(self) -> Unspent | None:
        """What the median simulation leaves of the budget, where that is most of it and the work is done."""
        if max(self.misses_deadline, self.runs_out_of_money) >= 0.5:
            return None
        trials = int(_quantile([x.trials for x in self.outcomes], 0.5))
        return unspent(self.spec, self.usd(0.5), self.seconds(0.5), trials)

    def to_plain(self) -> dict[str, Any]:
        best, left = self.best, self.unspent
        return {
            "recipe": self.recipe,
            "cost_usd": {"p50": self.usd(0.5), "p90": self.usd(0.9)},
            "done_s": {"p50": self.seconds(0.5), "p90": self.seconds(0.9)},
            "misses_deadline": self.misses_deadline,
            "runs_out_of_money": self.runs_out_of_money,
            "best_value": None if best is None else {"mean": best[0], "sd": best[1]},
            "unspent": None if left is None else left.to_plain(),
            "plan": None if self.plan is None else self.plan.to_plain(),
            "simulations": [asdict(x) for x in self.outcomes],
        }


def forecast(
    request: RunRequest, workload: Workload, runs: int, progress: Callable[[int], None]
) -> tuple[Forecast, Study]:
    """Simulate the request `runs` times; also returns the first simulation as a study. `progress` receives how many are
    done."""
    first = request.provider.start or DEFAULT_START
    plan = plan_of(request.spec, request.provider.feed, first)
    outcomes: list[SimulationOutcome] = []
    journals: list[MemoryJournal] = []
    for number in range(runs):
        state, journal = _simulated(request, workload, number)
        outcomes.append(_outcome(state, request.spec.seed + number))
        journals = journals or [journal]
        progress(number + 1)
    return Forecast(request.spec, plan, tuple(outcomes)), Study(journals[0].read)


def _simulated(request: RunRequest, workload: Workload, number: int) -> tuple[RunState, MemoryJournal]:
    spec = msgspec.structs.replace(request.spec, seed=request.spec.seed + number)
    market = msgspec.structs.replace(request.market, seed=request.market.seed + number)
    provider = request.simulated_provider() if number == 0 else market.open(spec.deadline_s)
    start, journal = provider.start or DEFAULT_START, MemoryJournal()
    state = run(
        SimWorld(provider, as_run(workload, spec), start=start),
        journal,
        request.policies,
        BudgetAndDeadline(),
        first=[RunStarted(at=start, spec=spec, seed=spec.seed)],
    )
    return state, journal


def _outcome(state: RunState, seed: int) -> SimulationOutcome:
    best = None if state.best is None else state.jobs[state.best].best
    return SimulationOutcome(
        seed=seed,
        usd=state.spent_usd,
        seconds=state.now - state.started_at,
        best=best,
        trials=len(state.jobs),
        revoked=state.revocations,
        out_of_time=state.unfinished and state.end_reason == "deadline_reached",
        out_of_money=state.unfinished and state.end_reason == "out_of_budget",
    )


def _quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that a fraction `q` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]
