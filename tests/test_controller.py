"""The loop's guarantees: record, then act; nothing twice; nothing decided again; park on a bug; one controller only."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar

import pytest

from shoestring.controller import recall, run
from shoestring.errors import IllegalDecision, JournalTaken, PolicyError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.decisions import ACTS_ON_THE_WORLD
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import Policy
from shoestring.kernel.state import RunState
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.crashing_journal import Crash, CrashingJournal
from tests.world.restless import DUMP, GUARD, POLICIES, RECORD, REFERENCE, START, Around, a_world, finished_run, resumed
from tests.world.runs import decided, events_of


# -- record, then act --------------------------------------------------------------------------------------------------
class Suspicious(Around):
    """Reads the file, as a successor would after kill -9, before it carries out anything."""

    def __init__(self, path) -> None:
        super().__init__()
        self.path, self.done = path, 0

    def carry_out(self, decision: d.Decision) -> None:
        if type(decision) in ACTS_ON_THE_WORLD:
            with closing(SqliteJournal.open_readonly(self.path)) as reader:
                *_, last = reader.read()
            assert decision in last.decisions
            self.done += 1
        super().carry_out(decision)


def test_what_is_done_was_on_disk_before(tmp_path):
    world = Suspicious(tmp_path / "journal.sqlite")
    with closing(SqliteJournal.open(world.path)) as journal:
        run(world, journal, POLICIES, GUARD, first=[START])
    assert world.done == sum(len([x for x in entry.decisions if type(x) in ACTS_ON_THE_WORLD]) for entry in RECORD)


class Noting(Around):
    """Keeps a list of the decisions it carries out."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[d.Decision] = []

    def carry_out(self, decision: d.Decision) -> None:
        self.done.append(decision)
        super().carry_out(decision)


def test_what_could_not_be_recorded_is_not_done():
    for entry in RECORD:
        world = Noting()
        with pytest.raises(Crash):
            run(world, CrashingJournal(MemoryJournal(), crash_before=entry.seq), POLICIES, GUARD, first=[START])
        assert world.done == [x for earlier in RECORD[: entry.seq - 1] for x in earlier.decisions]


