"""SlurmLeases: the Slurm jobs that hold the nodes of a run's leases, one each: asked for, watched, and given back.

A lease is granted by its host, which signs in on the node (`slurm_host`). How it ended is told by the host, if it can,
else by Slurm's list of jobs. The list is looked at every few seconds, and at once when a call-back is left in the run's
folder (`docs/slurm.md`): a call-back may be lost, come twice or be a lie, so it is never more than a hint to look.
Looking and ending happen in a thread beside the controller, which must not wait for Slurm.

Jobs carry the mark of the run in their name and the lease in their comment. What carries our mark and is not wanted is
cancelled, whoever submitted it: nothing that a killed controller began goes on unseen.
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
_LOOK_EVERY_S = 2.0
_LAST_LOOKS_EVERY_S = 0.3
_SILENCE_S = 60.0
"""A host that has not been heard of for so long is given up, whatever Slurm believes of its node."""
_PARTING_S = 20.0
_FORGOTTEN = "forgotten"
_SILENT_DEADMANS = 3
"""A worker leaves after one deadman's time without a controller, and is killed after two."""


class _Asked(msgspec.Struct, frozen=True):
    job: str


class _View(NamedTuple):
    number: int = 0
    jobs: dict[str, slurm.SlurmJob] = {}


class ObservedEnd(NamedTuple):
    """How a lease ended without us."""

    cause: EndCause
    why: str
    words: str = ""
    """The last that its job wrote to its log, if it failed."""


