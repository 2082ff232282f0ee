"""Rent the machines that trials are pinned to, for each trial by itself: a machine for one is of no use to another.

A trial has its machines whole and to itself, all of one offer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.named_machines import count_of
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.policies.placement.renting.breaker import renting_stopped
from shoestring.policies.placement.renting.facts import Bid, free_usd, setbacks_of, try_again
from shoestring.policies.placement.renting.least_time import has_time, least_lease_s
from shoestring.policies.placement.renting.rent_gang import is_available, payable_s, rent_together, room
from shoestring.units import show_usd


def rent_named(state: RunView, bid: Bid) -> Iterator[d.Decision]:
    """In the order in which trials wait. Nothing is rented for trials behind one whose machines may not be rented yet:
    a trial on many machines would wait until all others were done."""
    if state.deadline_at - state.now < least_lease_s(state) or renting_stopped(state):
        return
    free = machines_free(state)
    denied: dict[Offer, None] = {}
    unpaid = ""
    for job in [state.jobs[job_id] for job_id in state.waiting]:
        offer, count = job.offer, count_of(state.spec.space, job.config)
        if offer is None:
            continue
        missing = count - free[offer]
        if missing > 0:
            if not is_available(state, offer):
                denied[offer] = None
                continue
            held_s = payable_s(state, offer, missing, bid)
            if held_s is None:
                unpaid = (
                    unpaid or f"{show_usd(max(0.0, free_usd(state)))} left in the budget cannot pay {count} x {offer}"
                )
                continue
            yield from _make_room(state, free, offer, missing)
            why = f"{missing} more for the next trial, which names them: ${state.usd_per_hour(offer):.4f}/h"
            if not (yield from rent_together(state, offer, missing, held_s, why, bid)):
                break
            free[offer] += missing
        free[offer] -= count
    if denied and RETRY not in state.timers:
        yield try_again(state, setbacks_of(state, denied), denied)
    elif unpaid and not denied and not state.leases:
        yield d.WindDown(reason="out_of_budget", why=unpaid)


def machines_free(state: RunView) -> Counter[Offer]:
    """Machines for waiting trials: idle ones with enough prepaid time, and pending ones."""
    idle = (lease for lease in map(state.leases.__getitem__, state.idle) if has_time(state, lease))
    free = Counter(lease.offer for lease in idle)
    free.update(state.leases[lease].offer for lease in state.pending)
    return free


def _make_room(state: RunView, free: Counter[Offer], offer: Offer, missing: int) -> Iterator[d.Decision]:
    """Where no more may be rented, release idle machines that no trial before this one in the queue can use."""
    for lease in [state.leases[lease_id] for lease_id in state.idle]:
        if room(state) >= missing:
            return
        counted = has_time(state, lease)
        if counted and (lease.offer == offer or free[lease.offer] <= 0):
            continue
        free[lease.offer] -= counted
        yield d.ReleaseLease(lease=lease.id, why=f"released to make room for {offer}, which the next trial names")
