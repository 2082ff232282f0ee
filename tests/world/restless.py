"""A small simulated study with many revocations, its recorded run, and wrappers of its world that interfere."""

from __future__ import annotations

from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import RecordedEvents
from shoestring.kernel.state import RunState
from shoestring.storage.journal.memory import MemoryJournal
from tests.world.runs import opening, simulated_world
from tests.world.scenes import SPOT, dies_at_age, listing, market

GUARD = BudgetAndDeadline()


def a_world():
    """Two slots per machine, each with a lifetime of ten minutes: there is always something to save and to replace."""
    return simulated_world(market(dies_at_age(600.0), listings=[listing(SPOT, slots=2)]), curve=by_distance)


def by_distance(config):
    return lambda step: {"loss": abs(config["x"] - 0.3) + 1 / step}


START = opening(a_world(), trials=6, max_steps=9, max_machines=2)
POLICIES = recipes.build(START.spec)


def finished_run() -> tuple[RunState, MemoryJournal]:
    journal = MemoryJournal()
    return run(a_world(), journal, POLICIES, GUARD, first=[START]), journal


REFERENCE, _journal = finished_run()
RECORD = list(_journal.read())
DUMP = _journal.dump()


def resumed(journal: MemoryJournal, *requests: e.Event) -> RunState:
    now = max(entry.event.at for entry in journal.read())
    return run(a_world(), journal, POLICIES, GUARD, first=[*requests, e.UserAsked(at=now, wish="resume")])


class Around:
    """A wrapper of a world; subclasses change one thing."""

    def __init__(self, inner=None) -> None:
        self.inner = inner or a_world()
        self.feed = self.inner.feed

    def attach(self, past: RecordedEvents) -> None:
        self.inner.attach(past)

    def next_event(self) -> e.Event:
        return self.inner.next_event()

    def carry_out(self, decision: d.Decision) -> None:
        self.inner.carry_out(decision)
