"""SlurmLeases: the Slurm jobs that hold the nodes of a run's leases, one each: submitted, watched and cancelled.

A lease is granted by its host, which signs in on the node (`host`). How it ended is reported by the host, if it can,
else by `squeue`. `squeue` runs every few seconds, and at once when a callback arrives in the run's folder
(`docs/slurm.md`): a callback may be lost, come twice or be wrong, so it is never more than a hint to query Slurm.
Queries and cancellations run in a thread of their own: the controller must not wait for Slurm.

Jobs have the mark of the run in their name and the lease in their comment. A job with our mark that belongs to no open
lease is cancelled, also one of an earlier controller: no job of a killed controller keeps running unnoticed.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
import zlib
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from shoestring.backends.slurm import commands as slurm
from shoestring.backends.slurm.host import ALIVE, HOSTING, LEFT, ORDERS, SIGNED, Hosting, HostSignature, Left
from shoestring.errors import BackendError, PermanentError
from shoestring.kernel.types import EndCause, LeaseId
from shoestring.worker.task import LOG, read_json, write_json

_JOB, _CALLBACKS = "job.json", "callbacks"
_QUERY_EVERY_S = 2.0
_LAST_QUERIES_EVERY_S = 0.3
_SILENCE_S = 60.0
"""A host without a heartbeat for this long is given up, whatever state Slurm shows for its node."""
_CLOSE_TIMEOUT_S = 20.0
_FORGOTTEN = "forgotten"
_SILENT_DEADMANS = 3
"""A worker stops after `deadman_s` without a controller, and is killed after twice that."""


class _SubmittedJob(msgspec.Struct, frozen=True):
    job: str


class _View(NamedTuple):
    number: int = 0
    jobs: dict[str, slurm.SlurmJob] = {}


class ObservedEnd(NamedTuple):
    """How a lease ended without an order of ours."""

    cause: EndCause
    why: str
    log_line: str = ""
    """The last line of its job's log, if it failed."""


