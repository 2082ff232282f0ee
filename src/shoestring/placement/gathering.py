"""Gather what is left on fewer machines, so that the others can be given back: a cluster that shrinks with its work.

Only worth it where the search has said all it wants and wants no more machines for now (SEER between two stages, the
tail of an elimination); a search that fills every place at once never leaves anything to gather.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Lease
from shoestring.kernel.view import RunView
from shoestring.placement.matching import on_the_move
from shoestring.placement.seating import has_time, zone_of

LEAST_LEFT_S = 600.0
"""A move costs a save, a start and a restore. With less time than this to the deadline it would not pay."""


def gather(state: RunView) -> Iterator[d.Decision]:
    """Empty the machine with the least on it, if all of that fits into gaps on the others. They are asked one machine
    at a time, and nothing is asked while anything is still on its way."""
    if state.waiting or state.coming or len(state.roomy) < 2 or state.deadline_at - state.now < LEAST_LEFT_S:
        return
    if on_the_move(state):
        return
    lease = _emptied(state)
    if lease is None:
        return
    for segment in state.segments_on(lease.id):
        yield d.HaltSegment(
            segment=segment.id,
            grace_s=state.spec.slice_s,  # no hurry: the step it is in would be lost
            why=f"there is room for it elsewhere, and {lease.id} can be given back then",
        )


def _emptied(state: RunView) -> Lease | None:
    used = [lease for lease_id in state.roomy if (lease := state.leases[lease_id]).segments]
    for lease in sorted(used, key=lambda lease: lease.slots - lease.free_slots):
        others = [other for other in used if other is not lease and has_time(state, other)]
        if _fit(state, lease, others):
            return lease
    return None


def _fit(state: RunView, lease: Lease, others: list[Lease]) -> bool:
    """Largest first, each into the smallest gap that takes it: what placement will do when they come to wait."""
    gaps = {other.id: other.free_slots for other in others if zone_of(other.offer) == zone_of(lease.offer)}
    moved = sorted(state.segments_on(lease.id), key=lambda segment: -segment.slots)
    if any(len(segment.leases) > 1 or state.jobs[segment.job].offer is not None for segment in moved):
        return False
    for segment in moved:
        fitting = [gap for gap in gaps if gaps[gap] >= segment.slots]
        if not fitting:
            return False
        gaps[min(fitting, key=lambda gap: gaps[gap])] -= segment.slots
    return True
