"""Machines, bills and which trial ran where, over time: what plots need and the fold forgets.

One pass over the journal, without a replay. It follows the rule of the fold: an event may arrive late, or about
something already closed, and then changes nothing. Times are seconds since the start of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.types import EndCause, JobId, LeaseId, Offer, SegmentId


@dataclass(slots=True, kw_only=True)
class TrialInterval:
    """One trial on one machine, without interruption."""

    trial: int
    began_s: float
    ended_s: float | None = None


@dataclass(slots=True, kw_only=True)
class Held:
    """A machine, from when it was up."""

    id: LeaseId
    offer: Offer
    began_s: float | None = None
    ended_s: float | None = None
    cause: EndCause | None = None
    """None as long as it is held."""
    charged_usd: float = 0.0
    intervals: list[TrialInterval] = field(default_factory=list)

    @property
    def preempted(self) -> bool:
        """What the receipt counts as a preemption."""
        return self.cause in ("revoked", "lost")


class Chronicle:
    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.now_s = 0.0
        """The time of the last event."""
        self._started_at = 0.0
        self._requested: dict[LeaseId, Held] = {}
        self._running: dict[SegmentId, tuple[TrialInterval, ...]] = {}
        self._numbers: dict[JobId, int] = {}
        for entry in entries:
            self.add(entry)

    def watching(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yields the same entries, recording each on the way: the journal is read only once."""
        for entry in entries:
            self.add(entry)
            yield entry

    def add(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, e.RunStarted):
            self._started_at = event.at
        at_s = max(0.0, event.at - self._started_at)
        self.now_s = max(self.now_s, at_s)
        match event:
            case e.LeaseGranted():
                self._granted(event.lease, at_s)
            case e.LeaseDenied():
                self._requested.pop(event.lease, None)
            case e.SegmentEnded():
                self._stopped(event.segment, at_s)
            case e.LeaseEnded():
                self._ended(event, at_s)
        for decision in entry.decisions:
            match decision:
                case d.AddJob():
                    self._numbers[decision.job] = len(self._numbers)
                case d.RequestLease():
                    self._requested[decision.lease] = Held(id=decision.lease, offer=decision.offer)
                case d.StartSegment():
                    self._started(decision, at_s)

    @property
    def machines(self) -> list[Held]:
        """Every machine that came up, in that order."""
        up = [held for held in self._requested.values() if held.began_s is not None]
        return sorted(up, key=lambda held: held.began_s or 0.0)

    def billed(self) -> list[tuple[float, float]]:
        """(time, total dollars billed) at each bill, from 0 at the start."""
        bills = sorted(
            (held.ended_s, held.charged_usd) for held in self._requested.values() if held.ended_s is not None
        )
        return [(0.0, 0.0), *zip((at for at, _ in bills), accumulate(usd for _, usd in bills), strict=True)]

    def held(self) -> list[tuple[float, int]]:
        """(time, number of machines held) at each change."""
        changes: dict[float, int] = {0.0: 0}
        for machine in self.machines:
            if machine.began_s is not None:
                changes[machine.began_s] = changes.get(machine.began_s, 0) + 1
            if machine.ended_s is not None:
                changes[machine.ended_s] = changes.get(machine.ended_s, 0) - 1
        moments = sorted(changes)
        return list(zip(moments, accumulate(changes[at] for at in moments), strict=True))

    def _granted(self, lease: LeaseId, at_s: float) -> None:
        held = self._requested.get(lease)
        if held is not None and held.cause is None:
            held.began_s = at_s

    def _started(self, order: d.StartSegment, at_s: float) -> None:
        intervals = []
        for lease in order.leases:
            interval = TrialInterval(trial=self._numbers[order.job], began_s=at_s)
            self._requested[lease].intervals.append(interval)
            intervals.append(interval)
        self._running[order.segment] = tuple(intervals)

    def _stopped(self, segment: SegmentId, at_s: float) -> None:
        for interval in self._running.pop(segment, ()):
            if interval.ended_s is None:
                interval.ended_s = at_s

    def _ended(self, event: e.LeaseEnded, at_s: float) -> None:
        held = self._requested.get(event.lease)
        if held is None or held.cause is not None:
            return
        held.ended_s, held.cause, held.charged_usd = at_s, event.cause, event.charged_usd
        for interval in held.intervals:  # LeaseEnded may arrive before SegmentEnded
            if interval.ended_s is None:
                interval.ended_s = at_s
