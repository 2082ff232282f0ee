"""WorkerSegment: one attempt at a trial, as a backend sees it: its folder, its worker and its events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoestring.backends.orders import Worker
from shoestring.kernel.events import (
    CheckpointLost,
    CheckpointSaved,
    Event,
    JobReported,
    SegmentEnded,
    SegmentStarted,
    SnapshotReported,
)
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.storage.checkpoints.folder_copy import make_folder
from shoestring.worker.outbox import AnyLine, Ended, GaveBack, Reported, Saved, SnapshotLine, Started, Tail, Unsaved
from shoestring.worker.task import CONTROL, OUTBOX, TASK, Control, Task, read_json, write_json
from shoestring.world.live.clock import RunClock


class WorkerSegment:
    def __init__(self, folder: Path, task: Task, clock: RunClock, worker: Worker) -> None:
        self.task = task
        self.id: SegmentId = task.segment
        self.leases = tuple(LeaseId(lease) for lease in task.leases)
        self.worker = worker
        self.over = False
        """Its end has been reported."""
        self.gave_back = False
        self.last_at = -1e18
        """The time of its latest event."""
        self._folder = folder
        self._clock = clock
        self._tail = Tail(folder / OUTBOX)
        self._step = 0 if task.resume_from is None else task.resume_from.step
        self._control: Control | None = None

    def prepare(self, control: Control) -> None:
        """The task is written last: a folder without one was never started."""
        make_folder(self._folder)
        self.replace_control(control)
        write_json(self._folder / TASK, self.task)

    @property
    def control(self) -> Control:
        return self.read_control() if self._control is None else self._control

    def read_control(self) -> Control:
        self._control = read_json(self._folder / CONTROL, Control)
        return self._control

    def replace_control(self, control: Control) -> None:
        write_json(self._folder / CONTROL, control)
        self._control = control

    def update_control(self, **changes: object) -> None:
        """Change the worker's orders."""
        control = msgspec.structs.replace(self.control, **changes)
        if control != self._control:
            self.replace_control(control)

    def kill(self) -> None:
        """End it now. A worker that is still starting finds in the control file that its time is over."""
        if not self.over:
            self.update_control(end_by=min(self.control.end_by, self._clock.wall_now()))
        self.worker.kill()

    def new_events(self, no_later_than: float) -> Iterator[Event]:
        """What the worker has reported since the last call. No event is later than the end of its machine."""
        for line in self._tail.read():
            self.last_at = max(self.last_at, min(self._clock.at(line.wall), no_later_than))
            event = None if self._is_doubtful(line) else self._event(line)
            if event is not None:
                yield event
            if self.over:
                return

    def _is_doubtful(self, line: AnyLine) -> bool:
        return self.worker.doubts_failures and isinstance(line, Ended) and line.cause == "failed"

    def _event(self, line: AnyLine) -> Event | None:
        at, segment, job = self.last_at, self.id, self.task.job
        match line:
            case Reported(step=step):
                self._step = max(self._step, step)
                return JobReported(at=at, segment=segment, job=job, step=step, metrics=line.numbers())
            case SnapshotLine(step=step, fraction=fraction):
                metrics = line.numbers()
                return SnapshotReported(at=at, segment=segment, job=job, step=step, fraction=fraction, metrics=metrics)
            case Saved(step=step, ref=ref, took_s=took_s):
                self._step = max(self._step, step)
                took_market_s = took_s * self._clock.speedup
                return CheckpointSaved(at=at, segment=segment, job=job, step=step, ref=ref, took_s=took_market_s)
            case Started():
                return SegmentStarted(at=at, segment=segment)
            case Unsaved(ref=ref, detail=detail):
                return CheckpointLost(at=at, job=job, ref=ref, detail=detail)
            case Ended(step=step, cause=cause, detail=detail):
                self._close()
                return SegmentEnded(at=at, segment=segment, step=step, cause=cause, detail=detail)
            case GaveBack():
                self.gave_back = True
        return None

    def end_other_ranks(self) -> None:
        """Rank 0 has ended: so do the others, where they have supervisors of their own."""
        if self.worker.supervisors > 1:
            self.update_control(end_by=min(self.control.end_by, self._clock.wall_now()))
            self.worker.kill()

    def lost(self, at: float, detail: str) -> SegmentEnded:
        """Its machine is gone, and it could not report its last step."""
        self._close()
        return SegmentEnded(at=max(at, self.last_at), segment=self.id, step=self._step, cause="lost", detail=detail)

    def died(self, at: float) -> SegmentEnded:
        """Its machine is still up, so the failure is its own. If a supervisor elsewhere still runs, it ends now."""
        self.update_control(end_by=min(self.control.end_by, self._clock.wall_now()))
        self._close()
        at = max(at, self.last_at)
        detail = self.worker.exit_reason()
        return SegmentEnded(at=at, segment=self.id, step=self._step, cause="failed", detail=detail)

    def _close(self) -> None:
        self.over = True
        self._tail.close()
