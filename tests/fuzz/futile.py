"""What a run does again and again without getting anywhere: waiting, starting, renting. Bounded, whatever is requested.

Preemptions and failures of user code are not the run's doing: attempts that end so do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry

MOST_WAITS, MOST_WAITS_PER_OFFER_AND_HOUR = 200, 6.0
"""Moments in a row in which nothing comes of anything: after a while, a look every ten minutes is enough."""
MOST_STARTS = 12
"""Of one trial in a row without a step."""
MOST_LEASES = 8
"""One after the other that ran no segment."""


def futile(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    yield from chain(_waits(entries), _starts(entries), _leases(entries))


def _waits(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Denials and, while nothing runs, timers. Machines requested together are denied together, and count once."""
    since, waits, last = 0.0, 0, 0.0
    per_hour = MOST_WAITS_PER_OFFER_AND_HOUR * len(entries[0].event.spec.listings)
    running: set[str] = set()
    for entry in entries:
        at = entry.event.at
        match entry.event:
            case e.LeaseDenied():
                waits += at > last
            case e.TimerFired():
                waits += at > last and not running
            case other:
                since, waits = at, 0
                if isinstance(other, e.SegmentEnded):
                    running.discard(other.segment)
        last = at
        running.update(decision.segment for decision in entry.decisions if isinstance(decision, d.StartSegment))
        if waits > MOST_WAITS + per_hour * (at - since) / 3600:
            yield "waits", f"{waits} timers and denials in a row, in {at - since:.0f} s: {_last_why(entry)}"
            return


def _last_why(entry: Entry) -> str:
    return entry.decisions[-1].why if entry.decisions else repr(entry.event)


def _starts(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    trial_of: dict[str, str] = {}
    leases_of: dict[str, tuple[str, ...]] = {}
    preempted_at = _preempted_at(entries)
    in_a_row: dict[str, int] = {}
    most = 0
    for entry in entries:
        match entry.event:
            case e.JobReported(job=job) | e.SnapshotReported(job=job):
                in_a_row[job] = 0
            case e.SegmentEnded(at=at, segment=segment, cause="halted" | "lost"):
                job = trial_of[segment]
                if all(at < preempted_at.get(lease, math.inf) for lease in leases_of[segment]):
                    in_a_row[job] = in_a_row.get(job, 0) + 1
                    most = max(most, in_a_row[job])
            case _:
                pass
        for decision in entry.decisions:
            if isinstance(decision, d.StartSegment):
                trial_of[decision.segment] = decision.job
                leases_of[decision.segment] = decision.leases
    if most > MOST_STARTS:
        yield "starts", f"a trial was started {most} times in a row without a step ({len(trial_of)} starts in all)"


def _preempted_at(entries: Sequence[Entry]) -> dict[str, float]:
    """When each lease had its notice, or without one was gone: what runs on it ends an entry before."""
    found: dict[str, float] = {}
    for entry in entries:
        match entry.event:
            case e.RevocationNoticed(at=at, lease=lease) | e.LeaseEnded(at=at, lease=lease, cause="revoked"):
                found.setdefault(lease, at)
            case _:
                pass
    return found


def _leases(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Each lease of the row was requested after the one before had ended: machines rented together count once. A
    segment that starts ends the row, also for machines that are on their way."""
    position: dict[str, int] = {}
    granted: set[str] = set()
    row = most = 0
    used: set[str] = set()
    for entry in entries:
        match entry.event:
            case e.LeaseGranted(lease=lease):
                granted.add(lease)
            case e.LeaseEnded(lease=lease, cause=cause) if lease in granted - used and cause != "revoked":
                row = max(row, position.get(lease, 1))
                most = max(most, row)
            case _:
                pass
        for decision in entry.decisions:
            if isinstance(decision, d.RequestLease):
                position[decision.lease] = row + 1
            elif isinstance(decision, d.StartSegment):
                used.update(decision.leases)
                row = 0
                position.clear()
    if most > MOST_LEASES:
        yield "leases", f"{most} leases in a row ran no segment ({len(granted)} in all)"
