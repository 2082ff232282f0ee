"""Offers by the expected dollars of a job there; the first jobs of a bag also try those that might be cheaper.

Paper: SciSpot section 4.3

Differs from the paper: job lengths are not given by the user but learned from the first jobs, and machines on which the
bag would miss its deadline come last, the soonest done first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shoestring.kernel.records import Where
from shoestring.kernel.view import RunView
from shoestring.models.speed.job_length import JobLengths
from shoestring.policies.placement.renting.rent import Ranked
from shoestring.policies.placement.scispot.candidates import Candidate, Place, candidates, places
from shoestring.policies.placement.scispot.trying import jobs_after_a_try, with_hopes

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import LifetimeSource

MORE_EXPENSIVE = 1.1
"""A machine that is up is left for a cheaper type only if a job costs a tenth more on it: a new one must come up."""
TIME_PRICE = 0.01
"""A bag that takes twice as long counts as so much more expensive: it decides between types that cost the same."""


def ranked(state: RunView, lifetimes: LifetimeSource) -> Ranked:
    """Best first, for the job that has waited longest."""
    job = state.jobs[next(iter(state.waiting))]
    found = candidates(state, lifetimes, job, places(state))
    return [(it.place.listing.offer, why) for it, why in in_order(state, found, _being_tried(state))]


def in_order(state: RunView, found: Sequence[Candidate], being_tried: Collection[Where]) -> list[tuple[Candidate, str]]:
    """Best first, with the reasons: one that is worth a try, those that are fast enough by the expected cost of a job,
    then the others. What is being tried will be known soon, and is not tried a second time meanwhile."""
    from shoestring.models.lifetimes.job_cost import next_to_use

    in_time = [candidate for candidate in found if candidate.in_time]
    if not in_time:
        soonest = sorted(found, key=lambda it: (it.bag_s, it.prospect.expected_usd))
        return [(it, f"time is short: {it.work_s:.0f} s per job") for it in soonest]
    usd = priced_usd(found)
    prospects = [
        replace(prospect, expected_usd=usd[it.place])
        for it, prospect in zip(in_time, with_hopes(state, in_time, being_tried), strict=True)
    ]
    at = next_to_use(prospects, jobs_after_a_try(state, in_time))
    first, trial = in_time[at], prospects[at].log_sd > 0

    def rank(it: Candidate) -> tuple[object, ...]:
        return it is not first, not it.in_time, usd[it.place], it.place.slots, it.place.listing.offer

    timed = bool(JobLengths.of(state).speeds.trials)
    return [(it, _why(state, it, timed=timed, trial=trial and it is first)) for it in sorted(found, key=rank)]


def priced_usd(found: Sequence[Candidate]) -> dict[Place, float]:
    """usd * (bag_s / shortest bag_s)^w, 2^w = 1 + TIME_PRICE: dollars per job, with a small price of the time that the
    bag would take."""
    shortest_s = max(1.0, min((it.bag_s for it in found), default=1.0))
    weight = math.log2(1.0 + TIME_PRICE)
    return {it.place: it.prospect.expected_usd * max(1.0, it.bag_s / shortest_s) ** weight for it in found}


def times_cheapest(found: Sequence[Candidate], machine: str, here_usd: float | None) -> float:
    """What a job costs on a machine of this type that is up, as a multiple of the least among those fast enough, with
    the price of time in both. 1 while no job was timed."""
    usd = priced_usd(found)
    least_usd = min((usd[it.place] for it in found if it.in_time), default=math.inf)
    same = [it for it in found if it.place.listing.offer.machine == machine]
    if here_usd is None or not same or not 0 < least_usd < math.inf or not any(it.prospect.tried for it in found):
        return 1.0
    return here_usd * usd[same[0].place] / same[0].prospect.expected_usd / least_usd


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


def _why(state: RunView, it: Candidate, *, timed: bool, trial: bool) -> str:
    usd, place = it.prospect.expected_usd, it.place
    if not timed:
        per_hour = f"${place.machines * state.usd_per_hour(place.listing.offer):.4f}/h, and no job has been timed yet"
        return f"worth a try on one job: {per_hour}" if trial else per_hour
    if trial:
        return f"worth a try: ${usd:.3g} per job expected, and it may prove the cheapest for the jobs left"
    return f"${usd:.3g} per job expected, preemptions included"
