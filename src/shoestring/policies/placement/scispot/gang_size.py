"""How many machines work on one job of a bag together: chosen for each job that waits, by expected dollars.

More machines are done sooner, but never as much sooner as they cost more, and the first of them to go takes the work of
all along. So a gang pays where a deadline is near, where no machine lives as long as the job alone would take, or where
jobs gain more than expected. How much they gain the first gangs of the bag tell, as first jobs do of machine types.

The search need not know: it orders a job to be run as always, and this policy, asked next, orders it again with its
kind of machines and all slots of so many of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.policies.placement.renting.rent_gang import payable_s, to_be_had
from shoestring.policies.placement.scispot.candidates import (
    Candidate,
    Place,
    candidates,
    chosen_place,
    places,
    steps_left,
)
from shoestring.policies.placement.scispot.ranking import DEARER, by_price, in_order, running_on
from shoestring.policies.placement.scispot.supply import Supply

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import LifetimeSource

Choice = tuple[Place, str]
"""With the reason for it."""


@dataclass(frozen=True)
class Gangs:
    lifetimes: LifetimeSource
    counts: tuple[int, ...]
    """Numbers of machines to choose from; a job that is alone on one keeps its own slots."""
    wants: ClassVar[frozenset[Waker]] = frozenset(
        {d.RunJob, e.LeaseDenied, e.LeaseEnded, e.SegmentEnded, e.TimerFired, e.UserAsked}
    )

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running" or not state.waiting or (isinstance(event, e.TimerFired) and event.name != RETRY):
            return
        turn = _Turn(state, self.lifetimes, self.counts)
        for job in [state.jobs[job_id] for job_id in state.waiting]:
            choice = turn.choose(job)
            if choice is None:
                return  # nothing is for sale at a price worth paying
            place, why = choice
            offer, slots = place.listing.offer, place.slots
            if (job.offer, job.slots) != (offer, slots):
                why = f"on {place}: {why}"
                yield d.RunJob(job=job.id, until_step=job.until_step, slots=slots, offer=offer, why=why)


class _Turn:
    """Jobs choose in the order in which they wait, each knowing what those before it took and try."""

    def __init__(self, state: RunView, lifetimes: LifetimeSource, counts: Sequence[int]) -> None:
        self._state, self._lives = state, lifetimes
        self._places = places(state, counts)
        self._supply = Supply.of(state)
        self._tried = running_on(state)
        self._found: dict[int, list[Candidate]] = {}
        """By the steps that a job has left: most have all of them."""
        self._ordered: dict[int, list[tuple[Candidate, str]]] = {}
        """The same, best first, until a job tries what none has tried yet."""
        self._choices: dict[tuple[int, Offer | None, int], Choice | None] = {}
        """Hundreds of jobs wait alike: they choose alike until one of them takes or tries something."""

    def choose(self, job: Job) -> Choice | None:
        alike = steps_left(job), job.offer, job.slots
        if alike not in self._choices:
            self._choices[alike] = self._choice(job)
        choice = self._choices[alike]
        if choice is not None:
            place, _ = choice
            if self._supply.claim(place):
                self._choices.clear()
            if place.where not in self._tried:
                self._tried.add(place.where)
                self._ordered.clear()
                self._choices.clear()
        return choice

    def _choice(self, job: Job) -> Choice | None:
        chosen = chosen_place(self._state, job)
        found = self._candidates(job)
        if not found:
            return self._by_price(chosen)
        ordered = self._in_order(job, found)
        possible = [pair for pair in ordered if self._possible(pair[0].place)]
        if not possible:
            return (ordered[0][0].place, ordered[0][1]) if chosen is None else (chosen, "there is no other choice now")
        best, why = possible[0]
        for it, its_why in possible:
            if it.place == chosen and self._stands(it, best):
                return chosen, its_why
        if best.prospect.tried or best.place.where in self._tried:
            for it, its_why in possible:
                if it.prospect.tried and self._supply.has(it.place) and _nearly_as_good(it, best):
                    return it.place, its_why
        return best.place, why

    def _stands(self, chosen: Candidate, best: Candidate) -> bool:
        """May a job stay with its choice? What it was chosen to try will tell, once all machines for that are under
        way; what is known has to be nearly as good as the best, and to have machines."""
        if not chosen.prospect.tried and self._supply.has(chosen.place):
            return chosen.in_time == best.in_time
        return self._supply.has_some(chosen.place) and _nearly_as_good(chosen, best)

    def _by_price(self, chosen: Place | None) -> Choice | None:
        """Before a job was timed."""
        if chosen is not None and self._supply.has_some(chosen):
            return chosen, "its machines are there, or on their way"
        ordered = by_price(self._state, self._places)
        return next((pair for pair in ordered if self._possible(pair[0])), ordered[0] if ordered else None)

    def _candidates(self, job: Job) -> list[Candidate]:
        steps = steps_left(job)
        if steps not in self._found:
            self._found[steps] = candidates(self._state, self._lives, job, self._places)
        return self._found[steps]

    def _in_order(self, job: Job, found: list[Candidate]) -> list[tuple[Candidate, str]]:
        steps = steps_left(job)
        if steps not in self._ordered:
            self._ordered[steps] = in_order(self._state, found, self._tried)
        return self._ordered[steps]

    def _possible(self, place: Place) -> bool:
        missing = self._supply.missing(place)
        offer = place.listing.offer
        return not missing or (to_be_had(self._state, offer) and payable_s(self._state, offer, missing) is not None)


def _nearly_as_good(candidate: Candidate, best: Candidate) -> bool:
    """Where the bag would be late in any case, what counts is when it is done."""
    if not best.in_time:
        return candidate.bag_s <= DEARER * best.bag_s
    return candidate.in_time and candidate.prospect.expected_usd <= DEARER * best.prospect.expected_usd
