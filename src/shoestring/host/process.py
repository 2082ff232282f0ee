"""WorkerProcess: a worker on this machine, in a session of its own: started, found again after a restart, killed with
all it started."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from shoestring.errors import BackendError, DamagedFile
from shoestring.worker.cgroup import end_cgroup
from shoestring.worker.containment import SEGMENT, end_launched, holding, kill_all, of_segment, of_segments_in
from shoestring.worker.process_identity import birth, family, group
from shoestring.worker.task import LOCK, LOG, PID, TASK, Task, read_json

_STARTING_S = 1.0
"""A worker that exits without having signed in may have found the segment locked by another one that is about to."""


class _SignedIn(msgspec.Struct, frozen=True):
    """What a worker writes about itself once it holds the segment's lock."""

    pid: int
    birth: str | None
    cgroup: str | None = None
    """Of all user code, if it could make one."""


class WorkerProcess:
    """The process that runs one segment, started by this controller or an earlier one."""

    supervisors = 1
    doubts_failures = False

    def __init__(self, folder: Path, ours: subprocess.Popen[bytes] | None = None) -> None:
        self._folder = folder
        self._ours = ours
        """If it is a child of this process."""
        self._exited_at: float | None = None
        self._signed_in: _SignedIn | None = None

    def start(self) -> None:
        """Harmless if a worker is running already: only one ever gets the segment's lock."""
        with (self._folder / LOG).open("ab") as log:
            self._ours = subprocess.Popen(
                [sys.executable, "-P", "-m", "shoestring.worker", str(self._folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, SEGMENT: str(self._folder)},
                start_new_session=True,
            )
        self._exited_at = None

    @property
    def signed_in(self) -> _SignedIn | None:
        if self._signed_in is None:
            try:
                self._signed_in = read_json(self._folder / PID, _SignedIn)
            except FileNotFoundError:
                return None
            except DamagedFile:  # its process is not known: what can be found of it is killed, and it counts as gone
                self._signed_in = _SignedIn(pid=0, birth="unknown")
        return self._signed_in

    @property
    def never_started(self) -> bool:
        return self._ours is None and self.signed_in is None

    def alive(self) -> bool:
        """Is the worker running, or about to?"""
        exited = self._ours is not None and self._ours.poll() is not None  # poll() also reaps it
        signed_in = self.signed_in
        if signed_in is not None:
            return birth(signed_in.pid) == signed_in.birth
        if self._ours is None or not exited:
            return self._ours is not None
        if self._exited_at is None:
            self._exited_at = time.monotonic()
        return time.monotonic() - self._exited_at < _STARTING_S

    def exit_reason(self) -> str:
        """What is known of a worker that did not report its end."""
        code = None if self._ours is None else self._ours.returncode
        if code is not None and code > 0:
            return f"the worker could not run (exit code {code}); see {self._folder / LOG}"
        if code is not None and code < 0:
            return f"the worker was killed by {signal.Signals(-code).name}"
        return "the worker disappeared without reporting an end"

    def ask_to_leave(self) -> None:
        """Its machine is about to end: it saves and stops."""
        signed_in = self.signed_in
        if signed_in is not None and birth(signed_in.pid) == signed_in.birth:
            os.kill(signed_in.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the worker and everything it started, and wait until all of it is dead."""
        if self._ours is not None and self._ours.poll() == 0 and not self._locked():
            return  # it has killed all it started, and no other worker has the segment
        if (supervisor := self._supervisor()) is not None:
            os.kill(supervisor, signal.SIGSTOP)  # else it might report that its user code failed, as it is killed first
        signed_in = self.signed_in
        if signed_in is not None and signed_in.cgroup is not None:
            end_cgroup(Path(signed_in.cgroup))
        stuck = kill_all(self._processes)
        if stuck:
            raise BackendError(
                f"processes {stuck} of {self._folder} do not die", hint="is their disk or their device stuck?"
            )
        if self._ours is not None:
            self._ours.wait()
        with suppress(FileNotFoundError, DamagedFile):
            end_launched(self._folder, read_json(self._folder / TASK, Task))

    def _processes(self) -> set[int]:
        """What can be found of the worker now, the nearest first: called until nothing is found."""
        if (supervisor := self._supervisor()) is not None:
            return {*family(supervisor), *group(supervisor)}
        found = set(of_segment(self._folder))
        if not found and self._locked():
            found.update(holding(self._folder / LOCK))
        return found

    def _supervisor(self) -> int | None:
        """Its process, while that runs."""
        signed_in = self.signed_in
        if signed_in is not None and birth(signed_in.pid) == signed_in.birth:
            return signed_in.pid
        return self._ours.pid if self._ours is not None and self._ours.poll() is None else None

    def _locked(self) -> bool:
        """Does user code still run after its supervisor? It shares the lock."""
        fd = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False


def end_leftovers(segments: Path, running: Collection[Path]) -> None:
    """Kill the processes of all segments in this folder but the running ones: an earlier controller and their
    supervisors may have been killed together."""
    kill_all(lambda: [pid for pid, folder in of_segments_in(segments) if not {folder, folder.parent} & {*running}])
