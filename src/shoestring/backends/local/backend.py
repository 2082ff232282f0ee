"""LocalBackend: real processes on this machine, leased from a simulated provider with realistic prices and
revocations: a preempted machine gets a notice, then its processes get SIGKILL, in market time.

Everything it knows is in the run's folder, written before it acts: `leases/<id>/lease.json` and `segments/<id>/`.
Another instance on the same folder, after a kill -9, adopts the running workers, ends what is overdue and reports
every event again from the start.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from shoestring.backends.local.process import WorkerProcess
from shoestring.backends.local.segment import LocalSegment
from shoestring.backends.simulated_lease import LeaseRecord, Provider
from shoestring.kernel.decisions import ExtendLease, PlanSaves, RequestLease, StartSegment
from shoestring.kernel.events import Event
from shoestring.kernel.spec import Code
from shoestring.kernel.types import EndCause, LeaseId, SegmentId
from shoestring.worker.ranks import free_port
from shoestring.worker.task import TASK, Control, Task, read_json, write_json
from shoestring.world.live.clock import RunClock

_LEAD_MARKET_S = 60.0
_LEAST_LEAD_S = 0.25
"""Saving takes real time, however fast the market's clock runs."""
_LEAST_GRACE_S = 0.5
_BEAT_EVERY_S = 1.0


def _arguments(code: Code, folder: Path) -> tuple[str, ...]:
    """The arguments of the user's script, if it is that script that is running here."""
    script = folder / (code.function or "").rpartition(":")[0]
    return tuple(sys.argv) if script.is_file() and Path(sys.argv[0]).resolve() == script.resolve() else ()


