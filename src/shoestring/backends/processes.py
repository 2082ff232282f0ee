"""ProcessBackend: user code in worker processes, on machines that are leased.

It is composed of where machines come from (`MachineSource`), how orders reach them (`Orders`), and who bills them.

Everything it knows is in the run's folder, written before it acts: `leases/<id>/` and `segments/<id>/`. Another
instance on the same folder, after a kill -9, adopts the running workers, ends what is overdue and reports every event
again from the start.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from shoestring.backends.lease_record import NEVER
from shoestring.backends.leases import Biller, Leases
from shoestring.backends.machines import MachineEnd, MachineSource
from shoestring.backends.orders import Orders
from shoestring.backends.segment import WorkerSegment
from shoestring.backends.site import Site
from shoestring.errors import DamagedFile
from shoestring.kernel.decisions import ExtendLease, PlanSaves, RequestLease, StartSegment
from shoestring.kernel.events import Event, RevocationNoticed
from shoestring.kernel.types import EndCause, LeaseId, SegmentId
from shoestring.storage.checkpoints.folder_copy import make_folder
from shoestring.worker.ranks import free_port
from shoestring.worker.task import CONTROL, TASK, Control, Host, Task, read_json, set_aside

_LEAST_GRACE_S = 0.5
_BEAT_EVERY_S = 1.0


class ProcessBackend:
    def __init__(self, site: Site, machines: MachineSource, orders: Orders, billing: Biller) -> None:
        self._site = site
        self._clock = site.clock
        self._orders = orders
        self._argv = _arguments(site)
        self._beaten_at = 0.0
        self._segments: dict[SegmentId, WorkerSegment] = {}
        """Those not over; the folders of the others remain, and their outboxes hold the end."""
        self._leaving: list[WorkerSegment] = []
        """Those over whose worker process may still be exiting."""
        self._out: list[Event] = []
        self._damaged: set[SegmentId] = set()
        """Segments whose task cannot be read, until they are ordered again."""
        for folder in (site.leases, site.segments):
            make_folder(folder)
        self._beat()
        self._leases = Leases(machines, billing, site.clock, site.leases)
        self._take_over()

    def _take_over(self) -> None:
        """Read what an earlier instance left; start the segments it had recorded and not started."""
        now, resumed = self._clock.now(), sorted(self._site.segments.iterdir())
        for path in resumed:
            if not (path / TASK).exists():
                continue
            try:
                segment = self._segment(path, read_json(path / TASK, Task))
            except DamagedFile as error:
                self._damaged.add(SegmentId(path.name))  # if it is open in the journal, it is ordered again: `start`
                set_aside(path / TASK, error)
                continue
            self._segments[segment.id] = segment
            self._read_outbox(segment, now)
            self._adopt(segment, now)
        self._leaving = [segment for segment in self._leaving if segment.worker.alive()]
        if resumed:
            running = {self._site.segments / x.id for x in (*self._segments.values(), *self._leaving)}
            running |= {self._site.segments / x for x in self._damaged}
            self._orders.end_leftovers(self._site.segments, running)

    def _adopt(self, segment: WorkerSegment, now: float) -> None:
        if segment.over or not all(self._leases.knows(lease) for lease in segment.leases):
            return  # the record of a lease that is open in the journal is made anew first: `mend`
        try:
            segment.read_control()
        except DamagedFile as error:
            set_aside(self._site.segments / segment.id / CONTROL, error)
            segment.replace_control(self._control(segment.leases))
        if not self._leases.usable(segment.leases, now):
            segment.kill()
        elif segment.worker.never_started:
            segment.worker.start()

    def mend(self, request: RequestLease, granted_at: float, notice: RevocationNoticed | None) -> None:
        """A lease that is open in the journal. If its record was damaged, its segments wait for this."""
        if self._leases.mend(request, granted_at, notice):
            for segment in self._on(request.lease):
                self._adopt(segment, self._clock.now())

    # -- machines ------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        self._leases.acquire(request)

    def extend(self, extension: ExtendLease) -> None:
        if self._leases.extend(extension):
            for segment in self._on(extension.lease):
                segment.update_control(end_by=self._control(segment.leases).end_by)

    def release(self, lease: LeaseId) -> None:
        ended = self._leases.release_now(lease)
        if ended is not None:
            self._end(lease, *ended)

    def _end(self, lease: LeaseId, at: float, cause: EndCause) -> None:
        """The record first: after a crash here, the next instance finds workers on an ended lease and kills them."""
        self._leases.end(lease, at, cause)
        self._clear(lease)

    def _lose(self, lease: LeaseId, now: float, end: MachineEnd) -> None:
        """Its machine has ended without an order, and everything on it."""
        for segment in self._on(lease):
            self._read_outbox(segment, now)
            if not segment.over:
                segment.kill()
                self._out.append(segment.lost(now, end.why))
                self._finish(segment)
        self._leases.lose(lease, now, end.cause)
        self._clear(lease)

    def _clear(self, lease: LeaseId) -> None:
        for segment in self._leaving + self._on(lease):
            if lease in segment.leases:
                segment.kill()
        self._leases.let_go(lease)

    def inventory(self) -> Iterable[LeaseId]:
        return self._leases.open_leases()

    # -- user code -----------------------------------------------------------------------------------------------------
    def start(self, segment: StartSegment) -> None:
        folder = self._site.segments / segment.segment
        if segment.segment in self._segments or (folder / TASK).exists():
            return
        started = self._segment(folder, self._task(segment))
        started.prepare(self._control(segment.leases))
        self._segments[segment.segment] = started
        self._damaged.discard(segment.segment)
        if self._leases.usable(started.leases, self._clock.now()):
            started.worker.start()

    def _segment(self, folder: Path, task: Task) -> WorkerSegment:
        return WorkerSegment(folder, task, self._clock, self._orders.worker(folder, task))

    def _task(self, segment: StartSegment) -> Task:
        limit = segment.time_limit_s
        once = self._site.code.launch == "once"
        machines = () if once else tuple(slots // self._site.slots_per_worker for slots in segment.slots_on)
        task = Task(
            segment=segment.segment,
            job=segment.job,
            config=segment.config,
            until_step=segment.until_step,
            until_exit=self._site.until_exit,
            open_ended=self._site.open_ended,
            slots=segment.slots,
            fraction=segment.fraction,
            fractions=segment.fractions,
            seed=segment.seed,
            resume_from=segment.resume_from,
            function=self._site.code.function,
            command=self._site.code.command,
            argv=self._argv,
            folder=str(self._site.folder),
            store=str(self._site.store.root),
            metric=self._site.metric,
            time_limit_s=None if limit is None else self._clock.real_s(limit),
            heartbeat=str(self._site.heartbeat),
            deadman_s=self._site.deadman_s,
            leases=segment.leases,
            workers=sum(machines) or 1,
            world_size=sum(machines) or 1,
            machines=machines,
            master_port=free_port(),
            hosts=tuple(Host(slots=slots) for slots in segment.slots_on) if once else (),
        )
        return self._orders.task(task)

    def _control(self, leases: Iterable[LeaseId]) -> Control:
        """When the machines of a segment end, in wall time: its worker obeys it without the controller too."""
        times = self._leases.times(leases)
        return Control(
            end_by=self._clock.wall(times.end_by),
            notice_at=None if times.notice_at == NEVER else self._clock.wall(times.notice_at),
            gone_at=None if times.gone_at == NEVER else self._clock.wall(times.gone_at),
            lead_s=self._clock.real_s(self._site.wind_down_s),
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
            local.update_control(halt_by=self._clock.wall_now() + max(_LEAST_GRACE_S, self._clock.real_s(grace_s)))

    def _on(self, lease: LeaseId) -> list[WorkerSegment]:
        return [segment for segment in self._segments.values() if lease in segment.leases]

    # -- events --------------------------------------------------------------------------------------------------------
    def poll(self) -> Iterable[Event]:
        self._beat()
        now = self._clock.now()
        for segment in list(self._segments.values()):  # first: a machine given back early is not billed to its end
            self._read_outbox(segment, now)
        for lease, end in self._leases.update(now):
            self._lose(lease, now, end)
        self._orders.update()
        for lease, at, cause in self._leases.overdue(now):
            self._end(lease, at, cause)
        for segment in list(self._segments.values()):
            self._detect_end(segment, now)
        self._out.extend(self._leases.new_events(now))
        self._see_off()
        out, self._out = self._out, []
        out.sort(key=lambda event: event.at)
        return out

    def _see_off(self) -> None:
        """A worker that has reported its end may be killed before it has ended all that it started."""
        for segment in [segment for segment in self._leaving if not segment.worker.alive()]:
            self._leaving.remove(segment)
            segment.worker.kill()

    def _read_outbox(self, segment: WorkerSegment, now: float) -> None:
        self._out.extend(segment.new_events(self._leases.ends_at(segment.leases, now)))
        if segment.over:
            self._finish(segment)
            if segment.gave_back:
                self._release_machines_of(segment)

    def _detect_end(self, segment: WorkerSegment, now: float) -> None:
        """Detect an end that the worker did not report."""
        gone = not all(self._leases.is_open(lease) for lease in segment.leases)
        if not gone and segment.worker.alive():
            return
        self._read_outbox(segment, now)  # what it wrote between the last read and its end
        if segment.over:
            return
        segment.worker.kill()  # user code may have outlived its supervisor
        at = self._leases.ends_at(segment.leases, now)
        self._out.append(segment.lost(at, "its machine ended before it stopped") if gone else segment.died(at))
        self._finish(segment)

    def _finish(self, segment: WorkerSegment) -> None:
        del self._segments[segment.id]
        self._leaving.append(segment)
        segment.end_other_ranks()

    def _release_machines_of(self, segment: WorkerSegment) -> None:
        """A worker without a controller for too long has stopped for good: its machines are released."""
        for lease in segment.leases:
            if self._leases.is_open(lease) and not self._on(lease):
                self._end(lease, max(segment.last_at, self._leases.granted_at(lease)), "released")

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beaten_at >= _BEAT_EVERY_S or not self._beaten_at:
            self._beaten_at = now
            with open(self._site.heartbeat, "ab"):
                os.utime(self._site.heartbeat)

    def close(self) -> None:
        """Machines and user code keep running; their folders hold everything that is known."""
        self._segments.clear()
        self._leaving.clear()
        self._leases.close()


def _arguments(site: Site) -> tuple[str, ...]:
    """The arguments of the user's script, if it is that script that is running here."""
    script = site.folder / (site.code.function or "").rpartition(":")[0]
    return tuple(sys.argv) if script.is_file() and Path(sys.argv[0]).resolve() == script.resolve() else ()
