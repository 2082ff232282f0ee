"""Machines are given back as soon as a plan has no use for them: neither for what runs now nor for the stage after.

A search that knows its next stage says in its trials' tags how many machines are worth keeping. What falls idle beyond
that goes at once; what the next stage needs is kept through the wait for the last of this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView

KEEP = "keep"
"""Tag of a trial: how many machines of its stage the one after it needs."""


@dataclass(frozen=True)
class AsPlanned:
    """Stands beside a placement that rents, after it."""

    wants: ClassVar[frozenset[Waker]] = frozenset({e.LeaseGranted, e.SegmentEnded, d.RunJob})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running" or state.waiting or not state.segments:
            return  # somebody may be about to sit down, or everything is over
        running = state.jobs[next(iter(state.segments.values())).job]
        keep = int(running.tags.get(KEEP) or 0)
        for lease in list(state.idle):
            if state.in_hand <= keep:
                return
            yield d.ReleaseLease(
                lease=lease, why=f"no trial is left for it, and the next stage needs only {keep} machines"
            )
