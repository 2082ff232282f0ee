"""Pack running trials onto fewer machines, so that the others can be released: the cluster shrinks with its work.

Only worth it where the search needs no more machines for now (SEER between two stages, the tail of an elimination); a
search that fills every free slot at once leaves nothing to pack.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Lease, Segment
from shoestring.kernel.types import LeaseId
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.least_time import has_time
from shoestring.policies.placement.renting.packing import zone_of
from shoestring.policies.placement.renting.unfinished_step import moving_grace_s, step_ends_soon

LEAST_LEFT_S = 600.0
"""A move costs a save, a start and a restore. With less time than this to the deadline it would not pay."""


def consolidate(state: RunView) -> Iterator[d.Decision]:
    """Empty the machines with the least on them, as many as fit into gaps on the others. All segments are halted at
    once: each move takes as long as a step, and half-empty machines would be paid for if moves came one by one. Nothing
    is halted while a segment is still stopping: what fits where is known only once its slots are free."""
    if state.waiting or state.pending or len(state.with_free_slots) < 2 or state.deadline_at - state.now < LEAST_LEFT_S:
        return
    if any(segment.halting or segment.id in state.draining for segment in state.segments.values()):
        return
    for lease in _emptied(state):
        for segment in state.segments_on(lease.id):
            yield d.HaltSegment(
                segment=segment.id,
                grace_s=moving_grace_s(state, segment),
                why=f"moved: it fits on another machine, and {lease.id} can be released",
            )


def _emptied(state: RunView) -> list[Lease]:
    used = [lease for lease_id in state.with_free_slots if (lease := state.leases[lease_id]).segments]
    gaps = {lease.id: lease.free_slots for lease in used if has_time(state, lease)}
    emptied = []
    for lease in sorted(used, key=lambda lease: lease.slots - lease.free_slots):
        if gaps.get(lease.id, lease.free_slots) < lease.free_slots:
            continue  # others move here
        filled = _filled(state, lease, gaps)
        if filled is not None:
            gaps = filled
            emptied.append(lease)
    return emptied


def _filled(state: RunView, lease: Lease, gaps: dict[LeaseId, int]) -> dict[LeaseId, int] | None:
    """The gaps on the others once all of this lease's work has moved there, if it fits: largest first, each into the
    smallest gap that takes it, which is what placement will do once they wait."""
    left = {other: free for other, free in gaps.items() if other != lease.id}
    zone = zone_of(lease.offer)
    for segment in sorted(state.segments_on(lease.id), key=lambda segment: -segment.slots):
        fitting = [gap for gap in left if left[gap] >= segment.slots and zone_of(state.leases[gap].offer) == zone]
        if not fitting or not _may_move(state, segment):
            return None
        left[min(fitting, key=lambda gap: left[gap])] -= segment.slots
    return left


def _may_move(state: RunView, segment: Segment) -> bool:
    alone = len(segment.leases) == 1 and state.jobs[segment.job].offer is None
    return alone and step_ends_soon(state, segment)
