"""How many machines work on one job of a bag together: chosen for each waiting job, by expected dollars.

More machines finish sooner, but the speed-up is smaller than the added cost, and one preemption loses the work of all.
So a gang pays where a deadline is near, where no machine lasts as long as the job alone would take, or where jobs scale
better than expected. The first gangs of the bag measure how jobs scale, as first jobs measure machine types.

The search need not know: it decides RunJob as always, and this policy, next in the chain, decides RunJob again with an
offer and all slots of the chosen number of machines.
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
from shoestring.models.speed.job_length import JobLengths
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.policies.placement.renting.rent_gang import is_available, payable_s
from shoestring.policies.placement.scispot.candidates import (
    Candidate,
    Place,
    candidates,
    chosen_place,
    places,
    places_with_cpus,
    steps_to_do,
)
from shoestring.policies.placement.scispot.ranking import MORE_EXPENSIVE, in_order, running_on
from shoestring.policies.placement.scispot.supply import Supply

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import LifetimeSource

Choice = tuple[Place, str]
"""With the reason for it."""


@dataclass(frozen=True)
class Gangs:
    lifetimes: LifetimeSource
    counts: tuple[int, ...]
    """Numbers of machines to choose from; a job on one machine keeps its own slots."""
    cpus_per_job: float | None = None
    """In their place: how many CPUs a job has, on whatever type and number of machines."""
    wants: ClassVar[frozenset[Waker]] = frozenset(
        {d.RunJob, e.LeaseDenied, e.LeaseEnded, e.SegmentEnded, e.TimerFired, e.UserAsked}
    )

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running" or not state.waiting or (isinstance(event, e.TimerFired) and event.name != RETRY):
            return
        choices = _Choices(state, self.lifetimes, self._places(state))
        for job in [state.jobs[job_id] for job_id in state.waiting]:
            choice = choices.choose(job)
            if choice is None:
                return  # no offer has a price worth paying
            place, why = choice
            offer, slots = place.listing.offer, place.slots
            if (job.offer, job.slots) != (offer, slots):
                why = f"on {place}: {why}"
                yield d.RunJob(job=job.id, until_step=job.until_step, slots=slots, offer=offer, why=why)

    def _places(self, state: RunView) -> list[Place]:
        return places(state, self.counts) if self.cpus_per_job is None else places_with_cpus(state, self.cpus_per_job)


class _Choices:
    """Choices for jobs in the order in which they wait, each given what those before it claim and try."""

    def __init__(self, state: RunView, lifetimes: LifetimeSource, where: Sequence[Place]) -> None:
        self._state, self._lifetimes, self._places = state, lifetimes, where
        self._supply = Supply.of(state)
        self._tried = running_on(state)
        self._timed = bool(JobLengths.of(state).speeds.trials)
        self._found: dict[float, list[Candidate]] = {}
        """By the steps that a job has left: most have all of theirs."""
        self._ordered: dict[float, list[tuple[Candidate, str]]] = {}
        """The same, best first, until a job tries an untried place."""
        self._choices: dict[tuple[float, Offer | None, int], Choice | None] = {}
        """Hundreds of waiting jobs are alike: their choices are the same until one of them claims or tries
        something."""

    def choose(self, job: Job) -> Choice | None:
        key = steps_to_do(self._state, job), job.offer, job.slots
        if key not in self._choices:
            self._choices[key] = self._choice(job)
        choice = self._choices[key]
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
            return None
        if chosen is not None and not self._timed and self._supply.has_some(chosen):
            return chosen, "its machines are held or pending"
        ordered = self._in_order(job, found)
        possible = [pair for pair in ordered if self._possible(pair[0].place)]
        if not possible:
            return (
                (ordered[0][0].place, ordered[0][1]) if chosen is None else (chosen, "no other offer is available now")
            )
        best, why = possible[0]
        for it, its_why in possible:
            if it.place == chosen and self._may_keep(it, best):
                return chosen, its_why
        if best.prospect.tried or best.place.where in self._tried:
            for it, its_why in possible:
                if it.prospect.tried and self._supply.has(it.place) and _nearly_as_good(it, best):
                    return it.place, its_why
        return best.place, why

    def _may_keep(self, chosen: Candidate, best: Candidate) -> bool:
        """May a job keep its choice? An untried one is kept once all machines for it are held or pending, for the
        result is worth knowing; a tried one must be nearly as good as the best, and have machines."""
        if not chosen.prospect.tried and self._supply.has(chosen.place):
            return chosen.in_time == best.in_time
        return self._supply.has_some(chosen.place) and _nearly_as_good(chosen, best)

    def _candidates(self, job: Job) -> list[Candidate]:
        steps = steps_to_do(self._state, job)
        if steps not in self._found:
            self._found[steps] = candidates(self._state, self._lifetimes, job, self._places)
        return self._found[steps]

    def _in_order(self, job: Job, found: list[Candidate]) -> list[tuple[Candidate, str]]:
        steps = steps_to_do(self._state, job)
        if steps not in self._ordered:
            self._ordered[steps] = in_order(self._state, found, self._tried)
        return self._ordered[steps]

    def _possible(self, place: Place) -> bool:
        missing = self._supply.missing(place)
        offer = place.listing.offer
        return not missing or (is_available(self._state, offer) and payable_s(self._state, offer, missing) is not None)


def _nearly_as_good(candidate: Candidate, best: Candidate) -> bool:
    """Where the bag would be late in any case, the time to finish counts."""
    if not best.in_time:
        return candidate.bag_s <= MORE_EXPENSIVE * best.bag_s
    return candidate.in_time and candidate.prospect.expected_usd <= MORE_EXPENSIVE * best.prospect.expected_usd
