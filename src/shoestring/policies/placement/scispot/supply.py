"""Machines for jobs whose offer and number of machines are chosen: those held or pending are assigned in the order in
which jobs wait, missing ones are rented.

A gang starts when all of its machines are up, so they are rented together or not at all. No job overtakes one whose
machines may not be rented yet, or single-machine jobs would take each that becomes free, and a gang would never start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shoestring.kernel import decisions as d
from shoestring.kernel.types import LeaseId, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.allocations import allocation_of, launched_once
from shoestring.policies.placement.renting.assign import RETRY, start_on
from shoestring.policies.placement.renting.breaker import renting_stopped
from shoestring.policies.placement.renting.facts import free_usd, setbacks_of, try_again
from shoestring.policies.placement.renting.least_time import has_time, least_lease_s
from shoestring.policies.placement.renting.packing import Packing
from shoestring.policies.placement.renting.rent_gang import is_available, payable_s, rent_together, room
from shoestring.policies.placement.scispot.candidates import Place, chosen_place
from shoestring.units import show_usd


@dataclass
class Supply:
    """Unclaimed slots: on machines that are up, then on pending ones."""

    worker: int
    _free: dict[Offer, dict[LeaseId, int]] = field(default_factory=dict)
    _allocations: dict[LeaseId, tuple[LeaseId, ...]] = field(default_factory=dict)
    """Of programs that are launched once: the whole allocation of each lease."""

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
            if launched_once(state):
                self._allocations[lease_id] = allocation_of(state, lease)

    @property
    def is_used_up(self) -> bool:
        return not self._free

    def has(self, place: Place) -> bool:
        """Are all machines free that a job there needs?"""
        return len(self._fitting(place)) == place.count

    def has_some(self, place: Place) -> bool:
        return bool(self._fitting(place))

    def missing(self, place: Place) -> int:
        """Machines that would have to be rented."""
        return place.count - len(self._fitting(place))

    def claim(self, place: Place) -> tuple[LeaseId, ...]:
        """Reserve for a job what is free there."""
        claimed = self._fitting(place)
        free = self._free.get(place.listing.offer, {})
        for lease in claimed:
            free[lease] -= place.slots // place.count
            if not free[lease]:
                self.withdraw(place.listing.offer, lease)
        return claimed

    def withdraw(self, offer: Offer, lease: LeaseId) -> bool:
        """Remove a lease. False if none of its slots was unclaimed."""
        free = self._free.get(offer, {})
        found = free.pop(lease, None) is not None
        if found and not free:
            del self._free[offer]
        return found

    def _fitting(self, place: Place) -> tuple[LeaseId, ...]:
        """Whole machines for a gang; for a single job, the first with room. All or nothing of an allocation."""
        free = self._free.get(place.listing.offer, {})
        each = place.slots // place.count
        fitting = [lease for lease in free if (free[lease] == each if place.count > 1 else free[lease] >= each)]
        if not self._allocations:
            return tuple(fitting[: place.count])
        whole = (leases for lease in fitting if set(leases := self._allocations[lease]) <= {*fitting})
        return next((leases for leases in whole if len(leases) == place.count), ())


def provide(state: RunView) -> Iterator[d.Decision]:
    """Start jobs whose machines are up, and rent what the others lack."""
    supply = Supply.of(state)
    in_time = state.deadline_at - state.now >= least_lease_s(state) and not renting_stopped(state)
    denied: dict[Offer, None] = {}
    unpaid = ""
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
        if not is_available(state, offer):
            denied[offer] = None
            continue
        held_s = payable_s(state, offer, missing)
        if held_s is None:
            unpaid = unpaid or f"{show_usd(max(0.0, free_usd(state)))} left in the budget cannot pay {place}"
            continue
        yield from _make_room(state, supply, missing)
        price = f"${state.usd_per_hour(offer):.4f}/h, for the next job"
        why = price if place.count == 1 else f"for a gang of {place}"
        pending_before = set(state.pending)
        blocked = not (yield from rent_together(state, offer, missing, held_s, why))
        if not blocked:
            for lease in [lease for lease in state.pending if lease not in pending_before]:
                supply.add(state, lease)
            supply.claim(place)
    if denied and RETRY not in state.timers:
        yield try_again(state, setbacks_of(state, denied), denied)
    elif unpaid and not denied and not state.leases:
        yield d.WindDown(reason="out_of_budget", why=unpaid)


def _make_room(state: RunView, supply: Supply, missing: int) -> Iterator[d.Decision]:
    """Where no more may be rented, release idle machines that no job so far in the queue can use."""
    for lease in [state.leases[lease_id] for lease_id in state.idle]:
        if room(state) >= missing:
            return
        if not has_time(state, lease) or supply.withdraw(lease.offer, lease.id):
            yield d.ReleaseLease(
                lease=lease.id, why="released to make room for machines of another type, for the next job"
            )
