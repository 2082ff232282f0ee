"""The evidence of all trials on the speed of machines, as sums that are updated in place with every new pace.

The sums are whole numbers of tiny units. Subtracting a trial's old evidence and adding its new one then gives exactly
what a fresh count would give, in whatever order: the cached sums cannot drift from the derived ones.
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
"""A machine type and how many of its slots: the key of `Job.paces`. Zones and prices have no effect on speed."""
_UNITS = 2**48
"""Finer than the precision of the inputs; Python integers do not overflow."""


class TrialEvidence(NamedTuple):
    """What one trial reported, as normal observations."""

    wheres: tuple[Where, ...]
    logs: tuple[float, ...]
    """ln(seconds per step / prior guess)."""
    inverse: tuple[tuple[float, ...], ...]
    """Of the covariance that the shared unknowns do not explain: the trial's own speed, pairs and noise."""


class Evidence:
    """Sums over trials: of the inverse covariances, and of those times the logarithms."""

    def __init__(self, observations: Iterable[TrialEvidence] = ()) -> None:
        self._trials: Counter[Where] = Counter()
        self._inverse: Counter[tuple[Where, Where]] = Counter()
        self._pull: Counter[Where] = Counter()
        for observed in observations:
            self.add(observed)

    def add(self, observed: TrialEvidence, sign: int = 1) -> None:
        """`sign` -1 subtracts it."""
        for where, row in zip(observed.wheres, observed.inverse, strict=True):
            self._trials[where] += sign
            pull = sum(weight * log for weight, log in zip(row, observed.logs, strict=True))
            self._pull[where] += sign * round(pull * _UNITS)
            for other, weight in zip(observed.wheres, row, strict=True):
                self._inverse[where, other] += sign * round(weight * _UNITS)

    @property
    def wheres(self) -> list[Where]:
        """Where any trial was observed, in a fixed order."""
        return sorted(where for where, trials in self._trials.items() if trials)

    def sums(self) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """A row and a column for each of `wheres`."""
        wheres = self.wheres
        inverse = [[self._inverse[one, other] / _UNITS for other in wheres] for one in wheres]
        pull = [self._pull[where] / _UNITS for where in wheres]
        return np.array(inverse).reshape(len(wheres), len(wheres)), np.array(pull)


def paces_of(job: Job, segments: Mapping[SegmentId, Segment]) -> dict[Where, Pace]:
    """All that a trial has reported about its speed, its open segment included."""
    paces = {where: Pace(pace.steps, pace.seconds) for where, pace in job.paces.items()}
    if job.segment is not None:
        segment = segments[job.segment]
        before = paces.get((segment.machine, segment.slots), Pace())
        now = segment.pace
        paces[segment.machine, segment.slots] = Pace(before.steps + now.steps, before.seconds + now.seconds)
    return {where: pace for where, pace in paces.items() if pace.steps > 0 and pace.seconds > 0}


class ReportsSoFar:
    """The evidence of a run, updated only for those trials whose paces may have changed: a study of ten thousand
    trials is evaluated thousands of times. A memo of the run's state, see `RunView.memo`."""

    def __init__(self, read: Callable[[Mapping[Where, Pace]], TrialEvidence | None]) -> None:
        self.evidence = Evidence()
        self._read = read
        self._observed: dict[JobId, TrialEvidence] = {}
        self._settled_read = 0
        self._running: set[JobId] = set()

    def read_on(self, view: RunView) -> None:
        """A pace grows while a segment is open, and is kept when it closes. The job then waits, or has settled since
        the last call, or was settled but still running at that time."""
        running = {segment.job for segment in view.segments.values()}
        settled = {entry.job for entry in view.settled[self._settled_read :]}
        waiting = {job for job in view.waiting if view.jobs[job].paces}
        for job in running | self._running | settled | waiting:
            self._replace(job, self._read(paces_of(view.jobs[job], view.segments)))
        self._settled_read, self._running = len(view.settled), running

    def _replace(self, job: JobId, observed: TrialEvidence | None) -> None:
        before = self._observed.pop(job, None)
        if observed is not None:
            self._observed[job] = observed
        if observed != before:
            if before is not None:
                self.evidence.add(before, -1)
            if observed is not None:
                self.evidence.add(observed)
