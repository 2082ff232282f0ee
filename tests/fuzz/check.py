"""Play one study within bounds, and find what does not hold."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from shoestring import recipes
from shoestring.controller import run
from shoestring.errors import SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.decisions import ExtendLease
from shoestring.kernel.events import Event, JobReported, LeaseEnded, LeaseGranted
from shoestring.kernel.history import Entry
from shoestring.kernel.state import RunState
from shoestring.report.study import Study
from shoestring.storage.journal.memory import MemoryJournal
from tests.fuzz.draft import Draft, World
from tests.fuzz.draw import draft
from tests.fuzz.futile import futile
from tests.guarantees import broken_guarantees
from tests.studies import ELASTIC, START, play

MOST_CPU_S = 60.0
MOST_ENTRIES, MOST_ENTRIES_PER_STEP = 20_000, 20
"""A study that is still going after so many entries does not end: what is well needs a tenth. Renewals have a bound of
their own."""
MOST_RENEWALS, MOST_RENEWALS_PER_LEASE, MOST_RENEWALS_PER_SLICE = 1000, 20, 4.0
"""A renewal prepays half a slice, so a slice of a machine's time has two; they are shorter where the budget ends."""
ATTEMPTS = 8


class Finding(NamedTuple):
    what: str
    """The name of what does not hold: a smaller study shows the same if it has a finding of this name."""
    detail: str


@dataclass
class Outcome:
    seed: int
    findings: list[Finding] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    attempt: int | None = None
    """Which attempt at drawing it was accepted; None: all were refused."""
    seen: Counter[str] = field(default_factory=Counter)
    entries: int = 0


