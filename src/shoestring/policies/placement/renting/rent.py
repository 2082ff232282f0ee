"""Rent what is missing, best offer first, going down the list when one is refused by the guard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Job
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import RETRY, request
from shoestring.policies.placement.renting.facts import Bid, free_usd, no_maximum, not_just_denied, try_again
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
) -> Iterator[d.Decision]:
    """Request machines, `at_most` so many, until waiting jobs are provided for. `rank` pairs each offer with why it is
    chosen; it looks at every price, so it is asked only when there is something to rent. Within a turn `bid` must
    always say the same. Where trials' configurations name their machines there is nothing to rank."""
    if not state.waiting:
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
        candidates, missing = _where_it_has_most(state, first, candidates, missing)
        if candidates and not state.leases and _gang_usd(state, first, candidates[0][0], bid) > free_usd(state):
            yield d.WindDown(why=f"{show_usd(free_usd(state))} does not pay {first.slots} slots at once any more")
            return
    if not candidates and RETRY not in state.timers:
        why = "every offer was denied just now" if ranked else "nothing that fits is offered at a price worth paying"
        yield try_again(state, why)
    candidates = affordable(state, candidates, bid)
    room = room if at_most is None else min(room, at_most)
    while missing > 0 and room > 0 and candidates:
        candidates = yield from rent_one(state, candidates, bid)
        if candidates:
            missing -= state.listings[candidates[0][0]].slots
            room -= 1


def rent_one(state: RunView, candidates: Ranked, bid: Bid = no_maximum) -> Generator[d.Decision, None, Ranked]:
    """Request the first that the guard lets pass; after a refusal only what may cost less an hour is tried. Returns
    what is left of the candidates, the one requested in front: none if all were refused."""
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
    """Those whose first minute the budget pays: asking for no others spares the guard, and the journal, a refusal at
    every turn. With nothing in hand all are asked for: the guard's refusal ends the run with its reason."""
    if not state.leases:
        return candidates
    return [pair for pair in candidates if _first_minute_usd(state, pair[0], bid) <= free_usd(state)]


def _slots_missing(state: RunView, room: int) -> tuple[Job | None, int]:
    """Who has waited longest of those that can be helped, and how many slots they all need, beyond what was asked for
    and not yet granted. That first one must fit on what is rented next, or would wait for ever.

    Counting stops at what may be rented: a hundred thousand jobs that wait need not be counted.
    """
    at_most = room * state.largest_slots
    coming = sum(state.leases[lease].slots for lease in state.pending)
    first: Job | None = None
    wanted = 0
    for job_id in state.waiting:
        job = state.jobs[job_id]
        if job.slots > state.largest_slots and not any(_fits(state, job, offer, room) for offer in state.listings):
            continue  # some of its machines alone would only cost money while it waits for the others
        first = first or job
        wanted += job.slots
        if wanted - coming >= at_most:
            break
    return first, wanted - coming


def _there(state: RunView, gang: Job) -> Counter[Zone]:
    """Slots in each zone that it could take, now or when they are granted."""
    there = slots_open(state, gang)
    for lease_id in state.pending:
        lease = state.leases[lease_id]
        there[zone_of(lease.offer)] += lease.slots
    return there


def _where_it_has_most(state: RunView, gang: Job, candidates: Ranked, missing: int) -> tuple[Ranked, int]:
    """A gang that needs several machines needs them in one zone: the one where it has most already, so that what is
    dearer now elsewhere cannot scatter it. Free slots there count, for a gang can take them together."""
    here = _there(state, gang)
    offered = {zone_of(offer) for offer, _ in candidates}
    zone = max((zone for zone in here if zone in offered and here[zone]), key=lambda zone: here[zone], default=None)
    if zone is None:
        return candidates, missing
    return [pair for pair in candidates if zone_of(pair[0]) == zone], missing - slots_open(state, gang)[zone]


def _fits(state: RunView, job: Job, offer: Offer, room: int) -> bool:
    """On one machine of this kind, or as a gang on as many as may still be rented, with what is there."""
    if job.offer not in (None, offer):
        return False
    slots = state.listings[offer].slots
    if job.slots <= state.largest_slots:
        return slots >= job.slots
    worker = state.spec.slots
    return _there(state, job)[zone_of(offer)] + room * (slots // worker * worker) >= job.slots


def _ceiling(state: RunView, offer: Offer, bid: Bid) -> float:
    return state.listings[offer].ceiling_usd_per_hour(bid(state, offer))


def _first_minute_usd(state: RunView, offer: Offer, bid: Bid) -> float:
    return _ceiling(state, offer, bid) / 60


def _gang_usd(state: RunView, gang: Job, offer: Offer, bid: Bid) -> float:
    """The same for all machines that a gang still needs: with fewer of them it could not start."""
    missing = gang.slots - slots_open(state, gang)[zone_of(offer)]
    machines = max(0, -(-missing // state.listings[offer].slots)) - len(state.pending)
    return machines * _first_minute_usd(state, offer, bid)
