"""Machines for jobs whose kind and number of machines are chosen: what is there and on its way, shared out in the order
in which jobs wait; what is missing, rented.

A gang starts when all of its machines are there, so they are rented together or not at all. Nobody overtakes one that
there is no room for, or jobs that need a single machine would take each that comes free, and a gang would never start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shoestring.kernel import decisions as d
from shoestring.kernel.types import LeaseId, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import RETRY, start_on
from shoestring.policies.placement.renting.facts import free_usd, try_again
from shoestring.policies.placement.renting.packing import Packing, has_time
from shoestring.policies.placement.renting.rent_gang import least_held_s, payable_s, rent_together, room, to_be_had
from shoestring.policies.placement.scispot.candidates import Place, chosen_place
from shoestring.units import show_usd


@dataclass
class Supply:
    """Slots that nobody has a claim on yet: on machines that are there, then on those that were asked for."""

    worker: int
    _free: dict[Offer, dict[LeaseId, int]] = field(default_factory=dict)

    @staticmethod
    def of(state: RunView) -> Supply:
        supply = Supply(state.spec.slots)
        fullest_first = sorted(state.with_free_slots, key=lambda lease: state.leases[lease].free_slots)
        for lease_id in (*fullest_first, *state.pending):
            supply.add(state, lease_id)
        return supply

    def add(self, state: RunView, lease_id: LeaseId) -> None:
        lease = state.leases[lease_id]
        slots = lease.free_slots // self.worker * self.worker
        if slots and (lease.granted_at is None or has_time(state, lease)):
            self._free.setdefault(lease.offer, {})[lease_id] = slots

    @property
    def is_used_up(self) -> bool:
        return not self._free

    def has(self, place: Place) -> bool:
        """Is all that a job there needs free for it?"""
        return len(self._fitting(place)) == place.count

    def has_some(self, place: Place) -> bool:
        return bool(self._fitting(place))

    def missing(self, place: Place) -> int:
        """Machines that would have to be rented."""
        return place.count - len(self._fitting(place))

    def claim(self, place: Place) -> tuple[LeaseId, ...]:
        """What is free for a job there is its own from now on."""
        claimed = self._fitting(place)
        free = self._free.get(place.listing.offer, {})
        for lease in claimed:
            free[lease] -= place.slots // place.count
            if not free[lease]:
                self.withdraw(place.listing.offer, lease)
        return claimed

    def withdraw(self, offer: Offer, lease: LeaseId) -> bool:
        """It is not to be counted on any more. False if there was nothing left of it to count on."""
        free = self._free.get(offer, {})
        found = free.pop(lease, None) is not None
        if found and not free:
            del self._free[offer]
        return found

    def _fitting(self, place: Place) -> tuple[LeaseId, ...]:
        """Machines to itself for a gang, the first of those that have room for a single job."""
        free = self._free.get(place.listing.offer, {})
        each = place.slots // place.count
        fitting = [lease for lease in free if (free[lease] == each if place.count > 1 else free[lease] >= each)]
        return tuple(fitting[: place.count])


def provide(state: RunView) -> Iterator[d.Decision]:
    """Start whoever has its machines, and rent what the others miss."""
    supply = Supply.of(state)
    in_time = state.deadline_at - state.now >= least_held_s(state)
    denied = unpaid = ""
    blocked = False
    for job in [state.jobs[job_id] for job_id in state.waiting]:
        if supply.is_used_up and (blocked or not in_time):
            break  # hundreds may wait
        place = chosen_place(state, job)
        if place is None:
            continue
        missing, claimed = supply.missing(place), supply.claim(place)
        if not missing:
            if all(state.leases[lease].usable for lease in claimed):
                yield start_on(state, job, Packing(claimed, (place.slots // place.count,) * place.count))
            continue
        if blocked or not in_time:
            continue
        offer = place.listing.offer
        if not to_be_had(state, offer):
            denied = denied or f"{offer} was denied just now, or costs more than on demand"
            continue
        held_s = payable_s(state, offer, missing)
        if held_s is None:
            unpaid = unpaid or f"{show_usd(max(0.0, free_usd(state)))} does not pay {place} any more"
            continue
        yield from _make_room(state, supply, missing)
        price = f"${state.usd_per_hour(offer):.4f}/h, for the next job"
        why = price if place.count == 1 else f"for a gang of {place}"
        asked_for = set(state.pending)
        blocked = not (yield from rent_together(state, offer, missing, held_s, why))
        if not blocked:
            for lease in [lease for lease in state.pending if lease not in asked_for]:
                supply.add(state, lease)
            supply.claim(place)
    if denied and RETRY not in state.timers:
        yield try_again(state, denied)
    elif unpaid and not denied and not state.leases:
        yield d.WindDown(why=unpaid)


def _make_room(state: RunView, supply: Supply, missing: int) -> Iterator[d.Decision]:
    """Where no more may be rented: idle machines go that nobody in line so far can use."""
    for lease in [state.leases[lease_id] for lease_id in state.idle]:
        if room(state) >= missing:
            return
        if not has_time(state, lease) or supply.withdraw(lease.offer, lease.id):
            yield d.ReleaseLease(lease=lease.id, why="it makes room for machines of another kind for the next job")