class SlurmLeases:
    def __init__(self, run_dir: Path, partition: str | None = None, *, deadman_s: float = 300.0) -> None:
        self._run_dir = run_dir.resolve()
        self._partition = partition
        self._silence_s = _SILENT_DEADMANS * deadman_s
        # The run's folder is seen by all nodes under this path, so it tells this run from all others on the cluster.
        mark = f"{zlib.crc32(str(self._run_dir).encode()):08x}"
        self.name = f"shoestring-{re.sub('[^A-Za-z0-9.-]', '-', self._run_dir.name)}-{mark}"
        self._view = _View()
        self._looks = 0
        self._looked_at = 0.0
        self._look_every_s = _LOOK_EVERY_S
        self._called = 0
        """When the last call-back came that a look has followed."""
        self._looking: Future[_View] | None = None
        self._asked: dict[LeaseId, tuple[str, int]] = {}
        """Lease -> its job, and the number of the last look that may not know it."""
        self._kept_until: dict[LeaseId, float] = {}
        self._signed: dict[LeaseId, HostSignature] = {}
        self._heard: dict[LeaseId, tuple[int, float]] = {}
        """Lease -> the last sign of life of its host, and when it was first seen on our clock."""
        self._leaving: dict[str, LeaseId] = {}
        """Jobs of leases that were given back, until that is done with."""
        self._ending: dict[str, Future[None]] = {}
        self._may_power_down = True
        self._beside = ThreadPoolExecutor(1, "slurm")

    # -- orders --------------------------------------------------------------------------------------------------------
    def ask(self, lease: LeaseId, end_at: float, features: str = "", *, again: bool = False) -> None:
        """Have a job for this lease, paid for until then (wall time); once, however often it is asked for. `again`: one
        may have been submitted, by somebody who was killed before it was put down.

        TransientError where Slurm may not have heard: should it have, the job is found by its comment later.
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

    def give_back(self, lease: LeaseId) -> None:
        """End the job; and suspend its node, where Slurm resumes and suspends nodes: it may cost money."""
        (self._folder(lease) / HOSTING).unlink(missing_ok=True)  # the host sees this at once
        number = self.job(lease)
        if number is not None:
            self._leaving[number] = lease
            self._end(number)

    def _end(self, number: str) -> None:
        """Beside us; and again after the next look, until it has come to its end."""
        if number not in self._ending or self._ending[number].done():
            lease = self._leaving.get(number)
            known = lease is None or self._listed(lease, number) != _FORGOTTEN
            self._ending[number] = self._beside.submit(self._do_end, number, lease, cancel=known)

    def _do_end(self, number: str, lease: LeaseId | None, *, cancel: bool) -> None:
        if cancel:
            slurm.cancel(number)
        if lease is None:
            return
        signed = self.signed(lease)
        if signed is not None and self._may_power_down and slurm.is_cloud(signed.node):
            try:
                slurm.power_down(signed.node)
            except PermanentError:
                self._may_power_down = False  # for operators only: Slurm does it when the node has been idle for long
        (self._folder(lease) / _JOB).unlink(missing_ok=True)
        self._leaving.pop(number, None)

    # -- questions -----------------------------------------------------------------------------------------------------
    def job(self, lease: LeaseId) -> str | None:
        """The number of its job, if it was asked for and not given back."""
        signed = self.signed(lease)
        if signed is not None and (self._folder(lease) / _JOB).exists():
            return signed.job
        if lease not in self._asked:
            try:
                self._asked[lease] = read_json(self._folder(lease) / _JOB, _Asked).job, self._looks
            except FileNotFoundError:
                return None
        return self._asked[lease][0]

    def signed(self, lease: LeaseId) -> HostSignature | None:
        """Who hosts it, if anybody does or did."""
        if lease not in self._signed:
            try:
                self._signed[lease] = read_json(self._folder(lease) / SIGNED, HostSignature)
            except FileNotFoundError:
                return None
        return self._signed[lease]

    def ended(self, lease: LeaseId) -> ObservedEnd | None:
        """What is known of an end that nobody here asked for."""
        folder = self._folder(lease)
        try:
            left = read_json(folder / LEFT, Left)
            return ObservedEnd(left.cause, left.why)
        except FileNotFoundError:
            pass
        number = self.job(lease)
        if number is None:
            return None
        state = self._listed(lease, number)
        if state is not None:
            return self._read(folder, state)
        silent = self.signed(lease) is not None and self._is_silent(lease)
        return ObservedEnd("revoked", f"its node has been silent for {_SILENCE_S:.0f} s") if silent else None

    def _is_silent(self, lease: LeaseId) -> bool:
        beat, now = _changed_at(self._folder(lease) / ALIVE), time.monotonic()
        if lease not in self._heard or self._heard[lease][0] != beat:
            self._heard[lease] = beat, now
        return now - self._heard[lease][1] >= _SILENCE_S

    def _listed(self, lease: LeaseId, number: str) -> str | None:
        """The state of a job that is over; None of one that is not. A Slurm that was restored from an older state has
        forgotten some, and gives their numbers again."""
        job = self._view.jobs.get(number)
        if job is not None and job.comment == lease:
            return job.state if job.is_over else None
        return _FORGOTTEN if self._view.number > self._asked.get(lease, ("", 0))[1] else None

    def _read(self, folder: Path, state: str) -> ObservedEnd:
        if state in ("FAILED", "OUT_OF_MEMORY", "COMPLETED"):
            words = _last_line(folder / LOG)
            return ObservedEnd(
                "lost", f"what hosts it on its node died ({state}){f': {words}' if words else ''}", words
            )
        taken = f"Slurm took its node ({state})"
        return ObservedEnd("revoked", "Slurm knows nothing of its job any more" if state == _FORGOTTEN else taken)

    # -- watching ------------------------------------------------------------------------------------------------------
    def tend(self, wanted: Collection[LeaseId]) -> bool:
        """Look at the jobs from time to time, adopt what is wanted and end what is not. True after a fresh look."""
        if self._looking is None:
            idle = not wanted and not self._ending and self._looks
            called = _changed_at(self._run_dir / _CALLBACKS)
            if called != self._called or (not idle and time.monotonic() - self._looked_at >= self._look_every_s):
                self._called = called
                self._looks += 1
                self._looking = self._beside.submit(_look, self.name, self._looks)
            return False
        if not self._looking.done():
            return False
        looking, self._looking, self._looked_at = self._looking, None, time.monotonic()
        try:
            self._view = looking.result()
        except BackendError:
            return False  # nothing is known that was not before; hosts and workers keep their times by themselves
        self._sort_out(wanted)
        return True

    def _sort_out(self, wanted: Collection[LeaseId]) -> None:
        listed = self._view.jobs.values()
        for job in listed:
            lease = LeaseId(job.comment)
            if not job.is_over and lease in wanted and self.job(lease) is None:
                self._adopt(lease, job.number)
        kept = {self.job(lease) for lease in wanted}
        for job in listed:
            if not job.is_over and job.number not in kept:
                self._end(job.number)
        for number in [number for number, ending in self._ending.items() if ending.done()]:
            if number in self._leaving:
                self._end(number)
            elif number not in self._view.jobs or self._view.jobs[number].is_over:
                del self._ending[number]

    def _adopt(self, lease: LeaseId, number: str) -> None:
        write_json(self._folder(lease) / _JOB, _Asked(number))
        self._asked[lease] = number, self._looks

    def close(self, *, nothing_rented: bool) -> None:
        """With nothing rented any more, see to it that nothing is left."""
        until = time.monotonic() + _PARTING_S
        self._look_every_s = _LAST_LOOKS_EVERY_S
        while nothing_rented and self._ending and time.monotonic() < until:
            self.tend(())
            time.sleep(0.05)
        self._beside.shutdown(wait=True)

    def _folder(self, lease: LeaseId) -> Path:
        return self._run_dir / "leases" / lease


def _look(name: str, number: int) -> _View:
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
