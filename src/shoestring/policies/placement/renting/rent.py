"""Rent missing machines, best offer first; if the guard refuses one, a cheaper one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Job
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import RETRY, request
from shoestring.policies.placement.renting.breaker import renting_stopped
from shoestring.policies.placement.renting.facts import (
    Bid,
    free_usd,
    no_maximum,
    not_just_denied,
    setbacks_of,
    try_again,
)
from shoestring.policies.placement.renting.least_time import least_lease_s
from shoestring.policies.placement.renting.packing import Zone, slots_open, zone_of
from shoestring.policies.placement.renting.rent_pinned import rent_named
from shoestring.units import show_usd

Ranked = list[tuple[Offer, str]]


def rent_missing(
    state: RunView,
    rank: Callable[[RunView], Sequence[tuple[Offer, str]]],
    bid: Bid = no_maximum,
    *,
    at_most: int | None = None,
    look_within_s: Callable[[], float] | None = None,
) -> Iterator[d.Decision]:
    """Request machines for the waiting jobs, `at_most` this many. `rank` pairs each offer with why it is chosen; it
    reads every price, so it is called only when there is something to rent. Within a turn `bid` must always return the
    same. Where trials' configurations name their machines there is nothing to rank. `look_within_s`: how soon `rank`
    must be called again while no offer will do, where that is sooner than the pauses after denials."""
    if not state.waiting or renting_stopped(state):
        return
    if state.spec.space.roles:
        yield from rent_named(state, bid)
        return
    room = state.spec.max_machines - state.in_hand
    if room <= 0:
        return
    first, missing = _slots_missing(state, room)
    if first is None or missing <= 0:
        return
    ranked = [pair for pair in rank(state) if _fits(state, first, pair[0], room)]
    candidates = [pair for pair in ranked if not_just_denied(state, pair[0])]
    if first.slots > state.largest_slots:
        candidates, missing = _in_zone_with_most(state, first, candidates, missing)
        if candidates and not state.leases and _gang_usd(state, first, candidates[0][0], bid) > free_usd(state):
            yield d.WindDown(
                reason="out_of_budget",
                why=f"{show_usd(free_usd(state))} left in the budget cannot pay {first.slots} slots at once",
            )
            return
    if not candidates and RETRY not in state.timers:
        fitting = [offer for offer in state.listings if _fits(state, first, offer, room)]
        look = try_again(state, setbacks_of(state, fitting), fitting)
        yield look if look_within_s is None else replace(look, at=min(look.at, state.now + look_within_s()))
    candidates = affordable(state, candidates, bid)
    room = room if at_most is None else min(room, at_most)
    while missing > 0 and room > 0 and candidates:
        candidates = yield from rent_one(state, candidates, bid)
        if candidates:
            offer = candidates[0][0]
            missing -= state.listings[offer].slots
            room -= 1
            if offer in state.setbacks and first.slots <= state.largest_slots:
                candidates = candidates[1:]  # its last requests failed: one machine shows whether that is over


def rent_one(state: RunView, candidates: Ranked, bid: Bid = no_maximum) -> Generator[d.Decision, None, Ranked]:
    """Request the first candidate that the guard accepts; after a refusal only those that may cost less per hour are
    tried. Returns the remaining candidates, the requested one first: none if all were refused."""
    while candidates:
        offer, why = candidates[0]
        refusals, most = state.refusals, bid(state, offer)
        yield request(state, offer, why, most)
        if state.refusals == refusals:
            return candidates
        ceiling = state.listings[offer].ceiling_usd_per_hour(most)
        candidates = [pair for pair in candidates if _ceiling(state, pair[0], bid) < ceiling]
    return []


def affordable(state: RunView, candidates: Ranked, bid: Bid = no_maximum) -> Ranked:
    """Those which the budget pays for long enough: requesting no others spares the journal a refusal at every turn.
    Without any lease all are requested: the guard's refusal ends the run with its reason."""
    if not state.leases:
        return candidates
    left_usd = free_usd(state)
    return [pair for pair in candidates if _least_usd(state, pair[0], bid) <= left_usd]


def _slots_missing(state: RunView, room: int) -> tuple[Job | None, int]:
    """The job that has waited longest, of those that can be placed, and how many slots they all need beyond those of
    pending leases. That first job must fit on what is rented next, or would wait for ever.

    Counting stops at what may be rented: a hundred thousand waiting jobs need not be counted.
    """
    at_most = room * state.largest_slots
    pending_slots = sum(state.leases[lease].slots for lease in state.pending)
    first: Job | None = None
    wanted = 0
    for job_id in state.waiting:
        job = state.jobs[job_id]
        if job.slots > state.largest_slots and not any(_fits(state, job, offer, room) for offer in state.listings):
            continue  # some of its machines alone would only cost money while it waits for the others
        first = first or job
        wanted += job.slots
        if wanted - pending_slots >= at_most:
            break
    return first, wanted - pending_slots


def _free_or_pending(state: RunView, gang: Job) -> Counter[Zone]:
    """Slots in each zone that it could use, free or pending."""
    found = slots_open(state, gang)
    for lease_id in state.pending:
        lease = state.leases[lease_id]
        found[zone_of(lease.offer)] += lease.slots
    return found


def _in_zone_with_most(state: RunView, gang: Job, candidates: Ranked, missing: int) -> tuple[Ranked, int]:
    """A gang that needs several machines needs them in one zone: the one where it has most already, so that a change of
    prices cannot scatter it. Free slots there count, for a gang can use them together."""
    found = _free_or_pending(state, gang)
    offered = {zone_of(offer) for offer, _ in candidates}
    zone = max((zone for zone in found if zone in offered and found[zone]), key=lambda zone: found[zone], default=None)
    if zone is None:
        return candidates, missing
    return [pair for pair in candidates if zone_of(pair[0]) == zone], missing - slots_open(state, gang)[zone]


def _fits(state: RunView, job: Job, offer: Offer, room: int) -> bool:
    """On one machine of this offer, or as a gang on as many as may still be rented, with those free or pending."""
    if job.offer not in (None, offer):
        return False
    slots = state.listings[offer].slots
    if job.slots <= state.largest_slots:
        return slots >= job.slots
    worker = state.spec.slots
    return _free_or_pending(state, job)[zone_of(offer)] + room * (slots // worker * worker) >= job.slots


def _ceiling(state: RunView, offer: Offer, bid: Bid) -> float:
    return state.listings[offer].ceiling_usd_per_hour(bid(state, offer))


def _least_usd(state: RunView, offer: Offer, bid: Bid) -> float:
    """For the shortest lease that is of use."""
    return _ceiling(state, offer, bid) * least_lease_s(state, state.listings[offer]) / 3600


def _gang_usd(state: RunView, gang: Job, offer: Offer, bid: Bid) -> float:
    """The shortest useful lease of all machines that a gang still needs: with fewer of them it could not start."""
    missing = gang.slots - slots_open(state, gang)[zone_of(offer)]
    machines = max(0, -(-missing // state.listings[offer].slots)) - len(state.pending)
    return machines * _least_usd(state, offer, bid)
