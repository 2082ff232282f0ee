"""Facts for renting: unreserved money, offers not denied recently, dollars per slot hour."""

from __future__ import annotations

from collections.abc import Callable

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import RETRY

RETRY_AFTER_S = 60.0
"""How long an offer is not requested again after a denial."""
Bid = Callable[[RunView, Offer], float | None]
"""The maximum price per hour of an offer; None leaves it at the on-demand price."""


def no_maximum(_state: RunView, _offer: Offer) -> None:
    """Today's clouds preempt for capacity: a maximum below the on-demand price only adds preemptions."""
    return


def free_usd(state: RunView) -> float:
    return state.spec.budget_usd - state.spent_usd - state.reserved_usd


def is_for_sale(state: RunView, listing: Listing) -> bool:
    """Spot machines above the on-demand price are never rented."""
    return not listing.offer.spot or state.usd_per_hour(listing.offer) <= listing.on_demand_usd_per_hour


def not_just_denied(state: RunView, offer: Offer) -> bool:
    denied = state.denied_at.get(offer)
    return denied is None or denied + RETRY_AFTER_S <= state.now


def try_again(state: RunView, why: str) -> d.WakeAt:
    """A request right after a denial would most likely be denied too."""
    return d.WakeAt(name=RETRY, at=state.now + RETRY_AFTER_S, why=f"{why}: try again")


def per_slot(usd_per_hour: float, listing: Listing) -> float:
    return usd_per_hour / listing.slots
