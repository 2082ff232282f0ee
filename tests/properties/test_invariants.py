"""Over thousands of random simulated studies: never over budget, never past the deadline, no machine left, no look at
later prices."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec
import pytest

from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.codec import encode_turn
from shoestring.kernel.history import Entry
from shoestring.market.prices import PriceTrace
from shoestring.policies.placement.renting.assign import PLACEMENT_WAKERS
from shoestring.storage.journal.memory import MemoryJournal
from tests.guarantees import broken_guarantees
from tests.numbers import over_numbers
from tests.studies import START, Case, play, random_case, with_scrambled_prices

BATCHES = 4
STUDIES_PER_BATCH = 500
"""2,000 studies in all, in batches so that two cores share them."""


def check_invariants(case: Case) -> list[Entry]:
    """Returns the entries, for what else must hold."""
    state, journal = play(case)
    entries = list(journal.read())
    assert list(broken_guarantees(case, state, entries)) == []
    assert state.spent_usd <= case.spec.budget_usd, "to the last digit"
    assert play(case)[1].dump() == journal.dump()

    moment = START + random.Random(case.seed).random() * (max(entry.event.at for entry in entries) - START)
    other_future = with_scrambled_prices(case, moment, random.Random(case.seed))
    assert_same_until(moment, entries, other_future)
    return entries


class Past(MemoryJournal):
    """Up to a moment. Events come in the order of their times, so the first later one ends it."""

    def __init__(self, until: float) -> None:
        super().__init__()
        self._until = until

    def append(self, entry: Entry, *, wait: bool) -> None:
        if entry.event.at > self._until:
            raise Later
        super().append(entry, wait=wait)


class Later(Exception):
    """What follows is not compared, and need not be simulated."""


def assert_same_until(moment: float, entries: list[Entry], other_future: Case) -> None:
    journal = Past(moment)
    with contextlib.suppress(Later):
        play(other_future, journal)
    others = list(journal.read())
    ours = [encode_turn(entry.event, entry.decisions) for entry in entries if entry.event.at <= moment]
    theirs = [encode_turn(entry.event, entry.decisions) for entry in others if entry.event.at <= moment]
    assert ours == theirs


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_studies_keep_every_guarantee(batch: int) -> None:
    @over_numbers(STUDIES_PER_BATCH)
    def studies(number: int) -> None:
        check_invariants(random_case(random.Random(f"{batch}/{number}")))

    studies()


@dataclass(frozen=True)
class Peeking:
    """The control: a placement that looks an hour ahead. It has to be caught."""

    honest: object
    case: Case
    wants: ClassVar = PLACEMENT_WAKERS

    def decide(self, state, event) -> Iterator[d.Decision]:
        book = {offer: PriceTrace(offer, times, prices) for offer, times, prices in self.case.traces}
        ahead = [trace.at(state.now + 3600) for trace in book.values()]
        for decision in self.honest.decide(state, event):
            if isinstance(decision, d.RequestLease):
                yield msgspec.structs.replace(decision, why=f"in an hour: {ahead}")
            else:
                yield decision


def test_a_policy_that_peeks_is_caught() -> None:
    caught = 0
    for number in range(20):
        case = random_case(random.Random(f"peek/{number}"))
        if not case.traces:
            continue
        case = replace(case, denial_share=0.0)

        def played(case: Case) -> list[Entry]:
            policies = recipes.build(case.spec)
            placement = next(index for index, policy in enumerate(policies) if policy.wants >= PLACEMENT_WAKERS)
            policies[placement] = Peeking(policies[placement], case)
            journal = MemoryJournal()
            run(case.world(), journal, policies, BudgetAndDeadline(), first=[case.opening()])
            return list(journal.read())

        moment = START + 60.0
        ours = [encode_turn(x.event, x.decisions) for x in played(case) if x.event.at <= moment]
        scrambled = with_scrambled_prices(case, moment, random.Random(number))
        theirs = [encode_turn(x.event, x.decisions) for x in played(scrambled) if x.event.at <= moment]
        caught += ours != theirs
    assert caught >= 5


def test_the_random_studies_are_eventful() -> None:
    """Guarantees mean little where nothing happens: every kind of trouble must be common among the cases."""
    seen: Counter[str] = Counter()
    for number in range(320):
        state, journal = play(random_case(random.Random(f"eventful/{number}")))
        entries = list(journal.read())
        seen["revoked"] += state.revocations > 0
        seen["lost work"] += state.lost_steps > 0
        seen["denied"] += state.denials > 0
        seen["out of money"] += state.end_reason == "out_of_budget"
        seen["out of time"] += state.end_reason == "deadline_reached"
        seen["all done"] += state.end_reason == "completed"
        seen["failed code"] += any(job.failures for job in state.jobs.values())
        seen["resumed"] += any(
            isinstance(x, d.StartSegment) and x.resume_from is not None for entry in entries for x in entry.decisions
        )
        seen["refunded"] += any(isinstance(x.event, e.LeaseEnded) and x.event.refunded_usd > 0 for x in entries)
        seen["on demand near the deadline"] += any(
            isinstance(x, d.RequestLease) and "deadline is near" in x.why for entry in entries for x in entry.decisions
        )
    rare = seen.pop("on demand near the deadline")  # most are done by then, or too late for a machine to help
    assert rare, seen
    assert all(count >= 5 for count in seen.values()), seen
    assert len(seen) == 9