class Stuttering(Around):
    """Delivers every event three times: at once, and again after other events."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: list[e.Event] = []
        self.last: e.Event | None = None

    def next_event(self) -> e.Event:
        if not self.queue:
            event = self.inner.next_event()
            self.queue = [event, event, *([self.last] if self.last else [])]
            self.last = event
        return self.queue.pop(0)


def test_an_event_delivered_three_times_is_recorded_once():
    journal = MemoryJournal()
    run(Stuttering(), journal, POLICIES, GUARD, first=[START, START])
    assert journal.dump() == DUMP


# -- replay ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class NeverAskedAgain:
    """A policy that must not be called for recorded events."""

    inner: Policy
    recorded: frozenset[str]

    @property
    def wants(self):
        return self.inner.wants

    def decide(self, state, event) -> Iterator[d.Decision]:
        assert event.key not in self.recorded, f"called again for {event.key}"
        yield from self.inner.decide(state, event)


@pytest.mark.parametrize("known", range(1, len(RECORD), 7))
def test_replay_asks_no_policy_and_ends_in_the_same_record(known):
    journal = MemoryJournal()
    with pytest.raises(Crash):
        run(a_world(), CrashingJournal(journal, crash_after=known), POLICIES, GUARD, first=[START])
    recorded = frozenset(entry.event.key for entry in RECORD[:known])
    run(a_world(), journal, [NeverAskedAgain(policy, recorded) for policy in POLICIES], GUARD)
    assert journal.dump() == DUMP


def test_a_run_that_is_over_stays_as_it_is():
    _, journal = finished_run()
    state = run(a_world(), journal, [NeverAskedAgain(p, frozenset()) for p in POLICIES], GUARD)
    assert (state.concluded, state.best) == (True, REFERENCE.best)
    assert journal.dump() == DUMP


# -- a policy with a bug -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Buggy:
    """A search that decides like another one, until the third trial ends."""

    inner: Policy
    bug: Sequence[d.Decision] | Exception

    @property
    def wants(self):
        return self.inner.wants

    def decide(self, state, event) -> Iterator[d.Decision]:
        yield from self.inner.decide(state, event)
        if state.count("finished") >= 3:
            if isinstance(self.bug, Exception):
                raise self.bug
            yield from self.bug


def broken_guard(state, proposed: d.Decision) -> d.Decision:
    if state.count("finished") >= 3:
        raise KeyError("tariff")
    return GUARD(state, proposed)


def with_bug(bug) -> list[Policy]:
    return [Buggy(POLICIES[0], bug), *POLICIES[1:]]


UNKNOWN_LEASE = [d.ReleaseLease(lease="l99", why="a bug")]
WITHOUT_A_REASON = [d.TagJob(job="j0", tags={}, why="")]
BUGS = {
    "an exception": (
        with_bug(ZeroDivisionError("division by zero")),
        GUARD,
        "Buggy broke on SegmentEnded: ZeroDivision",
    ),
    "an illegal decision": (with_bug(UNKNOWN_LEASE), GUARD, "ReleaseLease names lease l99, which is not open"),
    "no reason given": (with_bug(WITHOUT_A_REASON), GUARD, "TagJob without a why"),
    "a broken guard": (POLICIES, broken_guard, "KeyError: 'tariff'"),
}


@pytest.mark.parametrize(("policies", "guard", "complaint"), BUGS.values(), ids=BUGS)
def test_a_bug_parks_the_run_saved_halted_released_and_on_record(policies, guard, complaint):
    journal = MemoryJournal()
    with pytest.raises(PolicyError, match=complaint) as failure:
        run(a_world(), journal, policies, guard, first=[START])
    entries = list(journal.read())
    (broke,) = events_of(entries, e.PolicyBroke)
    assert broke.detail == str(failure.value)

    events = [entry.event for entry in entries]
    parked = events.index(broke)
    over = {event.segment for event in events[:parked] if isinstance(event, e.SegmentEnded)}
    running = {order.segment for order in decided(entries[:parked], d.StartSegment)} - over
    assert running
    assert {order.segment for order in decided(entries[parked:], d.HaltSegment)} == running
    assert events_of(entries[parked:], e.CheckpointSaved)

    state, _ = recall(journal, a_world())
    assert (state.phase, state.leases, state.segments, state.lost_steps) == ("parking", {}, {}, 0)
    assert len(events_of(entries, e.LeaseEnded, e.LeaseDenied)) == len(decided(entries, d.RequestLease))


@pytest.mark.parametrize(("policies", "guard", "complaint"), BUGS.values(), ids=BUGS)
def test_with_the_bug_fixed_a_parked_run_resumes_to_its_end(policies, guard, complaint):
    journal = MemoryJournal()
    with pytest.raises(PolicyError, match=complaint):
        run(a_world(), journal, policies, guard, first=[START])
    state = resumed(journal)
    assert state.concluded
    assert [job.status for job in state.jobs.values()] == ["finished"] * 6
    assert (state.best, state.jobs[state.best].best) == (REFERENCE.best, REFERENCE.jobs[REFERENCE.best].best)


def test_the_broken_turn_left_no_trace():
    journal = MemoryJournal()
    with pytest.raises(IllegalDecision):
        run(a_world(), journal, with_bug(UNKNOWN_LEASE), GUARD, first=[START])
    assert all(x.lease != "l99" for x in decided(list(journal.read()), d.ReleaseLease))
    broke = next(entry.seq for entry in journal.read() if isinstance(entry.event, e.PolicyBroke))
    before = [(entry.event, entry.decisions) for entry in journal.read()][: broke - 1]
    assert before == [(entry.event, entry.decisions) for entry in RECORD[: broke - 1]]


def test_a_bug_in_the_very_first_turn_parks_a_run_that_can_still_resume():
    journal = MemoryJournal()
    with pytest.raises(PolicyError, match="broke on RunStarted"):
        run(a_world(), journal, [Hasty(), *POLICIES], GUARD, first=[START])
    assert [type(entry.event) for entry in journal.read()] == [e.PolicyBroke, e.RunStarted]
    assert resumed(journal).by_status["finished"] == 6


@dataclass(frozen=True)
class Hasty:
    wants: ClassVar = frozenset({e.RunStarted})

    def decide(self, *_) -> Iterator[d.Decision]:
        raise RuntimeError("too early")


# -- one controller at a time ------------------------------------------------------------------------------------------
def test_a_controller_that_lost_its_journal_does_nothing_more():
    journal, world = MemoryJournal(), Noting()
    other: list[MemoryJournal] = []

    def taken_over(state: RunState, _: Entry) -> None:
        if state.seq == 20:
            other.append(MemoryJournal(taken_from=journal))

    with pytest.raises(JournalTaken):
        run(world, journal, POLICIES, GUARD, first=[START], watcher=taken_over)
    assert world.done == [decision for entry in RECORD[:20] for decision in entry.decisions]
    run(a_world(), other[0], POLICIES, GUARD)
    assert other[0].dump() == DUMP


def test_a_watcher_hears_of_every_turn_after_it_was_recorded():
    journal = MemoryJournal()
    watched: list[tuple[int, Entry]] = []

    def watch(state: RunState, entry: Entry) -> None:
        assert list(journal.read())[-1] is entry
        watched.append((state.seq, entry))

    run(a_world(), journal, POLICIES, GUARD, first=[START], watcher=watch)
    assert watched == [(entry.seq, entry) for entry in RECORD]
