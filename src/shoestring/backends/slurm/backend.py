"""SlurmBackend: a lease is a Slurm job that holds a node, and segments run inside it.

Everything else is as on the local backend: the folder of the run holds all that is known, written before it is done,
and workers keep their times by themselves. The market is simulated, but Slurm decides when a lease begins: it waits in
Slurm's queue, or for its node to be resumed, and is granted when its host signs in. A node that Slurm loses or takes
for somebody else is a machine revoked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from shoestring.backends.local.backend import LocalBackend
from shoestring.backends.local.segment import LocalSegment
from shoestring.backends.multi_node import meeting_port
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

_WAITING = 1e18
"""The time of a grant that has not come: later than anybody will ever ask."""
_JUST_BEFORE_S = 1e-3
_TEND_EVERY_S = 0.1
_MOST_STILLBORN = 3
_KILL_WAIT_S = 30.0
"""What Slurm gives a job between its warning and its end, unless it is told otherwise (`KillWait`)."""


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
        those of the cluster's nodes; a machine whose type or zone is among them is asked for by it."""
        self._slurm = slurm
        self._features = frozenset(features)
        self._refused: PermanentError | None = None
        """Why no lease can be had, once one has died in a way that the next one would, too."""
        self._failed_starts = 0
        """Jobs in a row that ended before their hosts signed in."""
        self._tended_at = 0.0
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
        for lease, tenancy in self._leases.items():
            if not tenancy.open:  # it was recorded as ended, and then its controller may have died
                self._slurm.give_back(lease)

    # -- machines ------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        if self._refused is not None:
            refused, self._refused = self._refused, None  # a person has looked when it is asked for again
            raise refused
        again = request.lease in self._leases
        if not again:
            tenancy = LeaseRecord.asked(self._provider, request, self._clock.now())
            if tenancy.open:
                tenancy.answered_at, tenancy.notice_at, tenancy.gone_at = _WAITING, _WAITING, _WAITING
            self._record(tenancy)
            self._leases[request.lease] = tenancy
            self._untold[request.lease] = 0
        self._ask(self._leases[request.lease], again=again)

    def _ask(self, tenancy: LeaseRecord, *, again: bool = False) -> None:
        """Once for each lease, and again only as long as Slurm may not have heard."""
        lease = tenancy.request.lease
        if not tenancy.open or tenancy.answered_at != _WAITING:
            return
        try:
            end_at, features = self._clock.wall(tenancy.end_by), self._wanted_of(tenancy.request.offer)
            self._slurm.ask(lease, end_at, features, again=again)
        except TransientError:
            pass
        except OverLimit:
            self._deny(tenancy, "quota")
        except PermanentError:
            self._deny(tenancy, "quota")
            raise

    def _ask_again(self, tenancy: LeaseRecord) -> None:
        """Now that Slurm answers. What it refuses now is said to whoever asks next."""
        try:
            self._ask(tenancy)
        except PermanentError as error:
            self._refused = error

    def _wanted_of(self, offer: Offer) -> str:
        kind = "spot" if offer.spot else "on-demand"
        return "&".join(word for word in (offer.machine, offer.zone, kind) if word in self._features)

    def _deny(self, tenancy: LeaseRecord, reason: Denial) -> None:
        tenancy.denied, tenancy.answered_at = reason, self._clock.now()
        tenancy.ended_at = tenancy.answered_at
        self._record(tenancy)
        self._slurm.give_back(tenancy.request.lease)

    def _end(self, lease: LeaseId, at: float, cause: EndCause) -> None:
        """Prepaid time that passes in the queue costs nothing; but at its end the lease was not to be had."""
        tenancy = self._leases[lease]
        if cause == "expired" and tenancy.answered_at == _WAITING:
            self._deny(tenancy, "no_capacity")
            return
        super()._end(lease, at, cause)
        self._slurm.give_back(lease)

    def _tend(self, now: float) -> None:
        """Hear of nodes that have come, and of nodes that are gone. Not at every poll: each lease takes some files of a
        shared file system."""
        if time.monotonic() - self._tended_at < _TEND_EVERY_S:
            return
        self._tended_at = time.monotonic()
        answered = self._slurm.tend(list(self.inventory()))
        for lease in list(self._untold):
            tenancy = self._leases[lease]
            if not tenancy.open:
                continue
            if tenancy.answered_at == _WAITING:
                self._await(tenancy, now)
                if answered:
                    self._ask_again(tenancy)
            elif now < tenancy.due()[0]:
                self._slurm.keep_until(lease, self._clock.wall(tenancy.due()[0]))
                self._hear_notice(tenancy)
                if (ending := self._slurm.ended(lease)) is not None:
                    self._lose(lease, now, ending.cause, ending.why)

    def _await(self, tenancy: LeaseRecord, now: float) -> None:
        lease, offer = tenancy.request.lease, tenancy.request.offer
        signed, ending = self._slurm.signed(lease), self._slurm.ended(lease)
        if signed is not None:
            self._failed_starts = 0
            tenancy.answered_at = min(now, self._clock.at(signed.wall))
            limit = tenancy.request.max_usd_per_hour
            if revoked := self._provider.revocation(lease, offer, tenancy.answered_at, limit):
                tenancy.notice_at, tenancy.gone_at = revoked
            self._record(tenancy)
        elif ending is not None:
            if ending.cause == "lost":
                self._note_failed_start(ending)
            self._deny(tenancy, "no_capacity")

    def _note_failed_start(self, ending: ObservedEnd) -> None:
        """A job that left words behind says what is wrong. Without any it may be Slurm's mood, once or twice."""
        self._failed_starts += 1
        if ending.words or self._failed_starts >= _MOST_STILLBORN:
            self._refused = PermanentError(
                f"a job of ours does not start on its node: {ending.why}",
                hint="is the run's folder, and this Python, the same on all nodes?",
            )

    def _hear_notice(self, tenancy: LeaseRecord) -> None:
        """Workers hear of it without us; policies are told by this."""
        path = self._run_dir / "leases" / tenancy.request.lease / NOTICE
        if tenancy.notice_at == _WAITING and path.exists():
            wall = read_json(path, Notice).wall
            tenancy.notice_at = self._clock.at(wall)
            tenancy.gone_at = min(tenancy.gone_at, self._clock.at(wall + _KILL_WAIT_S))
            self._record(tenancy)

    def _lose(self, lease: LeaseId, now: float, cause: EndCause, why: str) -> None:
        """The notice comes too late to be of use to workers, but it keeps policies from starting anything on a node
        that is gone, when they hear that segments are lost before they hear that the lease has ended."""
        tenancy = self._leases[lease]
        if cause in ("revoked", "lost"):
            tenancy.notice_at, tenancy.gone_at = min(tenancy.notice_at, now - _JUST_BEFORE_S), min(tenancy.gone_at, now)
        for segment in self._on(lease):
            self._listen(segment, now)
            if not segment.over:
                segment.kill()
                self._out.append(segment.lost(now, why))
                self._put_aside(segment)
        if tenancy.open:
            self._end(lease, now, cause)

    # -- user code -----------------------------------------------------------------------------------------------------
    def _task(self, segment: StartSegment) -> Task:
        """Of the part on the first lease, which has rank 0."""
        task = super()._task(segment)
        if len(segment.leases) == 1:
            return task
        port = meeting_port(self._run_dir, segment.segment)
        return msgspec.structs.replace(task, workers=task.machines[0], master_port=port)

    def _segment(self, folder: Path, task: Task) -> SlurmSegment:
        return SlurmSegment(folder, task, self._clock, SlurmWorker(folder, task, self._run_dir / "leases", self._slurm))

    def _put_aside(self, segment: LocalSegment) -> None:
        super()._put_aside(segment)
        if isinstance(segment, SlurmSegment):
            segment.dismiss()

    # -- news ----------------------------------------------------------------------------------------------------------
    def poll(self) -> list[Event]:
        self._tend(self._clock.now())
        return list(super().poll())

    def close(self) -> None:
        """Jobs go on as long as they are paid for. With nothing rented, nothing is left."""
        nothing_rented = not list(self.inventory())
        super().close()
        self._slurm.close(nothing_rented=nothing_rented)
