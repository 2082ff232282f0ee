"""A controller that dies at any point of any turn is followed by one that ends in the very same journal."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest

from shoestring import recipes
from shoestring.controller import run
from shoestring.errors import ShoestringError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.decisions import ACTS_ON_THE_WORLD, Decision
from shoestring.kernel.events import Event, RunStarted
from shoestring.kernel.history import RecordedEvents
from shoestring.kernel.spec import RunSpec
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.crashing_journal import Crash, CrashingJournal
from tests.studies import Case, play, random_case

RESTLESS = ("revocations", "lost_steps", "denials")


def a_restless_study() -> Case:
    """The first random case that is restless; if another number is by now, `test_the_study_is_restless` says so."""
    case = random_case(random.Random("crash/2"))
    return replace(case, spec=busier(case), denial_share=0.3, trouble_share=0.05)


def busier(case: Case) -> RunSpec:
    options = {name: case.spec.options[name] for name in ("placement", "checkpointing")}
    return msgspec.structs.replace(case.spec, recipe="asha", options=options, trials=6, max_steps=9, max_failures=2)


CASE = a_restless_study()
REFERENCE_STATE, _REFERENCE = play(CASE)
REFERENCE = _REFERENCE.dump()
ENTRIES = len(list(_REFERENCE.read()))


class Dying:
    """A world whose controller dies while carrying out the n-th acting decision: that one is done, the rest is not."""

    def __init__(self, inner, die_at: int) -> None:
        self.inner, self.left = inner, die_at
        self.feed = inner.feed

    def attach(self, past: RecordedEvents) -> None:
        self.inner.attach(past)

    def next_event(self) -> Event:
        return self.inner.next_event()

    def carry_out(self, decision: Decision) -> None:
        self.inner.carry_out(decision)
        if type(decision) in ACTS_ON_THE_WORLD:
            self.left -= 1
            if self.left == 0:
                raise Crash("in the middle of acting")


class Repeating:
    """After a restart, old events arrive again in any order, mixed with new ones."""

    def __init__(self, inner, rng: random.Random) -> None:
        self.inner, self.rng = inner, rng
        self.feed = inner.feed
        self._again: list[Event] = []

    def attach(self, past: RecordedEvents) -> None:
        self._again = [entry.event for entry in past.entries if not isinstance(entry.event, RunStarted)]
        self.rng.shuffle(self._again)
        self.inner.attach(past)

    def next_event(self) -> Event:
        if self._again and self.rng.random() < 0.5:
            return self._again.pop()
        return self.inner.next_event()

    def carry_out(self, decision: Decision) -> None:
        self.inner.carry_out(decision)


def test_the_study_is_restless() -> None:
    """Revocations, lost work, denials and failures: crashes fall on everything."""
    assert all(getattr(REFERENCE_STATE, name) > 0 for name in RESTLESS)
    assert any(job.failures for job in REFERENCE_STATE.jobs.values())
    assert 60 <= ENTRIES <= 160


def drive(world, journal) -> None:
    first = [] if list(journal.read()) else [CASE.opening()]
    run(world, journal, recipes.build(CASE.spec), BudgetAndDeadline(), first=first)


def resumed(journal: MemoryJournal, seed: int) -> bytes:
    successor = MemoryJournal(taken_from=journal)
    drive(Repeating(CASE.world(), random.Random(seed)), successor)
    return successor.dump()


@pytest.mark.parametrize("when", ["crash_before", "crash_after"])
@pytest.mark.parametrize("loses_groups", [False, True])
def test_a_crash_around_recording_any_entry_changes_nothing(when: str, loses_groups: bool) -> None:
    for entry in range(1, ENTRIES + 1):
        journal = MemoryJournal()
        with pytest.raises(Crash):
            drive(CASE.world(), CrashingJournal(journal, **{when: entry}, loses_groups=loses_groups))
        assert resumed(journal, seed=entry) == REFERENCE, f"{when} entry {entry}"


def acting_decisions() -> Iterator[int]:
    acting = sum(type(x) in ACTS_ON_THE_WORLD for entry in _REFERENCE.read() for x in entry.decisions)
    return iter(range(1, acting + 1))


def test_a_crash_in_the_middle_of_acting_changes_nothing() -> None:
    tried = 0
    for order in acting_decisions():
        journal = MemoryJournal()
        with pytest.raises(Crash):
            drive(Dying(CASE.world(), order), journal)
        assert resumed(journal, seed=order) == REFERENCE, f"in the middle of acting decision {order}"
        tried += 1
    assert tried > 20


def test_crash_upon_crash_ends_in_the_same_journal() -> None:
    """Not one crash but one every few entries, until the run is over."""
    journal = MemoryJournal()
    crashes = 0
    while True:
        handle = MemoryJournal(taken_from=journal)
        world = Repeating(CASE.world(), random.Random(crashes))
        try:
            drive(world, CrashingJournal(handle, crash_after=3, loses_groups=crashes % 2 == 0))
        except Crash:
            crashes += 1
            assert crashes < ENTRIES
            continue
        break
    assert crashes > 15
    assert journal.dump() == REFERENCE


class Overtaking:
    """New events overtake each other as well: pairs arrive swapped, as from two sources read one after the other."""

    def __init__(self, inner, rng: random.Random) -> None:
        self.inner, self.rng = inner, rng
        self.feed = inner.feed
        self._held: list[Event] = []
        self.swapped = 0

    def attach(self, past: RecordedEvents) -> None:
        self.inner.attach(past)

    def next_event(self) -> Event:
        if self._held:
            return self._held.pop()
        event = self.inner.next_event()
        if self.rng.random() >= 0.2:
            return event
        try:
            later = self.inner.next_event()
        except ShoestringError:  # it was the last one
            return event
        self._held.append(event)
        self.swapped += 1
        return later

    def carry_out(self, decision: Decision) -> None:
        self.inner.carry_out(decision)


@pytest.mark.parametrize("seed", range(30))
def test_new_events_that_overtake_each_other_break_no_guarantee(seed: int) -> None:
    """The journal differs then, but every guarantee holds and the run ends."""
    journal = MemoryJournal()
    world = Overtaking(CASE.world(), random.Random(seed))
    state = run(world, journal, recipes.build(CASE.spec), BudgetAndDeadline(), first=[CASE.opening()])
    assert state.concluded
    assert not state.leases
    assert not state.segments
    assert state.spent_usd <= CASE.spec.budget_usd
    assert world.swapped > 0