class LocalBackend:
    def __init__(
        self,
        run_dir: Path,
        *,
        code: Code,
        provider: Provider,
        clock: RunClock,
        store: Path,
        metric: str | None,
        folder: Path | None = None,
        deadman_s: float = 300.0,
        slots_per_worker: int = 1,
    ) -> None:
        """`store`: root of the checkpoints. `folder`: where user code runs. `deadman_s`: in real seconds.
        `slots_per_worker`: a trial with more slots is a gang of several worker processes."""
        self._run_dir = run_dir.resolve()
        self._code = code
        self._provider = provider
        self._clock = clock
        self._store = store.resolve()
        self._metric = metric
        self._folder = (folder or Path.cwd()).resolve()
        self._deadman_s = deadman_s
        self._slots_per_worker = slots_per_worker
        self._argv = _arguments(code, self._folder)
        self._heartbeat = self._run_dir / "heartbeat"
        self._beaten_at = 0.0
        self._leases: dict[LeaseId, LeaseRecord] = {}
        self._segments: dict[SegmentId, LocalSegment] = {}
        """Those not over; the folders of the others remain, and their outboxes hold the end."""
        self._leaving: list[LocalSegment] = []
        """Those over whose worker process may still be exiting."""
        self._unreported: dict[LeaseId, int] = {}
        """Leases with events still to report, and how many of their events were reported."""
        self._out: list[Event] = []
        for name in ("leases", "segments"):
            (self._run_dir / name).mkdir(parents=True, exist_ok=True)
        self._beat()
        self._take_over()

    def _take_over(self) -> None:
        """Read what an earlier instance left; start the segments it had recorded and not started."""
        for path in sorted((self._run_dir / "leases").glob("*/lease.json")):
            record = read_json(path, LeaseRecord)
            self._leases[record.request.lease] = record
            self._unreported[record.request.lease] = 0
        now = self._clock.now()
        for path in sorted((self._run_dir / "segments").iterdir()):
            if not (path / TASK).exists():
                continue
            segment = self._segment(path, read_json(path / TASK, Task))
            self._segments[segment.id] = segment
            self._read_outbox(segment, now)
            if segment.over:
                continue
            if not self._has_machines(segment):
                segment.kill()
            elif segment.worker.never_started:
                segment.worker.start()

    def _has_machines(self, segment: LocalSegment) -> bool:
        now = self._clock.now()
        return all(lease in self._leases and self._leases[lease].usable(now) for lease in segment.leases)

    # -- machines ------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        if request.lease in self._leases:
            return
        record = LeaseRecord.from_request(self._provider, request, self._clock.now())
        self._write_record(record)
        self._leases[request.lease] = record
        self._unreported[request.lease] = 0

    def extend(self, extension: ExtendLease) -> None:
        record = self._leases.get(extension.lease)
        if record is None or not record.open or record.due()[0] <= self._clock.now():
            return
        record.end_by = max(record.end_by, extension.end_by)
        self._write_record(record)
        for segment in self._on(extension.lease):
            segment.update_control(end_by=self._ends(segment.leases).end_by)

    def release(self, lease: LeaseId) -> None:
        record = self._leases.get(lease)
        if record is None or not record.open:
            return
        now = self._clock.now()
        due, cause = record.due()
        self._end(lease, *((due, cause) if due <= now else (now, "released")))

    def _end(self, lease: LeaseId, at: float, cause: EndCause) -> None:
        """The record first: after a crash here, the next instance finds workers on an ended lease and kills them."""
        record = self._leases[lease]
        record.end(self._provider, at, cause)
        self._write_record(record)
        for segment in self._leaving + self._on(lease):
            if lease in segment.leases:
                segment.kill()

    def inventory(self) -> Iterable[LeaseId]:
        return [lease for lease, record in self._leases.items() if record.open]

    def _write_record(self, record: LeaseRecord) -> None:
        folder = self._run_dir / "leases" / record.request.lease
        folder.mkdir(exist_ok=True)
        write_json(folder / "lease.json", record)

    # -- user code -----------------------------------------------------------------------------------------------------
    def start(self, segment: StartSegment) -> None:
        folder = self._run_dir / "segments" / segment.segment
        if segment.segment in self._segments or (folder / TASK).exists():
            return
        local = self._segment(folder, self._task(segment))
        local.prepare(self._ends(segment.leases))
        self._segments[segment.segment] = local
        if self._has_machines(local):
            local.worker.start()

    def _task(self, segment: StartSegment) -> Task:
        limit = segment.time_limit_s
        machines = tuple(slots // self._slots_per_worker for slots in segment.slots_on)
        return Task(
            segment=segment.segment,
            job=segment.job,
            config=segment.config,
            until_step=segment.until_step,
            slots=segment.slots,
            fraction=segment.fraction,
            fractions=segment.fractions,
            seed=segment.seed,
            resume_from=segment.resume_from,
            function=self._code.function,
            command=self._code.command,
            argv=self._argv,
            folder=str(self._folder),
            store=str(self._store),
            metric=self._metric,
            time_limit_s=None if limit is None else self._clock.real_s(limit),
            heartbeat=str(self._heartbeat),
            deadman_s=self._deadman_s,
            leases=segment.leases,
            workers=sum(machines),
            world_size=sum(machines),
            machines=machines,
            master_port=free_port(),
        )

    def _segment(self, folder: Path, task: Task) -> LocalSegment:
        return LocalSegment(folder, task, self._clock, WorkerProcess(folder))

    def _ends(self, leases: Iterable[LeaseId]) -> Control:
        """When the machines of a segment end, in wall time: its worker obeys it without the controller too."""
        records = [self._leases[lease] for lease in leases if lease in self._leases]
        end_by = min((record.end_by for record in records), default=self._clock.now())
        gone_at = min((record.gone_at for record in records), default=None)
        notices = [record.notice_at for record in records if record.notice_at < record.gone_at]
        return Control(
            end_by=self._clock.wall(end_by),
            notice_at=self._clock.wall(min(notices)) if notices else None,
            gone_at=None if gone_at is None else self._clock.wall(gone_at),
            lead_s=max(_LEAST_LEAD_S, self._clock.real_s(_LEAD_MARKET_S)),
        )

    def plan_saves(self, plan: PlanSaves) -> None:
        if plan.segment in self._segments:
            self._segments[plan.segment].update_control(save_every_s=self._clock.real_s(plan.every_s))

    def signal(self, segment: SegmentId, action: Literal["save", "halt"], grace_s: float) -> None:
        local = self._segments.get(segment)
        if local is None:
            return
        if action == "save":
            local.update_control(saves_asked=local.control.saves_asked + 1)
        elif local.control.halt_by is None:
            local.update_control(halt_by=time.time() + max(_LEAST_GRACE_S, self._clock.real_s(grace_s)))

    def _on(self, lease: LeaseId) -> list[LocalSegment]:
        return [segment for segment in self._segments.values() if lease in segment.leases]

    # -- events --------------------------------------------------------------------------------------------------------
    def poll(self) -> Iterable[Event]:
        self._beat()
        now = self._clock.now()
        for segment in list(self._segments.values()):  # first: a machine given back early is not billed to its end
            self._read_outbox(segment, now)
        for lease in self._unreported:
            record = self._leases[lease]
            due, cause = record.due()
            if record.open and due <= now:
                self._end(lease, due, cause)
        for segment in list(self._segments.values()):
            self._detect_end(segment, now)
        for lease, reported in list(self._unreported.items()):
            events = list(self._leases[lease].events_until(now))
            self._out.extend(events[reported:])
            self._unreported[lease] = len(events)
            if events and not self._leases[lease].open:
                del self._unreported[lease]
        self._leaving = [segment for segment in self._leaving if segment.worker.alive()]
        out, self._out = self._out, []
        out.sort(key=lambda event: event.at)
        return out

    def _read_outbox(self, segment: LocalSegment, now: float) -> None:
        self._out.extend(segment.new_events(self._ends_at(segment, now)))
        if segment.over:
            self._finish(segment)
            if segment.gave_back:
                self._release_machines_of(segment)

    def _detect_end(self, segment: LocalSegment, now: float) -> None:
        """Detect an end that the worker did not report."""
        gone = not all(lease in self._leases and self._leases[lease].open for lease in segment.leases)
        if not gone and segment.worker.alive():
            return
        self._read_outbox(segment, now)  # what it wrote between the last read and its end
        if segment.over:
            return
        segment.worker.kill()  # user code may have outlived its supervisor
        at = self._ends_at(segment, now)
        self._out.append(segment.lost(at, "its machine ended before it stopped") if gone else segment.died(at))
        self._finish(segment)

    def _ends_at(self, segment: LocalSegment, now: float) -> float:
        """When its machines ended or were due to end, or now."""
        records = (self._leases[lease] for lease in segment.leases if lease in self._leases)
        return min((min(t.due()[0], now) if t.ended_at is None else t.ended_at for t in records), default=now)

    def _finish(self, segment: LocalSegment) -> None:
        del self._segments[segment.id]
        self._leaving.append(segment)

    def _release_machines_of(self, segment: LocalSegment) -> None:
        """A worker without a controller for too long has stopped for good: its machines are released."""
        for lease in segment.leases:
            record = self._leases.get(lease)
            if record is not None and record.open and not self._on(lease):
                self._end(lease, max(segment.last_at, record.answered_at), "released")

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beaten_at >= _BEAT_EVERY_S or not self._beaten_at:
            self._beaten_at = now
            with open(self._heartbeat, "ab"):
                os.utime(self._heartbeat)

    def close(self) -> None:
        """Machines and user code keep running; their folders hold everything that is known."""
        self._segments.clear()
        self._leaving.clear()
        self._leases.clear()
        self._unreported.clear()
