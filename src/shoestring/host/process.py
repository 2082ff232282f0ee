"""WorkerProcess: a worker on this machine, in a process group of its own: started, found again after a restart, killed
reliably."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from shoestring.errors import BackendError
from shoestring.worker.process_identity import birth
from shoestring.worker.task import LOCK, LOG, PID, read_json

_STARTING_S = 1.0
"""A worker that exits without having signed in may have found the segment locked by another one that is about to."""
_DYING_S = 5.0


class _SignedIn(msgspec.Struct, frozen=True):
    """What a worker writes about itself once it holds the segment's lock."""

    pid: int
    birth: str | None


class WorkerProcess:
    """The process that runs one segment, started by this controller or an earlier one."""

    supervisors = 1
    doubts_failures = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ours: subprocess.Popen[bytes] | None = None
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
        group = self._group()
        if group is None:
            return
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # it has just ended
        until = time.monotonic() + _DYING_S
        while (self._ours is not None and self._ours.poll() is None) or birth(group) is not None:
            if time.monotonic() > until:
                raise BackendError(f"process group {group} does not die", hint="is its disk or its device stuck?")
            time.sleep(0.002)

    def _group(self) -> int | None:
        signed_in = self.signed_in
        if signed_in is not None:
            ours = birth(signed_in.pid) == signed_in.birth or self._locked()
            return signed_in.pid if ours else None
        if self._ours is not None and self._ours.poll() is None:
            return self._ours.pid
        return None

    def _locked(self) -> bool:
        """Does user code still run after its supervisor? It shares the lock; and while it runs, the number of its group
        is given to no other process, so killing the group hits no unrelated process."""
        fd = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False
