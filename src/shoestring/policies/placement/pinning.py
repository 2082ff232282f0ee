"""Trials go where their configurations say: in a space that holds machines, the search chooses them with the rest.

Searches need not know. They order a trial to be run as always, and this policy, asked next, orders it again with the
offer that its configuration names and with all slots of as many machines as it names. Of several offers, where the
configuration leaves the zone or the kind open, it takes the cheapest now. Placement then has no choice left: it rents
just these machines (`renting_named`).
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
from shoestring.policies.placement.renting.rent_gang import to_be_had
from shoestring.policies.placement.renting.rent_pinned import machines_free


@dataclass(frozen=True)
class Pinning:
    only_on_demand: bool = False
    """Of what a configuration leaves open, only machines that nobody takes away."""
    wants: ClassVar[frozenset[Waker]] = frozenset({d.RunJob, e.LeaseDenied, e.LeaseEnded, e.SegmentEnded})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running":
            return
        yield from _stay_where_they_run(state)
        free = machines_free(state)
        for job in [state.jobs[job_id] for job_id in state.waiting]:
            yield from self._send(state, job, free)

    def _send(self, state: RunView, job: Job, free: Counter[Offer]) -> Iterator[d.Decision]:
        """Where a trial that waits should run. What it has there, or coming, is not free for the next one."""
        worker, count = state.spec.slots, count_of(state.spec.space, job.config)

        def rank(listing: Listing) -> tuple[object, ...]:
            """What is there comes first. It stays where it is sent unless that is gone and another is to be had."""
            offer = listing.offer
            there = free[offer] >= count
            hopeless = not there and not to_be_had(state, offer)
            price = per_slot(state.usd_per_hour(offer), listing)
            return hopeless, not there, (there or hopeless) and offer != job.offer, price, offer

        chosen = min(self._open_to(state, job.config), key=rank, default=None)
        if chosen is None or count > state.spec.max_machines:
            yield d.DropJob(job=job.id, why="the machines that its configuration names are not to be had in this run")
            return
        offer, slots = chosen.offer, count * whole_slots(chosen, worker)
        if free[offer] >= count:
            free[offer] -= count
        if (job.offer, job.slots) != (offer, slots):
            yield _run(job, offer, slots, _why(state, count, offer))

    def _open_to(self, state: RunView, config: Config) -> list[Listing]:
        return [x for x in _named(state, config) if not (self.only_on_demand and x.offer.spot)]


def pinned_price(state: RunView, config: Config) -> float:
    """Dollars an hour, now, of all machines that a configuration names; of several offers the cheapest. Infinite for
    what is not for sale."""
    priced = ((state.usd_per_hour(listing.offer), listing) for listing in _named(state, config))
    usd, _ = min(priced, key=lambda pair: per_slot(*pair), default=(math.inf, None))
    return count_of(state.spec.space, config) * usd


def _named(state: RunView, config: Config) -> list[Listing]:
    """Looked up once for all trials that name the same: a cloud may list thousands."""
    space = state.spec.space
    known: dict[tuple[Value, ...], list[Listing]] = state.memo("named listings", dict)
    said = tuple(config.get(name) for role, name in space.roles.items() if role != "count")
    if said not in known:
        known[said] = named_listings(space, state.listings.values(), config, state.spec.slots)
    return known[said]


def _stay_where_they_run(state: RunView) -> Iterator[d.Decision]:
    """Whoever runs is where its configuration says, whatever a new order to run it left out."""
    for job_id in dict.fromkeys(order.job for order in state.decided if isinstance(order, d.RunJob)):
        job = state.jobs[job_id]
        if job.segment is None:
            continue
        segment = state.segments[job.segment]
        offer = state.leases[segment.leases[0]].offer
        if (job.offer, job.slots) != (offer, segment.slots):
            yield _run(job, offer, segment.slots, f"it runs on {offer} already")


def _run(job: Job, offer: Offer, slots: int, why: str) -> d.RunJob:
    return d.RunJob(job=job.id, until_step=job.until_step, slots=slots, offer=offer, why=why)


def _why(state: RunView, count: int, offer: Offer) -> str:
    usd = count * state.usd_per_hour(offer)
    return f"its configuration is for {f'{count} x ' if count > 1 else ''}{offer}: ${usd:.4f}/h now"
