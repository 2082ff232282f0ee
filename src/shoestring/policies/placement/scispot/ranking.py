"""Offers by the expected dollars of a job there; the first jobs of a bag also try those that might be cheaper.

Paper: SciSpot section 4.3

Differs from the paper: job lengths are not given by the user but learned from the first jobs, and machines on which the
bag would miss its deadline come last, the soonest done first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shoestring.kernel.records import Where
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.rent import Ranked
from shoestring.policies.placement.scispot.candidates import Candidate, Place, candidates, jobs_left, places

if TYPE_CHECKING:
    from shoestring.models.lifetimes.job_cost import Prospect
    from shoestring.models.lifetimes.source import LifetimeSource

MORE_EXPENSIVE = 1.1
"""A machine that is up is left for a cheaper type only if a job costs a tenth more on it: a new one must come up."""


def ranked(state: RunView, lifetimes: LifetimeSource) -> Ranked:
    """Best first, for the job that has waited longest. Before any job was timed only prices are known."""
    job = state.jobs[next(iter(state.waiting))]
    alone = places(state)
    found = candidates(state, lifetimes, job, alone)
    if not found:
        return [(place.listing.offer, why) for place, why in by_price(state, alone)]
    return [(it.place.listing.offer, why) for it, why in in_order(state, found, _being_tried(state))]


def by_price(state: RunView, found: Sequence[Place]) -> list[tuple[Place, str]]:
    """By price per hour of a job."""

    def usd(place: Place) -> float:
        return place.machines * state.usd_per_hour(place.listing.offer)

    cheapest_first = sorted(found, key=lambda place: (usd(place), place.slots, place.listing.offer))
    return [(place, f"${usd(place):.4f}/h, and no job has been timed yet") for place in cheapest_first]


def in_order(state: RunView, found: Sequence[Candidate], being_tried: Collection[Where]) -> list[tuple[Candidate, str]]:
    """Best first, with the reasons: one that is worth a try, those that are fast enough by the expected cost of a job,
    then the others. What is being tried will be known soon, and is not tried a second time meanwhile."""
    from shoestring.models.lifetimes.job_cost import next_to_use

    in_time = [candidate for candidate in found if candidate.in_time]
    if not in_time:
        soonest = sorted(found, key=lambda it: (it.bag_s, it.prospect.expected_usd))
        return [(it, f"time is short: {it.work_s:.0f} s per job") for it in soonest]
    prospects = [replace(x.prospect, tried=x.prospect.tried or x.place.where in being_tried) for x in in_time]
    at = next_to_use(prospects, jobs_left=jobs_left(state) - state.count("running"))
    first, trial = in_time[at], not prospects[at].tried

    def rank(it: Candidate) -> tuple[object, ...]:
        return it is not first, not it.in_time, it.prospect.expected_usd, it.place.slots, it.place.listing.offer

    return [(it, _why(it.prospect, trial=trial and it is first)) for it in sorted(found, key=rank)]


def cheapest_known_usd(found: Sequence[Candidate]) -> float | None:
    """The least measured cost of a job on machines that are fast enough; None while unknown."""
    return min((it.prospect.expected_usd for it in found if it.in_time and it.prospect.tried), default=None)


def too_slow(found: Sequence[Candidate]) -> frozenset[str]:
    """Machine types on which the bag would miss its deadline. Empty if it would on all: then all will help."""
    slow = frozenset(it.place.listing.offer.machine for it in found if not it.in_time)
    return slow if any(it.in_time for it in found) else frozenset()


def running_on(state: RunView) -> set[Where]:
    return {(segment.machine, segment.slots) for segment in state.segments.values()}


def _being_tried(state: RunView) -> set[Where]:
    """Where jobs run, and where they will on machines held or pending. Those are for single jobs: one machine does not
    try a gang."""
    empty = {lease.offer.machine for lease in state.leases.values() if not lease.segments}
    return running_on(state) | {(machine, state.spec.slots) for machine in empty}


def _why(prospect: Prospect, *, trial: bool) -> str:
    if trial:
        hoped = f"${prospect.optimistic_usd:.3g} if jobs are fast there"
        return f"worth a try: ${prospect.expected_usd:.3g} per job expected, {hoped}"
    return f"${prospect.expected_usd:.3g} per job expected, preemptions included"
