"""Pins each trial to the machines that its configuration names: in a space with machine parameters, the search chooses.

The search need not know. It decides RunJob as always; this policy, next in the chain, decides RunJob again with the
named offer and with all slots of as many machines as the configuration names. Where that leaves the zone or the kind
open, the cheapest offer now is used. Placement has no choice left: it rents exactly these machines (`rent_pinned`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.types import Config, Listing, Offer, Value
from shoestring.kernel.view import RunView
from shoestring.policies.placement.named_machines import count_of, named_listings, whole_slots
from shoestring.policies.placement.renting.facts import per_slot
from shoestring.policies.placement.renting.rent_gang import is_available
from shoestring.policies.placement.renting.rent_pinned import machines_free


@dataclass(frozen=True)
class Pinning:
    only_on_demand: bool = False
    """Spot machines are never used, whatever a configuration leaves open."""
    wants: ClassVar[frozenset[Waker]] = frozenset({d.RunJob, e.LeaseDenied, e.LeaseEnded, e.SegmentEnded})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running":
            return
        yield from _repin_running(state)
        free = machines_free(state)
        for job in [state.jobs[job_id] for job_id in state.waiting]:
            yield from self._pin(state, job, free)

    def _pin(self, state: RunView, job: Job, free: Counter[Offer]) -> Iterator[d.Decision]:
        """Pin a waiting trial to an offer. Machines it will use there, idle or pending, are not free for the next
        trial."""
        worker, count = state.spec.slots, count_of(state.spec.space, job.config)

        def rank(listing: Listing) -> tuple[object, ...]:
            """Offers with free machines first, then the cheapest available one. A trial keeps its offer while that has
            free machines, or while none is available."""
            offer = listing.offer
            is_free = free[offer] >= count
            unavailable = not is_free and not is_available(state, offer)
            price = per_slot(state.usd_per_hour(offer), listing)
            return unavailable, not is_free, (is_free or unavailable) and offer != job.offer, price, offer

        chosen = min(self._open_to(state, job.config), key=rank, default=None)
        if chosen is None or count > state.spec.max_machines:
            yield d.DropJob(job=job.id, why="pruned: this run cannot rent the machines that its configuration names")
            return
        offer, slots = chosen.offer, count * whole_slots(chosen, worker)
        if free[offer] >= count:
            free[offer] -= count
        if (job.offer, job.slots) != (offer, slots):
            yield _run(job, offer, slots, _why(state, count, offer))

    def _open_to(self, state: RunView, config: Config) -> list[Listing]:
        return [x for x in _named(state, config) if not (self.only_on_demand and x.offer.spot)]


def pinned_price(state: RunView, config: Config) -> float:
    """Dollars per hour now of all machines that a configuration names; of several offers the cheapest. Infinite if no
    offer matches."""
    priced = ((state.usd_per_hour(listing.offer), listing) for listing in _named(state, config))
    usd, _ = min(priced, key=lambda pair: per_slot(*pair), default=(math.inf, None))
    return count_of(state.spec.space, config) * usd


def _named(state: RunView, config: Config) -> list[Listing]:
    """Looked up once for all trials that name the same machines: a cloud may list thousands."""
    space = state.spec.space
    known: dict[tuple[Value, ...], list[Listing]] = state.memo("named listings", dict)
    named = tuple(config.get(name) for role, name in space.roles.items() if role != "count")
    if named not in known:
        known[named] = named_listings(space, state.listings.values(), config, state.spec.slots)
    return known[named]


def _repin_running(state: RunView) -> Iterator[d.Decision]:
    """A running trial is on the machines it names already, even if a new RunJob leaves them out."""
    for job_id in dict.fromkeys(order.job for order in state.decided if isinstance(order, d.RunJob)):
        job = state.jobs[job_id]
        if job.segment is None:
            continue
        segment = state.segments[job.segment]
        offer = state.leases[segment.leases[0]].offer
        if (job.offer, job.slots) != (offer, segment.slots):
            yield _run(job, offer, segment.slots, f"already running on {offer}")


def _run(job: Job, offer: Offer, slots: int, why: str) -> d.RunJob:
    return d.RunJob(job=job.id, until_step=job.until_step, slots=slots, offer=offer, why=why)


def _why(state: RunView, count: int, offer: Offer) -> str:
    usd = count * state.usd_per_hour(offer)
    return f"its configuration names {f'{count} x ' if count > 1 else ''}{offer}: ${usd:.4f}/h now"
