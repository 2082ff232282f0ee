"""Putting checkpoints away. A segment keeps the newest few it made: the disk must not fill while nobody controls."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from shoestring.kernel.types import CheckpointRef, JobId, SegmentId
from shoestring.storage.checkpoints.directory import CheckpointStore

KEEP = 3
"""More than a controller keeps of a job (two by default): what the worker drops, nobody counts on any more."""


class Keeper:
    """The checkpoints of one segment. The one it was resumed from is not its own, and never dropped here."""

    def __init__(self, store: CheckpointStore, job: JobId, segment: SegmentId) -> None:
        self._store = store
        self._job = job
        self._segment = segment
        self._made: deque[CheckpointRef] = deque()

    def put(self, step: int, folder: Path) -> CheckpointRef:
        ref = self._store.put(self._job, step, folder, segment=self._segment)
        self._made.append(ref)
        return ref

    def thin_out(self) -> None:
        """Drop its own oldest. Called once the newest has been told of, so that somebody knows a newer one."""
        while len(self._made) > KEEP:
            self._store.drop(self._made.popleft())
