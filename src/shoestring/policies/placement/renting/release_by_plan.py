"""Release machines as soon as a plan needs them neither in this stage nor in the next.

A search that knows its next stage puts into its trials' tags how many machines are worth keeping. Idle machines beyond
that are released at once; those that the next stage needs are kept while the last trials of this one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import kept_for_moves

KEEP = "keep"
"""Tag of a trial: how many machines of its stage the next stage needs."""


@dataclass(frozen=True)
class AsPlanned:
    """Comes after a placement that rents, in the same chain."""

    wants: ClassVar[frozenset[Waker]] = frozenset({e.LeaseGranted, e.SegmentEnded, d.RunJob})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running" or state.waiting or not state.segments:
            return  # a trial may be about to start, or the run is over
        running = state.jobs[next(iter(state.segments.values())).job]
        keep = int(running.tags.get(KEEP) or 0)
        kept = kept_for_moves(state)
        for lease in [lease for lease in state.idle if lease not in kept]:
            if state.in_hand <= keep:
                return
            yield d.ReleaseLease(
                lease=lease, why=f"idle: no trial is left for it, and the next stage needs only {keep} machines"
            )
