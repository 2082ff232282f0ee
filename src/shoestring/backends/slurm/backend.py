"""SlurmBackend: a lease is a Slurm job that holds a node, and segments run inside it.

Everything else is as on the local backend: the run's folder holds everything that is known, written before it is done,
and workers end on time by themselves. The market is simulated, but Slurm decides when a lease starts: it waits in
Slurm's queue, or for its node to be resumed, and is granted when its host signs in. A node that Slurm loses or
preempts is a revoked machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from shoestring.backends.local.backend import LocalBackend
from shoestring.backends.local.segment import LocalSegment
from shoestring.backends.multi_node import rendezvous_port
from shoestring.backends.simulated_lease import LeaseRecord, Provider
from shoestring.backends.slurm.commands import OverLimit
from shoestring.backends.slurm.host import NOTICE, Notice
from shoestring.backends.slurm.leases import ObservedEnd, SlurmLeases
from shoestring.backends.slurm.segment import SlurmSegment, SlurmWorker
from shoestring.errors import PermanentError, TransientError
from shoestring.kernel.decisions import RequestLease, StartSegment
from shoestring.kernel.events import Event
from shoestring.kernel.spec import Code
from shoestring.kernel.types import Denial, EndCause, LeaseId, Offer
from shoestring.worker.task import Task, read_json
from shoestring.world.live.clock import RunClock

_PENDING = 1e18
"""The time of a grant that is still pending: later than any time that is compared with it."""
_JUST_BEFORE_S = 1e-3
_UPDATE_EVERY_S = 0.1
_MAX_FAILED_STARTS = 3
_KILL_WAIT_S = 30.0
"""Seconds between Slurm's SIGTERM and its SIGKILL: the default of `KillWait`."""


