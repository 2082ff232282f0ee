"""Machines by the expected dollars of a job there, with the first jobs of a bag trying those that might be cheaper.

Paper: SciSpot section 4.3

Differs from the paper: what jobs take is not told by the user but learned from the first of them, and machines on which
the bag would not be done by its deadline come last, those with which it would be done soonest first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.rent import Ranked
from shoestring.policies.placement.scispot.candidates import Candidate, Place, candidates, jobs_left, places

if TYPE_CHECKING:
    from shoestring.models.lifetimes.job_cost import Prospect
    from shoestring.models.lifetimes.source import LifetimeSource
    from shoestring.models.speed.job_length import Where

DEARER = 1.1
"""A machine that is there is left for a cheaper kind only if a job costs a tenth more on it: a new one must come up."""


def ranked(state: RunView, lifetimes: LifetimeSource) -> Ranked:
    """Best first, for the job that has waited longest. Before any job is done only prices are known."""
    job = state.jobs[next(iter(state.waiting))]
    alone = places(state)
    found = candidates(state, lifetimes, job, alone)
    if not found:
        return [(place.listing.offer, why) for place, why in by_price(state, alone)]
    return [(it.place.listing.offer, why) for it, why in in_order(state, found, _being_tried(state))]


def by_price(state: RunView, found: Sequence[Place]) -> list[tuple[Place, str]]:
    """By the hour of a job."""

    def usd(place: Place) -> float:
        return place.machines * state.usd_per_hour(place.listing.offer)

    cheapest_first = sorted(found, key=lambda place: (usd(place), place.slots, place.listing.offer))
    return [(place, f"${usd(place):.4f}/h, and no job is done yet") for place in cheapest_first]


def in_order(state: RunView, found: Sequence[Candidate], being_tried: Collection[Where]) -> list[tuple[Candidate, str]]:
    """Best first, with the reasons: one that is worth a try, those that are fast enough by what a job is expected to
    cost, then the others. What is being tried will tell more soon, and is tried no second time meanwhile."""
    from shoestring.models.lifetimes.job_cost import next_to_use

    in_time = [candidate for candidate in found if candidate.in_time]
    if not in_time:
        soonest = sorted(found, key=lambda it: (it.bag_s, it.prospect.expected_usd))
        return [(it, f"time is short, jobs take {it.work_s:.0f} s") for it in soonest]
    prospects = [replace(x.prospect, tried=x.prospect.tried or x.place.where in being_tried) for x in in_time]
    at = next_to_use(prospects, jobs_left=jobs_left(state) - state.count("running"))
    first, trial = in_time[at], not prospects[at].tried

    def rank(it: Candidate) -> tuple[object, ...]:
        return it is not first, not it.in_time, it.prospect.expected_usd, it.place.slots, it.place.listing.offer

    return [(it, _why(it.prospect, trial=trial and it is first)) for it in sorted(found, key=rank)]


def cheapest_known_usd(found: Sequence[Candidate]) -> float | None:
    """The least that a job has been seen to come to on machines that are fast enough; None while that is not known."""
    return min((it.prospect.expected_usd for it in found if it.in_time and it.prospect.tried), default=None)


def too_slow(found: Sequence[Candidate]) -> frozenset[str]:
    """Machine types on which the bag would miss its deadline. None of them if it would on all: then all will help."""
    slow = frozenset(it.place.listing.offer.machine for it in found if not it.in_time)
    return slow if any(it.in_time for it in found) else frozenset()


def running_on(state: RunView) -> set[Where]:
    return {(segment.machine, segment.slots) for segment in state.segments.values()}


def _being_tried(state: RunView) -> set[Where]:
    """Where jobs run, and where they will on machines that are there or on their way. Those are for single jobs: one
    machine is no try of a gang."""
    empty = {lease.offer.machine for lease in state.leases.values() if not lease.segments}
    return running_on(state) | {(machine, state.spec.slots) for machine in empty}


def _why(prospect: Prospect, *, trial: bool) -> str:
    if trial:
        hoped = f"${prospect.hoped_usd:.3g} if it goes well there"
        return f"worth a try: ${prospect.expected_usd:.3g} a job expected, {hoped}"
    return f"${prospect.expected_usd:.3g} a job expected, losses included"
