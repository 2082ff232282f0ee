"""One simulated run of the elastic benchmark: a task, a cell, a contestant and a seed; and its outcome.

A run is the product itself in virtual time: the same controller, guard, placement and bills as `shoestring simulate`.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.curve_task import CurveTask, true_speedup
from benchmarks.seer_market import MACHINE_SLOTS, START, Cell, market
from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.decisions import AddJob
from shoestring.kernel.events import Event, RunStarted
from shoestring.kernel.history import RecordedEvents
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Value
from shoestring.kernel.view import RunView
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Latencies
from shoestring.world.sim.world import SimWorld

LATENCIES = Latencies(start_s=10.0, save_overhead_s=1.0, restore_overhead_s=1.0)
WIND_DOWN_S = 30.0
SLICE_S = 300.0
"""Spot machines are prepaid at the on-demand price: longer slices would tie up money that pays for more machines."""
NO_LIMIT = 100_000
"""More trials than can be started: a run ends by its budget or its deadline."""


@dataclass(frozen=True)
class Setting:
    """How a contestant is set up for a cell: what of the spec is its own."""

    recipe: str
    options: dict[str, Value] = field(default_factory=dict)
    machines: int = 64
    trials: int = NO_LIMIT
    max_steps: int | None = None
    """None: as far as the table goes."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    task: str
    cell: Cell
    contestant: str
    seed: int
    regret: float
    spent_share: float
    """Of the budget."""
    overran: bool
    """It cost more than the budget, or ended after the deadline."""
    busy: float
    """The share of paid slot-time in which a trial trained."""
    modelled: float
    """The share of trials that were sampled by a model."""
    trials: int
    events: int
    cpu_s: float
    turns_ms: array[float]
    """CPU time of each turn in which the search was consulted, everything from its event to the last order."""
    speedup_error: float
    """The relative error of the speedup of a whole machine as learned from measured step times. Without a trial at two
    widths it is that of the prior."""


def spec_for(task: CurveTask, cell: Cell, setting: Setting, seed: int, provider: SimulatedProvider) -> RunSpec:
    return RunSpec(
        name="seer",
        space=task.space,
        metric=task.metric,
        direction=task.direction,
        trials=setting.trials,
        max_steps=min(task.max_steps, setting.max_steps or task.max_steps),
        budget_usd=cell.budget_usd,
        deadline_s=cell.minutes * 60.0,
        recipe=setting.recipe,
        options=setting.options,
        seed=seed,
        listings=provider.listings,
        max_machines=setting.machines,
        wind_down_s=WIND_DOWN_S,
        slice_s=SLICE_S,
    )


class TimedWorld(SimWorld):
    """Measures the CPU time from delivering an event to the request for the next: a turn of the controller."""

    def __init__(self, provider: SimulatedProvider, task: CurveTask, consulted_on: frozenset[type]) -> None:
        super().__init__(provider, task.workload(), LATENCIES, start=START)
        self.turns_ms = array("f")
        self._consulted_on = consulted_on
        self._began: float | None = None

    def attach(self, past: RecordedEvents) -> None:
        super().attach(past)
        self._began = time.thread_time()  # what comes first is told by the controller, not by the world

    def next_event(self) -> Event:
        if self._began is not None:
            self.turns_ms.append((time.thread_time() - self._began) * 1000.0)
        event = super().next_event()
        self._began = time.thread_time() if type(event) in self._consulted_on else None
        return event


def compete(
    task: CurveTask,
    cell: Cell,
    contestant: str,
    setting: Setting,
    seed: int,
    *,
    spot: bool = False,
    policies: Sequence[Policy] | None = None,
) -> Outcome:
    """One run. `policies` replace the recipe's: for experiments."""
    outcome, _, _ = play(task, cell, contestant, setting, seed, spot=spot, policies=policies)
    return outcome


def play(
    task: CurveTask,
    cell: Cell,
    contestant: str,
    setting: Setting,
    seed: int,
    *,
    spot: bool = False,
    policies: Sequence[Policy] | None = None,
) -> tuple[Outcome, RunState, MemoryJournal]:
    """One run, with its final state."""
    provider = market(seed, spot=spot)
    spec = spec_for(task, cell, setting, seed, provider)
    bench = list(policies) if policies is not None else recipes.build(spec)
    world = TimedWorld(provider, task, frozenset(bench[0].wants))
    journal = MemoryJournal()
    began = time.process_time()
    state = run(world, journal, bench, BudgetAndDeadline(), first=[RunStarted(at=START, spec=spec, seed=seed)])
    cpu_s = time.process_time() - began
    outcome = Outcome(
        task=task.name,
        cell=cell,
        contestant=contestant,
        seed=seed,
        regret=task.regret(_best_value(state)),
        spent_share=state.spent_usd / spec.budget_usd,
        overran=state.spent_usd > spec.budget_usd or state.now > state.deadline_at,
        busy=_busy(state),
        modelled=_modelled(journal),
        trials=len(state.jobs),
        events=state.seq,
        cpu_s=cpu_s,
        turns_ms=world.turns_ms,
        speedup_error=abs(SpeedByWidth.of(RunView(state)).speedup(MACHINE_SLOTS) / true_speedup(MACHINE_SLOTS) - 1.0),
    )
    return outcome, state, journal


def _best_value(state: RunState) -> float:
    """The best value of any trial at a step that was kept."""
    values = [job.best for job in state.jobs.values() if not math.isnan(job.best)]
    return min(values, key=state.the_spec.rank, default=math.nan)


def _busy(state: RunState) -> float:
    paid_s = sum(account.seconds * state.listings[offer].slots for offer, account in state.accounts.items())
    trained_s = sum(pace.seconds * slots for job in state.jobs.values() for (_, slots), pace in job.paces.items())
    return trained_s / paid_s if paid_s else 0.0


def _modelled(journal: MemoryJournal) -> float:
    added = [order for entry in journal.read() for order in entry.decisions if isinstance(order, AddJob)]
    return sum("proposed by the" in order.why for order in added) / len(added) if added else 0.0
