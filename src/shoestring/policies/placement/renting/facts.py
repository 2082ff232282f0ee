"""Facts for renting: unreserved money, offers that rest after a denial, dollars per slot hour."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Setback
from shoestring.kernel.types import Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import RETRY

RETRY_AFTER_S = 60.0
"""How long an offer is not requested again after a denial. Twice as long after each further one in a row."""
LONG_RETRY_AFTER_S = 600.0
LONGER_EACH_TIME_S = 30.0
"""Doubling ends at ten minutes; a denial for hours on end adds half a minute each time. With pauses that double up to
an hour `slack` paid 4 % more for the studies of benchmarks.placement, on the recordings for choosing."""
MOST_RETRY_AFTER_S = 3600.0
MOST_RETRY_AFTER_PER_OFFER_S = 300.0
"""The longest pause: an hour, or longer with many offers, for they are tried in turn, one in five minutes."""
LEFT_SHARE = 0.25
"""Near the deadline pauses are at most this share of the time left: capacity may return while it still helps."""
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
    return rests_until(state, offer) <= state.now


def rests_until(state: RunView, offer: Offer) -> float:
    """When an offer may be requested again. A request right after a denial would most likely be denied too, and so
    would one right after a machine that was preempted before a trial ran on it."""
    denied = state.denied_at.get(offer)
    until = -math.inf if denied is None else denied + RETRY_AFTER_S
    setback = state.setbacks.get(offer)
    return until if setback is None else max(until, setback.at + _pause_s(state, setback))


def try_again(state: RunView, why: str, offers: Iterable[Offer] = ()) -> d.WakeAt:
    """Look again when the first of these offers may be requested. Where none of them rests (a price that is too high),
    looks become rarer the longer nothing was rented."""
    resting = [until for offer in offers if (until := rests_until(state, offer)) > state.now]
    quiet_s = state.now - max(state.last_lease_at, state.started_at)
    at = min(resting) if resting else state.now + _at_most(state, state.now, quiet_s / 2)
    return d.WakeAt(name=RETRY, at=at, why=f"{why}: try again")


def setbacks_of(state: RunView, offers: Collection[Offer]) -> str:
    """Why none of these offers is requested now, for people."""
    resting = [offer for offer in offers if rests_until(state, offer) > state.now]
    if not resting:
        return "no offer that fits has a price worth paying"
    which = str(resting[0]) if len(resting) == 1 else f"{len(resting)} offers"
    found = [setback for offer in resting if (setback := state.setbacks.get(offer)) is not None]
    if not found:
        return f"{which}: denied just now"
    [(reason, _)] = Counter(_IN_WORDS[setback.why] for setback in found).most_common(1)
    rounds = max(setback.rounds for setback in found)
    return f"{which}: {reason}{f', {rounds} times in a row' if rounds > 1 else ''}"


_IN_WORDS = {
    "no_capacity": "no capacity",
    "quota": "over the quota",
    "price": "the price is above the maximum",
    "too_late": "a machine would start too late",
    "preempted": "preempted before a trial could run",
}


def _pause_s(state: RunView, setback: Setback) -> float:
    doubled = RETRY_AFTER_S * 2 ** min(setback.rounds - 1, 16)
    pause_s = min(doubled, max(LONG_RETRY_AFTER_S, LONGER_EACH_TIME_S * setback.rounds))
    return _at_most(state, setback.at, pause_s)


def _at_most(state: RunView, since: float, pause_s: float) -> float:
    most_s = max(MOST_RETRY_AFTER_S, MOST_RETRY_AFTER_PER_OFFER_S * len(state.listings))
    return max(RETRY_AFTER_S, min(most_s, LEFT_SHARE * (state.deadline_at - since), pause_s))


def per_slot(usd_per_hour: float, listing: Listing) -> float:
    return usd_per_hour / listing.slots