class TooMuch(BaseException):
    """Ends a study that exceeds a bound. Not an Exception: the controller would take that for a broken policy."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(detail)
        self.finding = Finding(what, detail)


class BoundedJournal(MemoryJournal):
    def __init__(self, most: int, slice_s: float) -> None:
        super().__init__()
        self._most, self._slice_s = most, slice_s
        self._others = self._renewals = 0
        self._open: set[str] = set()
        self._leases, self._slices, self._last = 0, 0.0, START

    def append(self, entry: Entry, *, wait: bool) -> None:
        self._hold(entry.event)
        if any(isinstance(decision, ExtendLease) for decision in entry.decisions):
            self._renewals += 1
        else:
            self._others += 1
        if self._others > self._most:
            raise TooMuch("entries", f"more than {self._most} entries")
        per_lease = MOST_RENEWALS_PER_LEASE * self._leases
        if self._renewals > MOST_RENEWALS + per_lease + MOST_RENEWALS_PER_SLICE * self._slices:
            held = f"{self._leases} leases held for {self._slices:.0f} slices"
            raise TooMuch("renewals", f"{self._renewals} entries that renew, of {held}")
        super().append(entry, wait=wait)

    def _hold(self, event: Event) -> None:
        self._slices += len(self._open) * (event.at - self._last) / self._slice_s
        self._last = event.at
        match event:
            case LeaseGranted(lease=lease):
                self._open.add(lease)
                self._leases += 1
            case LeaseEnded(lease=lease):
                self._open.discard(lease)
            case _:
                pass


def study(seed: int) -> Outcome:
    """The study of a seed, drawn until it is accepted, then played."""
    with threadpool_limits(1):  # processes share the cores; threads of linear algebra would wait for each other
        return _study(seed)


def _study(seed: int) -> Outcome:
    outcome = Outcome(seed)
    for attempt in range(ATTEMPTS):
        drawn = draft(seed, attempt)
        try:
            findings = check(drawn, outcome)
        except SpecError as error:
            outcome.refusals.append(str(error))
            continue
        outcome.findings, outcome.attempt = findings, attempt
        break
    return outcome


def check(drawn: Draft, outcome: Outcome | None = None) -> list[Finding]:
    """Everything that does not hold for this study. A SpecError: it was refused."""
    try:
        world = drawn.accepted()
    except SpecError:
        raise
    except Exception as error:
        return [Finding("request", f"not accepted, and not refused: {type(error).__name__}: {error}")]
    spec = world.spec
    journal = BoundedJournal(MOST_ENTRIES + MOST_ENTRIES_PER_STEP * spec.trials * spec.max_steps, spec.slice_s)
    found: list[Finding] = []
    state: RunState | None = None
    try:
        with cpu_bound(MOST_CPU_S):
            state, _ = play(world, journal)
    except TooMuch as bound:
        found.append(bound.finding)
    except Exception as error:
        found.append(Finding(f"raised {type(error).__name__}", str(error)))
    entries = list(journal.read())
    if outcome is not None:
        outcome.entries = len(entries)
        if state is not None:
            outcome.seen.update(_seen(state, entries))
    # What is futile explains an excess of entries, so it is reported in place of it.
    found = [Finding(*pair) for pair in futile(entries)] or found
    if state is None:
        return found
    found += [Finding(*pair) for pair in broken_guarantees(world, state, entries)]
    found += _answerless(drawn, state, entries)
    return [*found, *_replayed(world, journal)]


def _answerless(drawn: Draft, state: RunState, entries: list[Entry]) -> Iterator[Finding]:
    """A search that completed, in which every configuration satisfies every constraint, has an answer. Elastic ones
    complete when their time is over, whatever was reached by then."""
    ends = Counter(job.status for job in state.jobs.values())
    if not drawn.all_feasible or state.end_reason != "completed" or state.the_spec.recipe in ELASTIC:
        return
    if len(state.jobs) >= LEAST_TRIALS and not ends["failed"] and Study(lambda: entries).answer is None:
        yield Finding("answer", f"no answer, though every configuration is feasible: {dict(ends)}")


LEAST_TRIALS = 5
"""A search over data fractions may end with less before it knows enough."""


def _replayed(world: World, journal: MemoryJournal) -> Iterator[Finding]:
    """The same study again, from the beginning or from where a controller died, has the same journal byte for byte."""
    entries = list(journal.read())
    rng = random.Random(world.seed)
    again = MemoryJournal()
    for entry in entries[: rng.choice((0, rng.randrange(len(entries))))]:
        again.append(entry, wait=False)
    died = len(list(again.read()))
    first = [] if died else [world.opening()]
    run(world.world(), again, recipes.build(world.spec), BudgetAndDeadline(), first=first)
    if again.dump() != journal.dump():
        pairs = zip(entries, again.read(), strict=False)
        at = next((ours.seq for ours, theirs in pairs if ours != theirs), "the end")
        yield Finding("replay", f"resumed after entry {died}, the journal differs from entry {at} on")


def _seen(state: RunState, entries: list[Entry]) -> Iterator[str]:
    spec = state.the_spec
    yield f"ended {state.end_reason}"
    if len(state.jobs) >= 50 and spec.max_machines >= 20:
        yield "50+ trials, may rent 20+ machines"
        if _most_held(entries) >= 20:
            yield "50+ trials, rented 20+ at once"
    if any(job.slots > spec.slots for job in state.jobs.values()):
        yield "gangs"
    if spec.constraints:
        yield "constraints"
    if spec.fractions:
        yield "fractions"
    if spec.space.roles:
        yield "machines in the space"
    if state.revocations:
        yield "preemptions"
    if state.denials:
        yield "denials"
    if state.lost_steps:
        yield "lost steps"
    yield "steps" if any(isinstance(entry.event, JobReported) for entry in entries) else "no step"


def _most_held(entries: list[Entry]) -> int:
    held: set[str] = set()
    most = 0
    for entry in entries:
        match entry.event:
            case LeaseGranted(lease=lease):
                held.add(lease)
                most = max(most, len(held))
            case LeaseEnded(lease=lease):
                held.discard(lease)
            case _:
                pass
    return most


@contextmanager
def cpu_bound(seconds: float) -> Iterator[None]:
    """Raises TooMuch after so much CPU time of this process, also in the middle of a decision."""

    def stop(*_: object) -> None:
        raise TooMuch("cpu", f"more than {seconds:g} s of CPU")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
