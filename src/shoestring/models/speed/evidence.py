"""What all trials together have told of the speed of machines, as sums that a new pace changes in place.

The sums are whole numbers of tiny units. Taking a trial's old word out and putting its new one in then leaves exactly
what counting everybody afresh would give, in whatever order: what is remembered cannot drift from what is derived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoestring.kernel.records import Job, Pace, Segment
from shoestring.kernel.types import JobId, SegmentId
from shoestring.kernel.view import RunView

Where = tuple[str, int]
"""A machine type and how many of its slots: what `Job.paces` is kept by. Zones and prices do not train."""
_UNITS = 2**48
"""Finer than any float that comes in, and no sum is too large for a whole number."""


class TrialEvidence(NamedTuple):
    """What one trial reported, as normal observations."""

    wheres: tuple[Where, ...]
    logs: tuple[float, ...]
    """Of its seconds per step, as multiples of the guess."""
    inverse: tuple[tuple[float, ...], ...]
    """Of the covariance of what the shared unknowns leave open: the trial's own speed, pairs and noise."""


class Evidence:
    """Sums over trials: of the inverse covariances, and of those times the logarithms."""

    def __init__(self, all_told: Iterable[TrialEvidence] = ()) -> None:
        self._trials: Counter[Where] = Counter()
        self._inverse: Counter[tuple[Where, Where]] = Counter()
        self._pull: Counter[Where] = Counter()
        for told in all_told:
            self.add(told)

    def add(self, told: TrialEvidence, sign: int = 1) -> None:
        """`sign` -1 takes it back."""
        for where, row in zip(told.wheres, told.inverse, strict=True):
            self._trials[where] += sign
            pull = sum(weight * log for weight, log in zip(row, told.logs, strict=True))
            self._pull[where] += sign * round(pull * _UNITS)
            for other, weight in zip(told.wheres, row, strict=True):
                self._inverse[where, other] += sign * round(weight * _UNITS)

    @property
    def wheres(self) -> list[Where]:
        """Where any trial was seen, in a fixed order."""
        return sorted(where for where, trials in self._trials.items() if trials)

    def sums(self) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """A row and a column for each of `wheres`."""
        wheres = self.wheres
        inverse = [[self._inverse[one, other] / _UNITS for other in wheres] for one in wheres]
        pull = [self._pull[where] / _UNITS for where in wheres]
        return np.array(inverse).reshape(len(wheres), len(wheres)), np.array(pull)


def paces_of(job: Job, segments: Mapping[SegmentId, Segment]) -> dict[Where, Pace]:
    """All that a trial has reported about its speed, with what its open segment adds."""
    paces = {where: Pace(pace.steps, pace.seconds) for where, pace in job.paces.items()}
    if job.segment is not None:
        segment = segments[job.segment]
        before = paces.get((segment.machine, segment.slots), Pace())
        now = segment.pace
        paces[segment.machine, segment.slots] = Pace(before.steps + now.steps, before.seconds + now.seconds)
    return {where: pace for where, pace in paces.items() if pace.steps > 0 and pace.seconds > 0}


class ReportsSoFar:
    """The evidence of a run, brought up to date by those trials alone whose paces may have changed: a study of ten
    thousand trials is asked about thousands of times. A memo of the run's state, see `RunView.memo`."""

    def __init__(self, read: Callable[[Mapping[Where, Pace]], TrialEvidence | None]) -> None:
        self.evidence = Evidence()
        self._read = read
        self._told: dict[JobId, TrialEvidence] = {}
        self._rests_read = 0
        self._running: set[JobId] = set()

    def read_on(self, view: RunView) -> None:
        """A pace grows while a segment is open, and is kept when it closes. The job then waits, or has come to rest
        since the last look, or was no longer wanted and still running at that time."""
        running = {segment.job for segment in view.segments.values()}
        rested = {rest.job for rest in view.settled[self._rests_read :]}
        waiting = {job for job in view.waiting if view.jobs[job].paces}
        for job in running | self._running | rested | waiting:
            self._replace(job, self._read(paces_of(view.jobs[job], view.segments)))
        self._rests_read, self._running = len(view.settled), running

    def _replace(self, job: JobId, told: TrialEvidence | None) -> None:
        before = self._told.pop(job, None)
        if told is not None:
            self._told[job] = told
        if told != before:
            if before is not None:
                self.evidence.add(before, -1)
            if told is not None:
                self.evidence.add(told)
