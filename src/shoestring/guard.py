"""The guard: budget and deadline are enforced in this one place, whatever a policy proposes.

Law: at every moment, dollars billed + the worst case of every open lease <= budget, and no open lease can outlive the
deadline. Leases are prepaid up to `end_by`, where they end by themselves, so the law holds even while no controller is
alive. A proposed lease that does not fit is cut down to what fits; if that is too short to be useful, it is `Refused`.
So is every lease once machines were given back unused too often (`renting.breaker`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Listing, PriceHistory
from shoestring.kernel.view import RunView
from shoestring.market.billing import billing_rule
from shoestring.policies.placement.renting.breaker import renting_stopped, why_stopped
from shoestring.policies.placement.renting.least_time import least_charged_s, least_lease_s
from shoestring.units import show_duration, show_usd


@dataclass(frozen=True)
class BudgetAndDeadline:
    def __call__(self, state: RunView, proposed: d.Decision) -> d.Decision:
        match proposed:
            case d.RequestLease():
                return self._request(state, proposed)
            case d.ExtendLease():
                return self._extend(state, proposed)
            case d.StartSegment() if state.phase != "running":
                return d.Refused(wish=proposed, why=f"the run is ending: {state.ending}")
            case _:
                return proposed

    def _request(self, state: RunView, proposed: d.RequestLease) -> d.Decision:
        if state.phase != "running":
            return d.Refused(wish=proposed, why=f"the run is ending: {state.ending}")
        listing = state.listings.get(proposed.offer)
        if listing is None or (proposed.max_usd_per_hour is not None and not proposed.max_usd_per_hour > 0):
            return proposed  # evolve reports what is wrong with it
        if renting_stopped(state):
            return d.Refused(wish=proposed, why=why_stopped(state))
        now, least_s = state.now, _least_s(state, proposed)
        end_by = min(proposed.end_by, state.deadline_at)
        if came_too_late(state, proposed):
            left_s = max(0.0, state.deadline_at - now)
            return d.Refused(
                wish=proposed,
                why=f"only {show_duration(left_s)} left before the deadline, "
                f"and a machine is of use from {show_duration(least_s)} on",
            )
        worst = _worst_case(
            listing, proposed.max_usd_per_hour, started=now, prices=state.history(proposed.offer), now=now
        )
        left = state.spec.budget_usd - state.spent_usd - state.reserved_usd
        end_by = _longest(worst, left, now, end_by)
        if end_by - now < least_s:
            return d.Refused(
                wish=proposed,
                why=f"{show_usd(max(0.0, left))} of the budget is free, "
                f"{show_duration(least_s)} of {proposed.offer} may cost {show_usd(worst(now + least_s))}",
            )
        return replace(proposed, end_by=end_by, reserve_usd=worst(end_by))

    def _extend(self, state: RunView, proposed: d.ExtendLease) -> d.Decision:
        lease = state.leases.get(proposed.lease)
        if lease is None:
            return proposed  # evolve reports that this lease is not open
        if lease.granted_at is None:
            return d.Refused(wish=proposed, why=f"{lease.id} has not been granted yet")
        now = state.now
        if now > lease.end_by:  # it ended by itself; only LeaseEnded has not arrived yet
            return d.Refused(wish=proposed, why=f"the prepaid time of {lease.id} is over")
        worst = _worst_case(
            state.listings[lease.offer],
            lease.max_usd_per_hour,
            started=lease.granted_at if lease.billed_from is None else lease.billed_from,
            prices=state.history(lease.offer),
            now=now,
        )
        left = state.spec.budget_usd - state.spent_usd - (state.reserved_usd - lease.reserve_usd)
        end_by = _longest(worst, left, max(now, lease.end_by), min(proposed.end_by, state.deadline_at))
        if end_by <= lease.end_by or state.phase != "running":
            return d.Refused(
                wish=proposed,
                why=f"held until {show_duration(lease.end_by - state.started_at)}: no more time or money "
                f"({show_usd(max(0.0, left))} of the budget is free for it)",
            )
        return replace(proposed, end_by=end_by, reserve_usd=worst(end_by))


def came_too_late(state: RunView, proposed: d.RequestLease) -> bool:
    """Does the deadline leave too little time for this lease?"""
    return state.deadline_at - state.now < _least_s(state, proposed)


def _least_s(state: RunView, proposed: d.RequestLease) -> float:
    """With less than this it is refused. A policy that plans for a shorter lease than usual gets it."""
    listing = state.listings[proposed.offer]
    least_s = least_lease_s(state, listing)
    return least_s if proposed.end_by - state.now >= least_s else least_charged_s(state, listing)


def _worst_case(
    listing: Listing, max_usd_per_hour: float | None, *, started: float, prices: PriceHistory, now: float
) -> Callable[[float], float]:
    rule = billing_rule(listing.billing)
    ceiling = listing.ceiling_usd_per_hour(max_usd_per_hour)
    return lambda until: rule.worst_usd(started, prices, now, until, ceiling)


def _longest(worst: Callable[[float], float], left_usd: float, from_s: float, to_s: float) -> float:
    """The latest end between the two that money allows; worst cases never fall with time, so bisection finds it."""
    if to_s <= from_s or worst(to_s) <= left_usd:
        return to_s
    if worst(from_s) > left_usd:
        return from_s
    low, high = from_s, to_s
    while high - low > 1.0:
        middle = (low + high) / 2
        if worst(middle) <= left_usd:
            low = middle
        else:
            high = middle
    return low
