"""InlineHost: the `TrialHost` of a trial in the controller's own process. One event per report, nothing more."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path

from shoestring.kernel.decisions import StartSegment
from shoestring.kernel.events import CheckpointSaved, Event, JobReported, SnapshotReported
from shoestring.kernel.types import Metrics, SegmentCause
from shoestring.storage.checkpoints.directory import CheckpointStore
from shoestring.worker.hosts import Keeper
from shoestring.worker.task import LOG
from shoestring.world.live.clock import RunClock


class MachineGone(BaseException):
    """Unwinds user code whose machine is gone. Not an Exception: user code must not catch it."""

    def __init__(self, cause: SegmentCause, detail: str) -> None:
        super().__init__(detail)
        self.cause: SegmentCause = cause
        self.detail = detail


class InlineHost:
    def __init__(
        self,
        start: StartSegment,
        clock: RunClock,
        out: list[Event],
        store: CheckpointStore,
        *,
        run_dir: Path,
        last_step: int | None,
        leave_at: float,
        gone_at: float,
        limit_at: float,
        save_every_s: float,
    ) -> None:
        self._start = start
        self._now = clock.now
        self._clock = clock
        self._out = out
        self._store = store
        self._keeper: Keeper | None = None
        self._run_dir = run_dir
        self._last_step = last_step
        """None: unknown. The first save of a segment is then due: it may be the only one."""
        began = clock.now()
        self._leave_at = leave_at
        self._end_at = min(gone_at, limit_at)
        self.gone_at = gone_at
        self._save_every_s = save_every_s
        self._saved_at = began if save_every_s < math.inf else 0.0
        self.step = self._saved_step = 0 if start.resume_from is None else start.resume_from.step

    @property
    def scratch(self) -> Path:
        """The segment's folder; created only if there is something to put in it."""
        return self._run_dir / "segments" / self._start.segment

    @property
    def log_path(self) -> Path:
        return self.scratch / LOG

    def leaving(self) -> bool:
        now = self._now()
        if now >= self._end_at:
            if now >= self.gone_at:
                raise MachineGone("lost", "its machine ended before it stopped")
            raise MachineGone("overran", f"still running after its time limit of {self._start.time_limit_s:.3g} s")
        return now >= self._leave_at

    def save_due(self, step: int) -> bool:
        if step == self._saved_step:
            return False
        last = self._last_step
        if (self._keeper is None if last is None else step >= last) or self.leaving():
            return True
        return self._save_every_s < math.inf and self._now() - self._saved_at >= self._save_every_s

    def reported(self, step: int, metrics: Metrics) -> None:
        start = self._start
        self.step = step
        self._out.append(JobReported(at=self._now(), segment=start.segment, job=start.job, step=step, metrics=metrics))

    def snapshot(self, step: int, fraction: float, metrics: Metrics) -> None:
        segment, job = self._start.segment, self._start.job
        self._out.append(
            SnapshotReported(at=self._now(), segment=segment, job=job, step=step, fraction=fraction, metrics=metrics)
        )

    def folder(self) -> Path:
        path = self.scratch / "saving"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def saved(self, step: int, folder: Path, began: float) -> None:
        start = self._start
        if self._keeper is None:
            self._keeper = Keeper(self._store, start.job, start.segment)
        ref = self._keeper.put(step, folder)
        took_s = (time.monotonic() - began) * self._clock.speedup
        now = self._now()
        self._out.append(
            CheckpointSaved(at=now, segment=start.segment, job=start.job, step=step, ref=ref, took_s=took_s)
        )
        self._keeper.thin_out()
        self._saved_step, self._saved_at = step, now

    def restore(self) -> Path | None:
        ref = self._start.resume_from
        if ref is None:
            return None
        path = self.scratch / "checkpoint"
        shutil.rmtree(path, ignore_errors=True)
        self._store.get(ref, path)
        return path

    def log(self, text: str) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("a", encoding="utf-8") as log:
            log.write(text)

    def close(self) -> None:
        """Leave no copy of a checkpoint behind. The common case, no checkpoint at all, touches no disk."""
        if self._start.resume_from is None and self._keeper is None:
            return
        shutil.rmtree(self.scratch / "checkpoint", ignore_errors=True)
        try:
            self.scratch.rmdir()
        except OSError:
            pass  # a log is in it, or it was never made