class SlurmBackend(LocalBackend):
    def __init__(
        self,
        run_dir: Path,
        *,
        slurm: SlurmLeases,
        code: Code,
        provider: Provider,
        clock: RunClock,
        store: Path,
        metric: str | None,
        folder: Path | None = None,
        deadman_s: float = 300.0,
        slots_per_worker: int = 1,
        features: Iterable[str] = (),
    ) -> None:
        """As the local backend; `run_dir`, `store` and `folder` must be the same folders on all nodes. `features`:
        those of the cluster's nodes; a machine whose type or zone is among them is requested with it."""
        self._slurm = slurm
        self._features = frozenset(features)
        self._refused: PermanentError | None = None
        """Why no lease can be requested, once a job failed in a way in which the next one would fail too."""
        self._failed_starts = 0
        """Consecutive jobs that ended before their hosts signed in."""
        self._updated_at = 0.0
        super().__init__(
            run_dir,
            code=code,
            provider=provider,
            clock=clock,
            store=store,
            metric=metric,
            folder=folder,
            deadman_s=deadman_s,
            slots_per_worker=slots_per_worker,
        )

    def _take_over(self) -> None:
        super()._take_over()
        for lease, record in self._leases.items():
            if not record.open:  # its controller may have died after recording the end
                self._slurm.release(lease)

    # -- machines ------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        if self._refused is not None:
            refused, self._refused = self._refused, None  # raised once: the run pauses until a person resumes it
            raise refused
        again = request.lease in self._leases
        if not again:
            record = LeaseRecord.from_request(self._provider, request, self._clock.now())
            if record.open:
                record.answered_at, record.notice_at, record.gone_at = _PENDING, _PENDING, _PENDING
            self._write_record(record)
            self._leases[request.lease] = record
            self._unreported[request.lease] = 0
        self._submit(self._leases[request.lease], again=again)

    def _submit(self, record: LeaseRecord, *, again: bool = False) -> None:
        """Once for each lease, and again only while Slurm may not have received it."""
        lease = record.request.lease
        if not record.open or record.answered_at != _PENDING:
            return
        try:
            end_at, features = self._clock.wall(record.end_by), self._features_of(record.request.offer)
            self._slurm.request(lease, end_at, features, again=again)
        except TransientError:
            pass
        except OverLimit:
            self._deny(record, "quota")
        except PermanentError:
            self._deny(record, "quota")
            raise

    def _submit_again(self, record: LeaseRecord) -> None:
        """Now that Slurm answers. If it refuses, the next `acquire` raises the error."""
        try:
            self._submit(record)
        except PermanentError as error:
            self._refused = error

    def _features_of(self, offer: Offer) -> str:
        kind = "spot" if offer.spot else "on-demand"
        return "&".join(word for word in (offer.machine, offer.zone, kind) if word in self._features)

    def _deny(self, record: LeaseRecord, reason: Denial) -> None:
        record.denied, record.answered_at = reason, self._clock.now()
        record.ended_at = record.answered_at
        self._write_record(record)
        self._slurm.release(record.request.lease)

    def _end(self, lease: LeaseId, at: float, cause: EndCause) -> None:
        """Prepaid time in the queue is free of charge; when it is over, the lease is denied."""
        record = self._leases[lease]
        if cause == "expired" and record.answered_at == _PENDING:
            self._deny(record, "no_capacity")
            return
        super()._end(lease, at, cause)
        self._slurm.release(lease)

    def _update_leases(self, now: float) -> None:
        """Detect granted leases and lost nodes. Not at every poll: each lease costs some file reads on a shared file
        system."""
        if time.monotonic() - self._updated_at < _UPDATE_EVERY_S:
            return
        self._updated_at = time.monotonic()
        answered = self._slurm.update(list(self.inventory()))
        for lease in list(self._unreported):
            record = self._leases[lease]
            if not record.open:
                continue
            if record.answered_at == _PENDING:
                self._update_pending(record, now)
                if answered:
                    self._submit_again(record)
            elif now < record.due()[0]:
                self._slurm.keep_until(lease, self._clock.wall(record.due()[0]))
                self._read_notice(record)
                if (ending := self._slurm.ended(lease)) is not None:
                    self._end_lost(lease, now, ending.cause, ending.why)

    def _update_pending(self, record: LeaseRecord, now: float) -> None:
        lease, offer = record.request.lease, record.request.offer
        signed, ending = self._slurm.signed(lease), self._slurm.ended(lease)
        if signed is not None:
            self._failed_starts = 0
            record.answered_at = min(now, self._clock.at(signed.wall))
            limit = record.request.max_usd_per_hour
            if revoked := self._provider.revocation(lease, offer, record.answered_at, limit):
                record.notice_at, record.gone_at = revoked
            self._write_record(record)
        elif ending is not None:
            if ending.cause == "lost":
                self._note_failed_start(ending)
            self._deny(record, "no_capacity")

    def _note_failed_start(self, ending: ObservedEnd) -> None:
        """A job that wrote to its log says what is wrong. Without a log, one or two failures may be chance."""
        self._failed_starts += 1
        if ending.log_line or self._failed_starts >= _MAX_FAILED_STARTS:
            self._refused = PermanentError(
                f"a job of this run does not start on its node: {ending.why}",
                hint="are the run's folder and this Python the same on all nodes?",
            )

    def _read_notice(self, record: LeaseRecord) -> None:
        """Workers get the notice from their host; this reports it to the policies."""
        path = self._run_dir / "leases" / record.request.lease / NOTICE
        if record.notice_at == _PENDING and path.exists():
            wall = read_json(path, Notice).wall
            record.notice_at = self._clock.at(wall)
            record.gone_at = min(record.gone_at, self._clock.at(wall + _KILL_WAIT_S))
            self._write_record(record)

    def _end_lost(self, lease: LeaseId, now: float, cause: EndCause, why: str) -> None:
        """The notice comes too late for the workers, but it keeps policies from starting anything on a node that is
        gone, when SegmentEnded arrives before LeaseEnded."""
        record = self._leases[lease]
        if cause in ("revoked", "lost"):
            record.notice_at, record.gone_at = min(record.notice_at, now - _JUST_BEFORE_S), min(record.gone_at, now)
        for segment in self._on(lease):
            self._read_outbox(segment, now)
            if not segment.over:
                segment.kill()
                self._out.append(segment.lost(now, why))
                self._finish(segment)
        if record.open:
            self._end(lease, now, cause)

    # -- user code -----------------------------------------------------------------------------------------------------
    def _task(self, segment: StartSegment) -> Task:
        """The task of the part on the first lease, which has rank 0."""
        task = super()._task(segment)
        if len(segment.leases) == 1:
            return task
        port = rendezvous_port(self._run_dir, segment.segment)
        return msgspec.structs.replace(task, workers=task.machines[0], master_port=port)

    def _segment(self, folder: Path, task: Task) -> SlurmSegment:
        return SlurmSegment(folder, task, self._clock, SlurmWorker(folder, task, self._run_dir / "leases", self._slurm))

    def _finish(self, segment: LocalSegment) -> None:
        super()._finish(segment)
        if isinstance(segment, SlurmSegment):
            segment.end_other_ranks()

    # -- events --------------------------------------------------------------------------------------------------------
    def poll(self) -> list[Event]:
        self._update_leases(self._clock.now())
        return list(super().poll())

    def close(self) -> None:
        """Jobs keep running while their prepaid time lasts. Without open leases, no job is left."""
        no_leases = not list(self.inventory())
        super().close()
        self._slurm.close(no_leases=no_leases)
