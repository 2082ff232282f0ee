"""How much prepaid time a machine must have: to be rented at all, and to start another trial on it.

`wind_down_s` before the prepaid time of its machine ends, every trial on it saves and stops: the controller orders it
(`housekeeping.renewal`), and its worker does it by itself should the controller be dead. So nothing is started later
than that, and nothing is rented that would be up only then.
"""

from __future__ import annotations

from shoestring.kernel.records import Lease
from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.market.billing import new_lease_usd
from shoestring.models.speed.latencies import learned_latencies

LEAST_CHARGED_S = 60.0
"""Most clouds charge a minute at least."""
WORTH_STARTING_S = 60.0
WORTH_STARTING_SHARE = 0.05
"""Beside the time to come up and to wind down, a lease shorter than this is not worth a start: a minute, or less where
the whole run has little time."""


def least_lease_s(state: RunView, listing: Listing | None = None) -> float:
    """A lease that can be held for less than this is not worth requesting. A whole slice always is, and where machines
    are free of charge, so is one that may come up too late."""
    spec = state.spec
    least_s = spec.wind_down_s + min(WORTH_STARTING_S, WORTH_STARTING_SHARE * spec.deadline_s)
    if listing is None or listing.billing != "free":
        least_s = max(LEAST_CHARGED_S, learned_latencies(state).provision_s + least_s)
    return min(spec.slice_s, least_s)


def least_charged_s(state: RunView, listing: Listing) -> float:
    return 0.0 if listing.billing == "free" else min(state.spec.slice_s, LEAST_CHARGED_S)


def has_time(state: RunView, lease: Lease) -> bool:
    """Is it worth starting a job on this lease? Not in the last `wind_down_s` before its prepaid time ends. A machine
    that has just come up, late, is prepaid for another slice in the same turn, if the budget allows it."""
    wind_down_s = state.spec.wind_down_s
    if lease.end_by - state.now > wind_down_s:
        return True
    return lease.granted_at == state.now and _next_slice_s(state, lease) > wind_down_s


def _next_slice_s(state: RunView, lease: Lease) -> float:
    """For how long it can be prepaid from now on: a whole slice, or what the deadline leaves of it; 0 if that cannot be
    paid."""
    spec, listing = state.spec, state.listings[lease.offer]
    held_s = min(spec.slice_s, state.deadline_at - state.now)
    most_usd = new_lease_usd(listing.billing, held_s, listing.ceiling_usd_per_hour(lease.max_usd_per_hour))
    left_usd = spec.budget_usd - state.spent_usd - (state.reserved_usd - lease.reserve_usd)
    return held_s if most_usd <= left_usd else 0.0
