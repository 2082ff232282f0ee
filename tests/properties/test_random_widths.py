"""Trials whose width changes at random, on random markets: gangs form and lose machines, and every guarantee holds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec

from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import Policy
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.recipes import build
from shoestring.storage.journal.memory import MemoryJournal
from tests.studies import START, Case, random_case

STUDIES = 300


@dataclass(frozen=True)
class Wobbling:
    """Every trial at once, each on a width that is sampled again at every third report or so."""

    wants: ClassVar = frozenset({e.RunStarted, e.JobReported, e.TimerFired})

    def decide(self, state, event) -> Iterator[d.Decision]:
        rng = state.rng("wobble")
        if isinstance(event, e.RunStarted):
            for _ in range(state.spec.trials):
                job = state.next_job()
                yield d.AddJob(job=job, config=state.spec.space.sample(rng), why="a test")
                yield self._run(state, job, rng)
        elif isinstance(event, e.JobReported) and rng.random() < 0.3 and not state.jobs[event.job].over:
            yield self._run(state, event.job, rng)

    def _run(self, state, job, rng) -> d.RunJob:
        most = state.spec.max_machines * min(listing.slots for listing in state.listings.values())
        slots = state.spec.slots * rng.randint(1, max(1, most // state.spec.slots))
        return d.RunJob(job=job, until_step=state.spec.max_steps, slots=slots, why="a test")


def wobbling_case(number: int) -> Case:
    rng = random.Random(f"wobble/{number}")
    case = random_case(rng)
    worker = rng.choice((1, 1, 2))
    listings = tuple(msgspec.structs.replace(x, slots=worker * rng.choice((1, 2, 4))) for x in case.spec.listings)
    spec = msgspec.structs.replace(
        case.spec,
        slots=worker,
        listings=listings,
        recipe="random",
        options={"checkpointing": case.spec.options["checkpointing"]},
        budget_usd=case.spec.budget_usd * 10,
        slice_s=900.0,
    )
    return replace(case, spec=spec)


def wobbled(case: Case, *, consolidates: bool) -> tuple[list[Entry], MemoryJournal]:
    policies: list[Policy] = build(case.spec)
    policies[:2] = [Wobbling(), Cheapest(idle_s=0.0, consolidates=True) if consolidates else Cheapest()]
    journal = MemoryJournal()
    state = run(case.world(), journal, policies, BudgetAndDeadline(), first=[case.opening()])
    assert state.concluded
    assert not state.leases
    assert not state.segments
    return list(journal.read()), journal


def test_guarantees_hold_whatever_widths_are_requested() -> None:
    seen: Counter[str] = Counter()
    for number in range(STUDIES):
        case = wobbling_case(number)
        entries, journal = wobbled(case, consolidates=number % 2 == 0)
        assert journal.dump() == wobbled(case, consolidates=number % 2 == 0)[1].dump()
        assert sum(x.event.charged_usd for x in entries if isinstance(x.event, e.LeaseEnded)) <= case.spec.budget_usd
        assert max(x.event.at for x in entries) <= START + case.spec.deadline_s
        check_machines(case, entries, seen)
    assert all(seen[what] >= 10 for what in ("spanning", "one machine", "moved", "packed", "spanning lost")), seen


def check_machines(case: Case, entries: list[Entry], seen: Counter[str]) -> None:
    """Never more on a machine than it has slots; a gang in one zone, each of its workers whole on one machine."""
    slots = {listing.offer: listing.slots for listing in case.spec.listings}
    offers = {}
    on: dict[str, dict[str, int]] = {}
    where: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        ended = []
        if isinstance(entry.event, e.SegmentEnded):
            ended = [entry.event.segment]
        elif isinstance(entry.event, e.LeaseEnded):  # it may arrive before SegmentEnded
            ended = [segment for segment, gang in where.items() if entry.event.lease in gang]
        for segment in ended:
            gang = where.pop(segment, ())
            seen["spanning lost"] += len(gang) > 1 and getattr(entry.event, "cause", "") in ("lost", "revoked")
            for lease in gang:
                on[lease].pop(segment)
        for decision in entry.decisions:
            match decision:
                case d.RequestLease(lease=lease, offer=offer):
                    offers[lease], on[lease] = offer, {}
                case d.HaltSegment(why=why):
                    seen["moved"] += "resumes on" in why
                    seen["packed"] += "it fits on another machine" in why
                case d.StartSegment(segment=segment, leases=leases):
                    seen["spanning" if len(leases) > 1 else "one machine"] += 1
                    assert len({offers[lease].zone for lease in leases}) == 1
                    assert all(share % case.spec.slots == 0 for share in decision.slots_on)
                    for lease, share in zip(leases, decision.slots_on, strict=True):
                        on[lease][segment] = share
                        assert sum(on[lease].values()) <= slots[offers[lease]]
                    where[segment] = leases
