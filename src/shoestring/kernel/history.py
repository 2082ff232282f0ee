"""What is already recorded: which events were seen, which decisions may not have been carried out.

Reports are most of the traffic, so their keys are not kept: a report of an open segment is identified by its step, and
any report of an ended segment is a duplicate. Memory then grows with machines and jobs, not with reports.
"""

from __future__ import annotations

import msgspec

from shoestring.kernel.decisions import Decision
from shoestring.kernel.events import Event, JobReported, SegmentEnded
from shoestring.kernel.types import SegmentId


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One turn: what happened and what was decided. `meta` (measured times) is outside the fold."""

    seq: int
    event: Event
    decisions: tuple[Decision, ...]
    meta: dict[str, float] = {}


class RecordedEvents:
    """The keys of all recorded events, and the entries a restarted world needs to resume its work."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        """Filled while replaying only: an attached world has read them, and a long run must not keep them."""
        self._keys: set[str] = set()
        self._steps: dict[SegmentId, set[int]] = {}
        self._ended: set[SegmentId] = set()

    def is_new(self, event: Event) -> bool:
        """Is this event not recorded yet? Records it as seen."""
        if type(event) is JobReported:
            segment = event.segment
            steps = self._steps.get(segment)
            if steps is None:
                if segment in self._ended:
                    return False
                self._steps[segment] = {event.step}
                return True
            known = len(steps)
            steps.add(event.step)
            return len(steps) > known
        key = event.key
        if key in self._keys:
            return False
        self._keys.add(key)
        if type(event) is SegmentEnded:
            self._ended.add(event.segment)
            self._steps.pop(event.segment, None)
        return True

    def replayed(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.is_new(entry.event)

    def forget_entries(self) -> None:
        self.entries.clear()