class SlurmLeases:
    def __init__(self, run_dir: Path, partition: str | None = None, *, deadman_s: float = 300.0) -> None:
        self._run_dir = run_dir.resolve()
        self._partition = partition
        self._silence_s = _SILENT_DEADMANS * deadman_s
        # All nodes see the run's folder under this path, so it identifies this run among all others on the cluster.
        mark = f"{zlib.crc32(str(self._run_dir).encode()):08x}"
        self.name = f"shoestring-{re.sub('[^A-Za-z0-9.-]', '-', self._run_dir.name)}-{mark}"
        self._view = _View()
        self._queries = 0
        self._queried_at = 0.0
        self._query_every_s = _QUERY_EVERY_S
        self._callback_at = 0
        """The time of the last callback that was followed by a query."""
        self._query: Future[_View] | None = None
        self._submitted: dict[LeaseId, tuple[str, int]] = {}
        """Lease -> its job, and the number of the last query that may have been too early to list it."""
        self._kept_until: dict[LeaseId, float] = {}
        self._signed: dict[LeaseId, HostSignature] = {}
        self._last_beat: dict[LeaseId, tuple[int, float]] = {}
        """Lease -> the last heartbeat of its host, and when it was first seen on our clock."""
        self._releasing: dict[str, LeaseId] = {}
        """Jobs of released leases, until they are cancelled."""
        self._cancelling: dict[str, Future[None]] = {}
        self._may_power_down = True
        self._thread = ThreadPoolExecutor(1, "slurm")

    # -- orders --------------------------------------------------------------------------------------------------------
    def request(self, lease: LeaseId, end_at: float, features: str = "", *, again: bool = False) -> None:
        """Submit a job for this lease, paid until `end_at` (wall time); once, also if called again. `again`: a
        controller that was killed before recording it may have submitted one.

        TransientError if Slurm may not have received it: if it has, the job is found by its comment later.
        """
        folder = self._folder(lease)
        if self.job(lease) is None and again:
            for job in slurm.jobs(self.name):
                if job.comment == lease and not job.is_over:
                    self._adopt(lease, job.number)
        if self.job(lease) is not None:
            return
        (folder / ORDERS).mkdir(exist_ok=True)
        self.keep_until(lease, end_at)
        host = shlex.join([sys.executable, "-P", "-m", "shoestring.backends.slurm.host", str(folder)])
        number = slurm.submit(
            f"#!/bin/sh\nexec {host}\n",
            name=self.name,
            comment=lease,
            folder=str(folder),
            partition=self._partition,
            features=features,
        )
        self._adopt(lease, number)

    def keep_until(self, lease: LeaseId, end_at: float) -> None:
        if self._kept_until.get(lease) != end_at:
            self._kept_until[lease] = end_at
            heartbeat = str(self._run_dir / "heartbeat")
            hosting = Hosting(end_at=end_at, heartbeat=heartbeat, silence_s=self._silence_s)
            write_json(self._folder(lease) / HOSTING, hosting)

    def release(self, lease: LeaseId) -> None:
        """Cancel the job; and suspend its node, where Slurm resumes and suspends nodes: it may cost money."""
        (self._folder(lease) / HOSTING).unlink(missing_ok=True)  # the host sees this at once
        number = self.job(lease)
        if number is not None:
            self._releasing[number] = lease
            self._end(number)

    def _end(self, number: str) -> None:
        """In the other thread; and again after the next query, until it has succeeded."""
        if number not in self._cancelling or self._cancelling[number].done():
            lease = self._releasing.get(number)
            known = lease is None or self._end_state(lease, number) != _FORGOTTEN
            self._cancelling[number] = self._thread.submit(self._cancel, number, lease, cancel=known)

    def _cancel(self, number: str, lease: LeaseId | None, *, cancel: bool) -> None:
        if cancel:
            slurm.cancel(number)
        if lease is None:
            return
        signed = self.signed(lease)
        if signed is not None and self._may_power_down and slurm.is_cloud(signed.node):
            try:
                slurm.power_down(signed.node)
            except PermanentError:
                self._may_power_down = False  # for operators only: Slurm suspends the node after SuspendTime
        (self._folder(lease) / _JOB).unlink(missing_ok=True)
        self._releasing.pop(number, None)

    # -- queries -------------------------------------------------------------------------------------------------------
    def job(self, lease: LeaseId) -> str | None:
        """The number of its job, if it was submitted and not cancelled."""
        signed = self.signed(lease)
        if signed is not None and (self._folder(lease) / _JOB).exists():
            return signed.job
        if lease not in self._submitted:
            try:
                self._submitted[lease] = read_json(self._folder(lease) / _JOB, _SubmittedJob).job, self._queries
            except FileNotFoundError:
                return None
        return self._submitted[lease][0]

    def signed(self, lease: LeaseId) -> HostSignature | None:
        """The host that signed in, if one has."""
        if lease not in self._signed:
            try:
                self._signed[lease] = read_json(self._folder(lease) / SIGNED, HostSignature)
            except FileNotFoundError:
                return None
        return self._signed[lease]

    def ended(self, lease: LeaseId) -> ObservedEnd | None:
        """What is known of an end that this run did not order."""
        folder = self._folder(lease)
        try:
            left = read_json(folder / LEFT, Left)
            return ObservedEnd(left.cause, left.why)
        except FileNotFoundError:
            pass
        number = self.job(lease)
        if number is None:
            return None
        state = self._end_state(lease, number)
        if state is not None:
            return self._observed(folder, state)
        silent = self.signed(lease) is not None and self._is_silent(lease)
        return ObservedEnd("revoked", f"its node has been silent for {_SILENCE_S:.0f} s") if silent else None

    def _is_silent(self, lease: LeaseId) -> bool:
        beat, now = _changed_at(self._folder(lease) / ALIVE), time.monotonic()
        if lease not in self._last_beat or self._last_beat[lease][0] != beat:
            self._last_beat[lease] = beat, now
        return now - self._last_beat[lease][1] >= _SILENCE_S

    def _end_state(self, lease: LeaseId, number: str) -> str | None:
        """The state of a job that is over; None if it is not. A slurmctld restored from an older state has forgotten
        some jobs, and assigns their numbers again."""
        job = self._view.jobs.get(number)
        if job is not None and job.comment == lease:
            return job.state if job.is_over else None
        return _FORGOTTEN if self._view.number > self._submitted.get(lease, ("", 0))[1] else None

    def _observed(self, folder: Path, state: str) -> ObservedEnd:
        if state in ("FAILED", "OUT_OF_MEMORY", "COMPLETED"):
            line = _last_line(folder / LOG)
            return ObservedEnd("lost", f"its host process died ({state}){f': {line}' if line else ''}", line)
        ended = f"Slurm ended its job ({state})"
        return ObservedEnd("revoked", "Slurm no longer knows its job" if state == _FORGOTTEN else ended)

    # -- watching ------------------------------------------------------------------------------------------------------
    def update(self, open_leases: Collection[LeaseId]) -> bool:
        """Query the jobs now and then, adopt those of open leases and cancel the others. True after a new answer."""
        if self._query is None:
            idle = not open_leases and not self._cancelling and self._queries
            callback_at = _changed_at(self._run_dir / _CALLBACKS)
            if callback_at != self._callback_at or (
                not idle and time.monotonic() - self._queried_at >= self._query_every_s
            ):
                self._callback_at = callback_at
                self._queries += 1
                self._query = self._thread.submit(_query_jobs, self.name, self._queries)
            return False
        if not self._query.done():
            return False
        query, self._query, self._queried_at = self._query, None, time.monotonic()
        try:
            self._view = query.result()
        except BackendError:
            return False  # nothing new is known; hosts and workers end on time by themselves
        self._adopt_and_cancel(open_leases)
        return True

    def _adopt_and_cancel(self, open_leases: Collection[LeaseId]) -> None:
        listed = self._view.jobs.values()
        for job in listed:
            lease = LeaseId(job.comment)
            if not job.is_over and lease in open_leases and self.job(lease) is None:
                self._adopt(lease, job.number)
        kept = {self.job(lease) for lease in open_leases}
        for job in listed:
            if not job.is_over and job.number not in kept:
                self._end(job.number)
        for number in [number for number, ending in self._cancelling.items() if ending.done()]:
            if number in self._releasing:
                self._end(number)
            elif number not in self._view.jobs or self._view.jobs[number].is_over:
                del self._cancelling[number]

    def _adopt(self, lease: LeaseId, number: str) -> None:
        write_json(self._folder(lease) / _JOB, _SubmittedJob(number))
        self._submitted[lease] = number, self._queries

    def close(self, *, no_leases: bool) -> None:
        """Without open leases, wait until no job is left."""
        until = time.monotonic() + _CLOSE_TIMEOUT_S
        self._query_every_s = _LAST_QUERIES_EVERY_S
        while no_leases and self._cancelling and time.monotonic() < until:
            self.update(())
            time.sleep(0.05)
        self._thread.shutdown(wait=True)

    def _folder(self, lease: LeaseId) -> Path:
        return self._run_dir / "leases" / lease


def _query_jobs(name: str, number: int) -> _View:
    return _View(number, {job.number: job for job in slurm.jobs(name)})


def _changed_at(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except FileNotFoundError:
        return ""
    return lines[-1][:300] if lines else ""
