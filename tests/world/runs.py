"""Whole simulated runs through the real controller, and ways to read their journals."""

from __future__ import annotations

from collections.abc import Sequence

from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.space.space import Float, Space
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Latencies
from shoestring.world.sim.world import SimWorld
from tests.world.scenes import market, workload


def spec(**fields) -> RunSpec:
    """One trial of 20 steps on one machine, saved on notice only."""
    standard = {
        "name": "simulated",
        "space": Space(params={"x": Float(low=0.0, high=1.0)}),
        "metric": "loss",
        "trials": 1,
        "max_steps": 20,
        "budget_usd": 10.0,
        "deadline_s": 12 * 3600.0,
        "recipe": "random",
        "options": {"checkpointing": "on_notice"},
        "max_machines": 1,
    }
    return RunSpec(**{**standard, **fields})


def simulated_world(provider=None, latencies: Latencies | None = None, **of_workload) -> SimWorld:
    """Steps of a minute, checkpoints of half a gigabyte."""
    standard = {"seconds_per_step": lambda *_: 60.0}
    return SimWorld(provider or market(), workload(**{**standard, **of_workload}), latencies, start=0.0)


def opening(world: SimWorld, **fields) -> e.RunStarted:
    """A run may use every machine type of its world."""
    described = spec(listings=world.provider.listings, **fields)
    return e.RunStarted(at=0.0, spec=described, seed=described.seed)


def simulate(world: SimWorld, policies: Sequence[Policy] | None = None, **fields) -> tuple[RunState, list[Entry]]:
    """A whole run, described by the fields of its spec that are not the default ones."""
    journal, start = MemoryJournal(), opening(world, **fields)
    chain = recipes.build(start.spec) if policies is None else policies
    state = run(world, journal, chain, BudgetAndDeadline(), first=[start])
    return state, list(journal.read())


def events_of(entries: Sequence[Entry], *kinds: type[e.Event]) -> list[e.Event]:
    return [entry.event for entry in entries if isinstance(entry.event, kinds)]


def decided(entries: Sequence[Entry], kind: type[d.Decision]) -> list[d.Decision]:
    return [decision for entry in entries for decision in entry.decisions if isinstance(decision, kind)]
