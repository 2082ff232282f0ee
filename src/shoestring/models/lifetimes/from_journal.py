"""Lifetimes from one's own runs: every revocable machine of a journal, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import LeaseEnded, LeaseGranted, RunStarted
from shoestring.kernel.history import Entry
from shoestring.kernel.types import LOCAL, LeaseId, Offer
from shoestring.models.lifetimes.records import LifetimeRecord


@dataclass(slots=True)
class _Held:
    offer: Offer
    granted_at: float | None = None
    ended_at: float | None = None
    taken: bool = False


def machines_seen(entries: Iterable[Entry]) -> Iterator[LifetimeRecord]:
    """The revocable machines of a run, counted from the moment they were granted.

    Taken: revoked, or gone without a word. Machines that were given back or whose prepaid time ended lived at least
    that long, and so did those that are held still. Our own machines are not for sale and tell nothing.
    """
    limits: dict[Offer, float | None] = {}
    held: dict[LeaseId, _Held] = {}
    now = 0.0
    for entry in entries:
        now = max(now, entry.event.at)
        match entry.event:
            case RunStarted(spec=spec):
                limits = {listing.offer: listing.max_life_s for listing in spec.listings}
            case LeaseGranted(lease=lease, at=at) if lease in held and held[lease].ended_at is None:
                held[lease].granted_at = at
            case LeaseEnded(lease=lease, at=at, cause=cause) if lease in held and held[lease].ended_at is None:
                held[lease].ended_at, held[lease].taken = at, cause in ("revoked", "lost")
        for decision in entry.decisions:
            if isinstance(decision, RequestLease) and decision.offer.spot and decision.offer.provider != LOCAL:
                held[decision.lease] = _Held(decision.offer)
    for machine in held.values():
        if machine.granted_at is not None:
            yield LifetimeRecord(
                seconds=max(0.0, (now if machine.ended_at is None else machine.ended_at) - machine.granted_at),
                taken=machine.taken,
                machine=machine.offer.machine,
                zone=machine.offer.zone,
                launched_at=machine.granted_at,
                limit_s=limits.get(machine.offer),
            )
