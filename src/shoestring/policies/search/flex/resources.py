"""What deadline and budget still allow: how many slots can be paid until the end, how much time is left, the progress.

Machines are rented for waiting trials, so a search that uses no more slots than can be paid keeps a steady cluster. All
of it is recomputed from the state at every call: prices change, machines are preempted, and the user may amend budget
and deadline.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from shoestring.kernel.records import Lease
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.models.speed.latencies import learned_latencies


@dataclass(frozen=True)
class Resources:
    slots: int
    """How many can be used at once: those of the machines in hand, and of further machines the budget pays."""
    left_s: float
    """Until the deadline, or until the budget is spent."""
    progress: float
    """From 0, when the first machine is up, to 1, when the deadline is reached or the budget is spent."""
    switch_s: float
    """Seconds a trial loses when it is paused, moved or widened."""
    save_s: float
    """Of these, to save at the end of a segment."""
    last_call_s: float
    """So long before the end no new step begins."""

    @property
    def whole_s(self) -> float:
        """From the first machine to the end, as estimated now."""
        return self.left_s / max(1e-9, 1.0 - self.progress)

    def steps(self, step_s: float, *, switching: bool = False) -> int:
        """How many steps of so many seconds end in time. The last one may be under way at the last call."""
        left_s = self.left_s - self.save_s - (self.switch_s if switching else 0.0)
        return max(0, int(min(left_s / step_s, (left_s - self.last_call_s) / step_s + 1.0)))


def resources_now(state: RunView, *, spot: bool) -> Resources:
    """`spot`: may spot machines be rented?"""
    spec, now = state.spec, state.now
    latencies = learned_latencies(state)
    up_s = latencies.provision_s
    held = [lease for lease in state.leases.values() if lease.gone_at is None and not lease.releasing]
    offer, usd_per_s = _next_offer(state, spot=spot)
    spent_usd, to_come_usd = state.spent_usd, 0.0
    for lease in held:
        since = lease.requested_at + up_s if lease.granted_at is None else lease.granted_at
        spent_usd += _usd_per_s(state, lease.offer) * max(0.0, now - since)
        to_come_usd += _usd_to_hold(state, lease.offer, state.deadline_at - max(now, since))
    left_s = max(0.0, state.deadline_at - now)
    spare_usd = spec.budget_usd - spent_usd - to_come_usd
    more = _machines_more(state, held, offer, spare_usd, left_s - up_s, least_s=2 * up_s)
    slots = sum(lease.slots // spec.slots * spec.slots for lease in held)
    slots += more * (state.listings[offer].slots // spec.slots * spec.slots)
    burn_usd_per_s = sum(_usd_per_s(state, lease.offer) for lease in held) or usd_per_s
    if burn_usd_per_s > 0:
        left_s = min(left_s, max(0.0, spec.budget_usd - spent_usd) / burn_usd_per_s)
    begun_at = state.started_at + min(up_s, spec.deadline_s / 2)
    by_time = (now - begun_at) / max(1.0, state.deadline_at - begun_at)
    by_money = spent_usd / spec.budget_usd if spec.budget_usd > 0 else 0.0
    return Resources(
        slots=max(0, slots),
        left_s=left_s,
        progress=min(1.0, max(0.0, by_time, by_money)),
        switch_s=latencies.restore_s + latencies.save_s,
        save_s=latencies.save_s,
        last_call_s=spec.wind_down_s,
    )


def _machines_more(
    state: RunView, held: Collection[Lease], offer: Offer, spare_usd: float, held_s: float, *, least_s: float
) -> int:
    """Machines that the budget pays until the end in addition to those in hand; negative if it cannot pay those. At
    least one in all: the guard ends it when the budget is spent. One that would hardly be up before the end is not
    counted."""
    room = state.spec.max_machines - state.in_hand
    usd = _usd_to_hold(state, offer, max(held_s, least_s))
    if usd <= 0:
        return room
    affordable = int(spare_usd / usd * (1 + 1e-9))
    if held_s < least_s and affordable > 0:
        affordable = 0
    return min(room, max(affordable, 1 - len(held)))


def _usd_to_hold(state: RunView, offer: Offer, seconds: float) -> float:
    """At the current price. The guard reserves the most that prepaid time can cost, so the last of it must be payable
    at the ceiling, which for a spot machine is far above its price."""
    usd_per_s = _usd_per_s(state, offer)
    ceiling = state.listings[offer].ceiling_usd_per_hour(None) / 3600
    return max(0.0, seconds) * usd_per_s + min(max(0.0, seconds), 2 * state.spec.wind_down_s) * (ceiling - usd_per_s)


def _next_offer(state: RunView, *, spot: bool) -> tuple[Offer, float]:
    """The offer with the cheapest slot now; on-demand only, if spot may not be rented. If none fits a worker, placement
    reports it."""
    listings = state.listings.values()
    fitting = [x for x in listings if x.slots >= state.spec.slots and (spot or not x.offer.spot)] or listings
    usd_per_s, _, offer = min((_usd_per_s(state, x.offer) / x.slots, x.offer, x.offer) for x in fitting)
    return offer, usd_per_s * state.listings[offer].slots


def _usd_per_s(state: RunView, offer: Offer) -> float:
    listing = state.listings[offer]
    usd_per_hour = state.usd_per_hour(offer) if offer.spot else listing.on_demand_usd_per_hour
    return min(usd_per_hour, listing.on_demand_usd_per_hour) / 3600
