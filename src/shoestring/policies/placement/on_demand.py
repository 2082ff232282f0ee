"""The honest baseline: on-demand machines, at the list price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import PLACEMENT_WAKERS, release_idle, start_waiting_jobs
from shoestring.policies.placement.renting.consolidate import consolidate
from shoestring.policies.placement.renting.facts import per_slot
from shoestring.policies.placement.renting.rent import rent_missing


@dataclass(frozen=True)
class OnDemand:
    idle_s: float = 120.0
    consolidates: bool = False
    """For trials of different widths: the widest start first, and trials spread over half-empty machines are packed
    onto fewer, so that the others can be released."""
    wants: ClassVar[frozenset[Waker]] = PLACEMENT_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running":
            return
        if state.waiting and not state.memo(self, lambda: on_demand_offers(state)):
            yield d.WindDown(
                reason="failed", why="only spot machines are on offer, and this placement uses on-demand ones only"
            )
            return
        yield from start_waiting_jobs(state, widest_first=self.consolidates)
        yield from rent_missing(state, on_demand_offers)
        if self.consolidates:
            yield from consolidate(state)
        yield from release_idle(state, self.idle_s)


def on_demand_offers(state: RunView) -> list[tuple[Offer, str]]:
    """On-demand offers, cheapest slot first."""
    listings = [listing for listing in state.listings.values() if not listing.offer.spot]
    listings.sort(key=lambda listing: (per_slot(listing.on_demand_usd_per_hour, listing), listing.offer))
    return [(x.offer, f"on-demand: ${x.on_demand_usd_per_hour:.4f}/h, never preempted") for x in listings]
