"""Which slots a job gets: on one machine if any has room; else, as a gang of workers, on few machines of one zone.

Workers of one trial communicate at every step: within a machine that is fast, within a zone it is free of charge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shoestring.kernel.records import Job, Lease
from shoestring.kernel.types import LeaseId, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.least_time import has_time

Zone = tuple[str, str]
"""A provider and a zone of it."""


@dataclass(frozen=True)
class Packing:
    leases: tuple[LeaseId, ...]
    slots: tuple[int, ...]
    """On each."""


def packing_for(state: RunView, job: Job) -> Packing | None:
    """Free slots on which the job can start now, if there are enough."""
    one = _least_room(state, _open_to(state, job), job.slots)
    if one is not None:
        return Packing((one.id,), (job.slots,))
    worker = state.spec.slots
    if job.slots == worker:
        return None
    zones: dict[Zone, list[Lease]] = {}
    for lease in _open_to(state, job):
        zones.setdefault(zone_of(lease.offer), []).append(lease)
    found = [packing for leases in zones.values() if (packing := _spread(state, leases, job.slots, worker)) is not None]
    return min(found, key=lambda packing: len(packing.leases), default=None)


def is_gang(state: RunView, job: Job) -> bool:
    """Does it need several machines, whichever it gets?"""
    return job.slots > (state.largest_slots if job.offer is None else state.listings[job.offer].slots)


def zone_of(offer: Offer) -> Zone:
    return offer.provider, offer.zone


def slots_open(state: RunView, job: Job) -> Counter[Zone]:
    """Free slots that workers of this job could use, zone by zone."""
    worker = state.spec.slots
    found: Counter[Zone] = Counter()
    for lease in _open_to(state, job):
        found[zone_of(lease.offer)] += lease.free_slots // worker * worker
    return found


def _open_to(state: RunView, job: Job) -> Iterator[Lease]:
    for lease_id in state.with_free_slots:
        lease = state.leases[lease_id]
        if has_time(state, lease) and job.offer in (None, lease.offer):
            yield lease


def _least_room(state: RunView, leases: Iterable[Lease], slots: int) -> Lease | None:
    """The fullest machine that still fits, to empty the others: one with work on it before an empty one, and that
    before one whose work is all leaving. Else a trial that is moved so that its machine can be released would be
    started there again, and moved again."""
    best: tuple[int, int] | None = None
    found: Lease | None = None
    for lease in leases:
        if lease.free_slots >= slots:
            room = _emptiness(state, lease), lease.free_slots
            if room == (0, slots):
                return lease
            if best is None or room < best:
                best, found = room, lease
    return found


def _emptiness(state: RunView, lease: Lease) -> int:
    """0: with work on it; 1: empty; 2: all work on it is stopping in order to run elsewhere."""
    if not lease.segments:
        return 1
    segments = map(state.segments.__getitem__, lease.segments)
    return 2 * all(segment.halting and state.jobs[segment.job].wanted for segment in segments)


def _spread(state: RunView, leases: list[Lease], slots: int, worker: int) -> Packing | None:
    """Machines with the most free slots first, so that few are needed; the rest on the one it fits best."""
    chosen: list[Lease] = []
    shares: list[int] = []
    for lease in sorted(leases, key=lambda lease: -lease.free_slots):
        rest = slots - sum(shares)
        share = lease.free_slots // worker * worker
        if share >= rest:
            last = _least_room(state, (other for other in leases if other not in chosen), rest) or lease
            return Packing((*(x.id for x in chosen), last.id), (*shares, rest))
        if share:
            chosen.append(lease)
            shares.append(share)
    return None
