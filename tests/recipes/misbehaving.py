"""Policies as they must not be, for the suite to catch."""

from __future__ import annotations

import time

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e


class Writes:
    wants = frozenset({e.LeaseGranted})

    def decide(self, state, event):
        state.leases[event.lease].end_by += 3600.0
        return ()


class Remembers:
    wants = frozenset({e.SegmentEnded})

    def __init__(self) -> None:
        self.seen = 0

    def decide(self, state, event):  # noqa: ARG002
        self.seen += 1
        if self.seen == 3:
            yield d.WakeAt(name="third", at=state.now + 1.0, why="three segments have ended")


class AsksTheClock:
    wants = frozenset({e.SegmentEnded})

    def decide(self, state, event):  # noqa: ARG002
        if time.time() < 0:
            yield d.WindDown(reason="completed", why="too early")
