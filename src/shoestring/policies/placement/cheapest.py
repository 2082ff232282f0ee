"""The cheapest spot machines now; on-demand ones when the deadline is near or no spot machine is available."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.on_demand import on_demand_offers
from shoestring.policies.placement.renting.assign import PLACEMENT_WAKERS, release_idle, start_waiting_jobs
from shoestring.policies.placement.renting.consolidate import consolidate
from shoestring.policies.placement.renting.facts import per_slot
from shoestring.policies.placement.renting.rent import rent_missing


@dataclass(frozen=True)
class Cheapest:
    """No maximum price: today's clouds preempt for capacity, and a low maximum only adds preemptions."""

    fall_back_share: float = 0.15
    """In this last share of the time to the deadline, new machines are on-demand: the time lost to a preemption could
    not be made up."""
    idle_s: float = 120.0
    consolidates: bool = False
    """For trials of different widths: the widest start first, and trials spread over half-empty machines are packed
    onto fewer, so that the others can be released."""
    wants: ClassVar[frozenset[Waker]] = PLACEMENT_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running":
            return
        yield from start_waiting_jobs(state, widest_first=self.consolidates)
        yield from rent_missing(state, self._ranked)
        if self.consolidates:
            yield from consolidate(state)
        yield from release_idle(state, self.idle_s)

    def _ranked(self, state: RunView) -> list[tuple[Offer, str]]:
        offers = self._spot_and_on_demand(state)
        if state.deadline_at - state.now < self.fall_back_share * state.spec.deadline_s:
            on_demand = [(offer, f"the deadline is near; {why}") for offer, why in offers if not offer.spot]
            return on_demand + [(offer, why) for offer, why in offers if offer.spot]
        return offers

    def _spot_and_on_demand(self, state: RunView) -> list[tuple[Offer, str]]:
        """Best first."""
        return _spot_offers(state) + on_demand_offers(state)


def _spot_offers(state: RunView) -> list[tuple[Offer, str]]:
    """Spot offers by price per slot now. Those above the on-demand price are left out."""
    priced = []
    for listing in state.listings.values():
        if listing.offer.spot:
            usd_per_hour = state.usd_per_hour(listing.offer)
            if usd_per_hour <= listing.on_demand_usd_per_hour:
                priced.append((per_slot(usd_per_hour, listing), usd_per_hour, listing))
    priced.sort(key=lambda entry: (entry[0], entry[2].offer))
    return [
        (
            listing.offer,
            f"cheapest now: ${usd:.4f}/h, {usd / listing.on_demand_usd_per_hour:.0%} of the on-demand price",
        )
        for _, usd, listing in priced
    ]
