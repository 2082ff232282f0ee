"""The `TrialHost`s of worker processes. Rank 0 checks for notices and orders between steps, and saves when due; the
other workers of a gang follow it until they are ended with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import deque
from pathlib import Path

from shoestring.kernel.types import CheckpointRef, JobId, Metrics, SegmentId
from shoestring.storage.checkpoints.directory import CheckpointStore
from shoestring.worker.containment import end_children
from shoestring.worker.outbox import Outbox, Saved
from shoestring.worker.task import Inbox, Task

KEEP = 3
"""More than a controller keeps of a job (two by default): what the worker drops is no longer needed."""


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
        """Drop its own oldest. Called once the newest has been reported, so that the controller knows a newer one."""
        while len(self._made) > KEEP:
            self._store.drop(self._made.popleft())


class WorkerHost:
    """The host of rank 0: the outbox, the store, and the control file."""

    def __init__(self, task: Task, folder: Path, outbox: Outbox, store: CheckpointStore) -> None:
        self._task = task
        self._folder = folder
        self._outbox = outbox
        self._inbox = Inbox(folder)
        self._keeper = Keeper(store, task.job, task.segment)
        self._supervisor = os.getppid()
        self._must_leave = False
        self._saved_step = 0 if task.resume_from is None else task.resume_from.step
        self._saved_at = time.monotonic()
        self._saves_made = 0
        self._saves = 0
        """Of this segment. Where no step is known to be the last, the first save is due: it may be the only one."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])  # blocked since the fork: none was missed

    def _on_sigterm(self, *_: object) -> None:
        self._must_leave = True

    def leaving(self) -> bool:
        _end_if_orphaned(self._supervisor)
        return self._must_leave or self._outbox.now() >= self._inbox.read().leave_at()

    def save_due(self, step: int) -> bool:
        if step == self._saved_step:
            return False
        control, last = self._inbox.read(), self._task.last_step
        return (
            (self._saves == 0 if last is None else step >= last)
            or control.saves_asked > self._saves_made
            or (control.save_every_s is not None and time.monotonic() - self._saved_at >= control.save_every_s)
            or self.leaving()
        )

    def reported(self, step: int, metrics: Metrics) -> None:
        self._outbox.report(step, metrics)

    def snapshot(self, step: int, fraction: float, metrics: Metrics) -> None:
        self._outbox.snapshot(step, fraction, metrics)

    def folder(self) -> Path:
        return _fresh(self._folder / "saving")

    def saved(self, step: int, folder: Path, began: float) -> None:
        requested = self._inbox.read().saves_asked
        ref = self._keeper.put(step, folder)
        now = time.monotonic()
        self._outbox.write(Saved(wall=self._outbox.now(), step=step, ref=ref, took_s=now - began))
        self._keeper.thin_out()
        self._saved_step, self._saved_at, self._saves_made = step, now, requested
        self._saves += 1


class FollowerHost:
    """The host of the other ranks. They never leave by themselves: rank 0 may need them to finish its step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._supervisor = os.getppid()
        signal.signal(signal.SIGTERM, lambda *_: None)  # not ignored: what user code starts would ignore it as well
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def leaving(self) -> bool:
        _end_if_orphaned(self._supervisor)
        return False

    def save_due(self, step: int) -> bool:  # noqa: ARG002
        return False

    def reported(self, step: int, metrics: Metrics) -> None:
        """Rank 0 reports the same."""

    def snapshot(self, step: int, fraction: float, metrics: Metrics) -> None:
        """Rank 0 reports the same."""

    def folder(self) -> Path:
        """For a program that reports a checkpoint anyway."""
        return _fresh(self._folder / "saving")

    def saved(self, step: int, folder: Path, began: float) -> None:
        """Rank 0 saves the same."""


def _end_if_orphaned(supervisor: int) -> None:
    if os.getppid() != supervisor:
        end_children()
        os.killpg(os.getpgrp(), signal.SIGKILL)  # no supervisor is left to end us on time


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
