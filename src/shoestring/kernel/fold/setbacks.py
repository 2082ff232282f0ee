"""Requests that gave no machine to work on: denied, preempted before user code ran, or given back unused.

Counted in rounds: what was requested before the first answer of a round belongs to that round, so a hundred machines
that are denied together are one setback and not a hundred.
"""

from __future__ import annotations

from typing import Literal

from shoestring.kernel.records import GivenBack, Lease, Segment, Setback
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Denial


def note_setback(state: RunState, lease: Lease, why: Denial | Literal["preempted"], at: float) -> None:
    """Not a request that waited in a queue for all of its time: that was pause enough."""
    if lease.granted_at is None and at >= lease.end_by:
        return
    before = state.setbacks.get(lease.offer)
    if before is None:
        state.setbacks[lease.offer] = Setback(why=why, at=at, round_at=at)
        return
    before.why, before.at = why, at
    if lease.requested_at >= before.round_at:
        before.round_at = at
        before.rounds += 1


def count_given_back(state: RunState, lease: Lease, at: float) -> None:
    """A machine was up and ran nothing, although trials waited: not the market's doing."""
    given_back = state.given_back
    given_back.machines += 1
    if lease.requested_at >= given_back.round_at:
        given_back.round_at = at
        given_back.rounds += 1


def note_start(state: RunState, segment: Segment) -> None:
    """User code runs on these machines."""
    if state.given_back.machines:
        state.given_back = GivenBack()
    for lease_id in segment.leases:
        lease = state.leases.get(lease_id)
        if lease is not None:
            lease.ran = True
            state.setbacks.pop(lease.offer, None)


def forget_setbacks(state: RunState) -> None:
    """The user has looked at the run: it may try again at once."""
    state.setbacks.clear()
    state.given_back = GivenBack()
