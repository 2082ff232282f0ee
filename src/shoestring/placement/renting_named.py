"""Rent the machines that trials are pinned to, for each trial by itself: what one waits for is of no use to another.

A trial has its machines whole and to itself, all of one offer. They are rented together or not at all: some of them
alone would only cost money while it waits for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.market.billing import new_lease_usd
from shoestring.placement.matching import RETRY, request
from shoestring.placement.means import Bid, free_usd, not_just_denied, try_again
from shoestring.placement.named_machines import count_of
from shoestring.placement.seating import has_time
from shoestring.placement.seen import provision_s
from shoestring.units import show_usd

WORTH_STARTING_S = 60.0
"""Beside the time for a machine to come up and to be left, less than this is not worth a start."""


def rent_named(state: RunView, bid: Bid) -> Iterator[d.Decision]:
    """In the order in which trials wait. Nothing is rented for those behind one that there is no room for: a trial on
    many machines would wait until all others were done."""
    if state.deadline_at - state.now < _least_s(state):
        return
    free = machines_free(state)
    denied = unpaid = ""
    for job in [state.jobs[job_id] for job_id in state.waiting]:
        offer, count = job.offer, count_of(state.spec.space, job.config)
        if offer is None:
            continue
        missing = count - free[offer]
        if missing > 0:
            if not to_be_had(state, offer):
                denied = denied or f"{offer} was denied just now, or costs more than on demand"
                continue
            held_s = _payable_s(state, offer, missing, bid)
            if held_s is None:
                unpaid = unpaid or f"{show_usd(max(0.0, free_usd(state)))} does not pay {count} x {offer} any more"
                continue
            yield from _make_room(state, free, offer, missing)
            if _room(state) < missing or not (yield from _rent(state, offer, missing, held_s, bid)):
                break
            free[offer] += missing
        free[offer] -= count
    if denied and RETRY not in state.timers:
        yield try_again(state, denied)
    elif unpaid and not denied and not state.leases:
        yield d.WindDown(why=unpaid)


def to_be_had(state: RunView, offer: Offer) -> bool:
    """Is it worth asking for? Above the on-demand price nobody should bid."""
    fair = state.usd_per_hour(offer) <= state.listings[offer].on_demand_usd_per_hour
    return fair and not_just_denied(state, offer)


def machines_free(state: RunView) -> Counter[Offer]:
    """Machines that waiting trials may count on: idle ones that can be begun on, and those that were asked for."""
    idle = (lease for lease in map(state.leases.__getitem__, state.idle) if has_time(state, lease))
    free = Counter(lease.offer for lease in idle)
    free.update(state.leases[lease].offer for lease in state.coming)
    return free


def _rent(state: RunView, offer: Offer, missing: int, held_s: float, bid: Bid) -> Generator[d.Decision, None, bool]:
    """False if the guard refuses one of them."""
    refusals, most = state.refusals, bid(state, offer)
    why = f"{missing} more of what the next trial is for: ${state.usd_per_hour(offer):.4f}/h"
    for _ in range(missing):
        yield replace(request(state, offer, why, most), end_by=state.now + held_s)
        if state.refusals > refusals:
            return False
    return True


def _room(state: RunView) -> int:
    return state.spec.max_machines - state.in_hand


def _make_room(state: RunView, free: Counter[Offer], offer: Offer, missing: int) -> Iterator[d.Decision]:
    """Where no more may be rented, idle machines make room that nobody in line before this trial can use."""
    for lease in [state.leases[lease_id] for lease_id in state.idle]:
        if _room(state) >= missing:
            return
        counted = has_time(state, lease)
        if counted and (lease.offer == offer or free[lease.offer] <= 0):
            continue
        free[lease.offer] -= counted
        yield d.ReleaseLease(lease=lease.id, why=f"it makes room for {offer}, which the next trial is for")


def _payable_s(state: RunView, offer: Offer, machines: int, bid: Bid) -> float | None:
    """How long so many can be prepaid, all alike, or the first would take the money of the last: a slice, or what
    money and time leave of it. None if that is too little."""
    listing, least_s = state.listings[offer], _least_s(state)
    ceiling = listing.ceiling_usd_per_hour(bid(state, offer))
    held_s = min(state.spec.slice_s, state.deadline_at - state.now)
    while machines * new_lease_usd(listing.billing, held_s, ceiling) > free_usd(state):
        if held_s <= least_s:
            return None
        held_s = max(least_s, held_s / 2)
    return held_s


def _least_s(state: RunView) -> float:
    return min(state.spec.slice_s, provision_s(state) + state.spec.wind_down_s + WORTH_STARTING_S)
