"""Several machines of one offer for one trial: rented together or not at all, and prepaid for equally long.

Some of them alone would only cost money while the trial waits for the others.
"""

from __future__ import annotations

from collections.abc import Generator

from msgspec import UNSET
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.market.billing import new_lease_usd
from shoestring.policies.placement.renting.allocations import launched_once
from shoestring.policies.placement.renting.assign import request
from shoestring.policies.placement.renting.facts import (
    Bid,
    free_usd,
    is_for_sale,
    no_maximum,
    not_just_denied,
)
from shoestring.policies.placement.renting.least_time import least_lease_s


def is_available(state: RunView, offer: Offer) -> bool:
    """Is it worth requesting?"""
    return is_for_sale(state, state.listings[offer]) and not_just_denied(state, offer)


def room(state: RunView) -> int:
    """How many more machines may be rented."""
    return state.spec.max_machines - state.in_hand


def payable_s(state: RunView, offer: Offer, machines: int, bid: Bid = no_maximum) -> float | None:
    """How long this many can be prepaid, all equally long, or the first would use up the money of the last: a slice, or
    what budget and deadline leave of it. None if that is too little."""
    listing = state.listings[offer]
    least_s = least_lease_s(state, listing)
    ceiling = listing.ceiling_usd_per_hour(bid(state, offer))
    held_s = min(state.spec.slice_s, state.deadline_at - state.now)
    while machines * new_lease_usd(listing.billing, held_s, ceiling) > free_usd(state):
        if held_s <= least_s:
            return None
        held_s = max(least_s, held_s / 2)
    return held_s


def rent_together(
    state: RunView, offer: Offer, machines: int, held_s: float, why: str, bid: Bid = no_maximum
) -> Generator[d.Decision, None, bool]:
    """False if `max_machines` does not allow all of them, or the guard refuses one. For programs that are launched once
    they are one allocation."""
    if room(state) < machines:
        return False
    refusals, most = state.refusals, bid(state, offer)
    gang = state.next_lease() if machines > 1 and launched_once(state) else UNSET
    for _ in range(machines):
        yield replace(request(state, offer, why, most), end_by=state.now + held_s, gang=gang)
        if state.refusals > refusals:
            return False
    return True
