"""SlurmJobs: the Slurm jobs that hold the nodes of a run's leases: submitted, watched and cancelled.

A job holds the node of one lease, or those of all leases of a gang whose program is launched once (`gang_job`).

The script of a job is our host. `squeue` runs every few seconds, and at once when a callback arrives in the run's
folder (`docs/slurm.md`): a callback may be lost, come twice or be wrong, so it is only a hint to query Slurm. Queries
and cancellations run in a thread of their own: the controller must not wait for Slurm.

Workers are processes of the script and not job steps of their own (`srun`): a step needs slurmctld to start, and after
a crash of slurmctld an idle node may count as busy for minutes. Nothing waits for Slurm while a lease lasts.

Jobs have the mark of the run in their name and their leases in their comment. A job with our mark that belongs to no
open lease is cancelled, also one of an earlier controller: no job of a killed controller keeps running unnoticed.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
import time
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from shoestring.backends.folder_post import FolderPost
from shoestring.backends.lease_record import LeaseRecord
from shoestring.backends.machines import MachineEnd
from shoestring.backends.slurm import commands as slurm
from shoestring.backends.slurm import gang_job
from shoestring.errors import BackendError, PermanentError
from shoestring.kernel.types import LeaseId, Offer
from shoestring.worker.task import LOG, read_json, write_json

_JOB, _STARTED, _CALLBACKS = "job.json", "started.json", "callbacks"
_QUERY_EVERY_S = 2.0
_LAST_QUERIES_EVERY_S = 0.3
_CLOSE_TIMEOUT_S = 20.0
_START_TIMEOUT_S = 10.0
"""Until then a lease waits for Slurm to say since when its job has its node; then it counts from when it signed in."""
_FORGOTTEN, _REMOVED = "forgotten", "removed"


class _SubmittedJob(msgspec.Struct, frozen=True):
    job: str
    leases: tuple[str, ...] = ()
    """All that share it."""


class _View(NamedTuple):
    number: int = 0
    jobs: dict[str, slurm.SlurmJob] = {}


class SlurmJobs:
    notice_s = 30.0
    """Between Slurm's SIGTERM and its SIGKILL: the default of `KillWait`."""

    def __init__(
        self,
        run_dir: Path,
        post: FolderPost,
        partition: str | None = None,
        features: Iterable[str] = (),
        labels: Mapping[Offer, str] = MappingProxyType({}),
    ) -> None:
        """`features`: those of the cluster's nodes. A machine is requested by the feature or the partition that its
        offer has as a label; else by those of its type, zone and kind that are features."""
        self._run_dir = run_dir
        self._post = post
        self._partition = partition
        self._features = frozenset(features)
        self._labels = labels
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
        self._releasing: dict[LeaseId, str] = {}
        """Released leases and their jobs, until those are cancelled or have given their nodes back."""
        self._cancelling: dict[tuple[str, LeaseId | None], Future[None]] = {}
        """A job as a whole, or the node of one lease."""
        self._started: dict[LeaseId, float] = {}
        self._start_unknown: dict[LeaseId, float] = {}
        """Leases whose host has signed in, and since when Slurm has not said when their jobs started."""
        self._may_power_down = True
        self._thread = ThreadPoolExecutor(1, "slurm")

    # -- orders --------------------------------------------------------------------------------------------------------
    def rent(self, record: LeaseRecord, *, again: bool) -> None:
        self.rent_together([record], again=again)

    def rent_together(self, records: Sequence[LeaseRecord], *, again: bool) -> None:
        """One job with a node for each."""
        leases = [record.request.lease for record in records]
        if again and any(self.job(lease) is None for lease in leases):
            for job in slurm.jobs(self.name):
                for lease in job.leases if not job.is_over else ():
                    if lease in leases and self.job(LeaseId(lease)) is None:
                        self._adopt(LeaseId(lease), job)
        leases = [lease for lease in leases if self.job(lease) is None]
        if not leases:
            return
        folders = [self._post.folder(lease) for lease in leases]
        number = slurm.submit(
            _script_of(folders[0]) if len(folders) == 1 else gang_job.script_of(folders),
            name=self.name,
            comment=",".join(leases),
            folder=str(folders[0]),
            partition=self._partition_of(records[0].request.offer),
            features=self._features_of(records[0].request.offer),
            nodes=len(folders),
        )
        for lease in leases:
            self._adopt(lease, slurm.SlurmJob(number, "PENDING", "", None, ",".join(leases)))

    def _partition_of(self, offer: Offer) -> str | None:
        label = self._labels.get(offer)
        return self._partition if label is None or label in self._features else label

    def _features_of(self, offer: Offer) -> str:
        if offer in self._labels:
            label = self._labels[offer]
            return label if label in self._features else ""
        kind = "spot" if offer.spot else "on-demand"
        return "&".join(word for word in (offer.machine, offer.zone, kind) if word in self._features)

    def end(self, lease: LeaseId) -> None:
        """Cancel the job; and suspend its node, where Slurm resumes and suspends nodes: it may cost money. A job with
        other leases only gives the node back."""
        number = self.job(lease)
        if number is not None:
            self._releasing[lease] = number
            self._end(number, lease)

    def _end(self, number: str, lease: LeaseId | None) -> None:
        """In the other thread; and again after the next query, until it has succeeded."""
        ending = self._cancelling.get((number, lease))
        if ending is None or ending.done():
            known = lease is None or self._end_state(lease, number) != _FORGOTTEN
            listed = self._view.jobs.get(number)
            self._cancelling[number, lease] = self._thread.submit(self._cancel, number, lease, listed, known=known)

    def _cancel(self, number: str, lease: LeaseId | None, listed: slurm.SlurmJob | None, *, known: bool) -> None:
        if lease is None:
            slurm.cancel(number)
            return
        signed, others = self._post.signed(lease), self._others(lease)
        if not others:
            if known:
                slurm.cancel(number)
        elif known and not self._give_back(lease, listed, others):
            return  # after the next query
        resumed = listed.nodes if known and signed is None and listed is not None and not others else ()
        for node in (signed.node,) if signed is not None else resumed:  # also one that is still being resumed
            if not self._may_power_down or not slurm.is_cloud(node):
                continue
            try:
                slurm.power_down(node)
            except PermanentError:
                self._may_power_down = False  # for operators only: Slurm suspends the node after SuspendTime
        (self._post.folder(lease) / _JOB).unlink(missing_ok=True)
        self._releasing.pop(lease, None)

    def _others(self, lease: LeaseId) -> list[LeaseId]:
        """Leases that share its job and are not released."""
        try:
            together = read_json(self._post.folder(lease) / _JOB, _SubmittedJob).leases
        except FileNotFoundError:
            return []
        held = [LeaseId(other) for other in together if (self._post.folder(LeaseId(other)) / _JOB).exists()]
        return [other for other in held if other != lease and other not in self._releasing]

    def _give_back(self, lease: LeaseId, listed: slurm.SlurmJob | None, others: Collection[LeaseId]) -> bool:
        """Remove the node of a lease from its job, which the others keep; False if that is not possible yet. The node
        that runs the script of the job, the first of its list, cannot be removed: it stays until the last lease ends.
        """
        hosts = [self._post.signed(other) for other in (lease, *others)]
        if listed is None or listed.state != "RUNNING" or None in hosts:
            return False
        first, released, *held = [listed.nodes[0], *(host.node for host in hosts if host is not None)]
        if released not in listed.nodes:
            return True
        for kept in (held, [first, *held]):
            try:
                slurm.shrink(listed.number, sorted({*kept} & {*listed.nodes}))
            except PermanentError:
                continue
            return True
        return released == first

    # -- queries -------------------------------------------------------------------------------------------------------
    def job(self, lease: LeaseId) -> str | None:
        """The number of its job, if it was submitted and not cancelled."""
        signed = self._post.signed(lease)
        if signed is not None and (self._post.folder(lease) / _JOB).exists():
            return signed.job
        if lease not in self._submitted:
            try:
                self._submitted[lease] = read_json(self._post.folder(lease) / _JOB, _SubmittedJob).job, self._queries
            except FileNotFoundError:
                return None
        return self._submitted[lease][0]

    def charged_from(self, lease: LeaseId, signed_wall: float) -> float | None:
        """When its job got the node, which may have had to be resumed. Only asked of Slurm where nodes have a price."""
        if not self._labels:
            return signed_wall
        if lease in self._started:
            return min(signed_wall, self._started[lease])
        since = self._start_unknown.setdefault(lease, time.monotonic())
        if time.monotonic() - since > _START_TIMEOUT_S:
            return signed_wall
        self._queried_at = -math.inf
        return None

    def ended(self, lease: LeaseId) -> MachineEnd | None:
        number = self.job(lease)
        state = None if number is None else self._end_state(lease, number)
        return None if state is None else self._observed(self._post.folder(lease), state)

    def _end_state(self, lease: LeaseId, number: str) -> str | None:
        """The state of a job that is over; None if it is not. A slurmctld restored from an older state has forgotten
        some jobs, and assigns their numbers again."""
        job = self._view.jobs.get(number)
        if job is not None and lease in job.leases:
            if len(job.leases) > 1 and self._has_lost(job, lease):
                return _REMOVED
            return job.state if job.is_over else None
        return _FORGOTTEN if self._view.number > self._submitted.get(lease, ("", 0))[1] else None

    def _has_lost(self, job: slurm.SlurmJob, lease: LeaseId) -> bool:
        """Has Slurm removed the failed node of this lease from a job that continues without it?"""
        signed = self._post.signed(lease)
        return job.state == "RUNNING" and signed is not None and signed.node not in job.nodes

    def _observed(self, folder: Path, state: str) -> MachineEnd:
        if state in ("FAILED", "OUT_OF_MEMORY", "COMPLETED"):
            line = _last_line(folder / LOG)
            return MachineEnd("lost", f"its host process died ({state}){f': {line}' if line else ''}", line)
        words = {_FORGOTTEN: "Slurm no longer knows its job", _REMOVED: "its node failed, and left the job of its gang"}
        return MachineEnd("revoked", words.get(state, f"Slurm ended its job ({state})"))

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
            for lease in map(LeaseId, job.leases):
                if not job.is_over and lease in open_leases and self.job(lease) is None:
                    self._adopt(lease, job)
                if lease in open_leases and lease not in self._started and job.started_at is not None and self._labels:
                    self._note_start(lease, job.started_at)
        kept = {self.job(lease) for lease in open_leases}
        for job in listed:
            if not job.is_over and job.number not in kept:
                self._end(job.number, None)
        for key in [key for key, ending in self._cancelling.items() if ending.done()]:
            number, released = key
            if released in self._releasing:
                self._end(number, released)
            elif number in kept or number not in self._view.jobs or self._view.jobs[number].is_over:
                del self._cancelling[key]

    def _note_start(self, lease: LeaseId, started_at: float) -> None:
        """The first time that Slurm gives: it gives another one when a node that was resumed for the job is up."""
        path = self._post.folder(lease) / _STARTED
        if not path.exists():
            write_json(path, started_at)
        self._started[lease] = read_json(path, float)

    def _adopt(self, lease: LeaseId, job: slurm.SlurmJob) -> None:
        write_json(self._post.folder(lease) / _JOB, _SubmittedJob(job.number, job.leases))
        self._submitted[lease] = job.number, self._queries

    def close(self, *, leased: bool) -> None:
        """Jobs keep running while their prepaid time lasts. Without open leases, wait until no job is left."""
        until = time.monotonic() + _CLOSE_TIMEOUT_S
        self._query_every_s = _LAST_QUERIES_EVERY_S
        while not leased and self._cancelling and time.monotonic() < until:
            self.update(())
            time.sleep(0.05)
        self._thread.shutdown(wait=True)


def _script_of(folder: Path) -> str:
    host = shlex.join([sys.executable, "-P", "-m", "shoestring.host", str(folder)])
    return f'#!/bin/sh\nexec {host} "$SLURM_JOB_ID" "$SLURMD_NODENAME"\n'


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
