"""Lifetimes from the user's own runs: every spot machine of a journal, and how it ended."""

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
    revoked: bool = False


def lifetimes_of_run(entries: Iterable[Entry]) -> Iterator[LifetimeRecord]:
    """The spot machines of a run, with ages from the grant.

    Preempted: revoked, or lost without notice. Machines that were released, whose prepaid time ended, or that are
    still held are censored: their lifetime is at least that. Local machines are not for sale and are left out.
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
                held[lease].ended_at, held[lease].revoked = at, cause in ("revoked", "lost")
        for decision in entry.decisions:
            if isinstance(decision, RequestLease) and decision.offer.spot and decision.offer.provider != LOCAL:
                held[decision.lease] = _Held(decision.offer)
    for machine in held.values():
        if machine.granted_at is not None:
            yield LifetimeRecord(
                seconds=max(0.0, (now if machine.ended_at is None else machine.ended_at) - machine.granted_at),
                revoked=machine.revoked,
                machine=machine.offer.machine,
                zone=machine.offer.zone,
                launched_at=machine.granted_at,
                limit_s=limits.get(machine.offer),
            )
