"""A run that is being driven: by a process this service started, or by one that an earlier service left going."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from typing import Protocol

from shoestring.client import TOKEN_VARIABLE
from shoestring.runs.folder import RunFolder

LOG = "service.log"
_TAIL_BYTES = 4096


class ControllerProcess(Protocol):
    """What the queue wants to know of a run's controller."""

    def alive(self) -> bool: ...

    def interrupt(self) -> None:
        """Ctrl-C: save, give the machines back, leave."""
        ...

    def crashed(self) -> bool:
        """Did it leave without a word? Then another one goes on; one that gave a reason is left alone."""
        ...

    def trouble(self) -> str:
        """Why it left, if it did not leave in good order."""
        ...


class Spawned:
    """A controller started by this service. In a session of its own: what ends the service need not end it."""

    def __init__(self, folder: RunFolder, *, ending: bool = False) -> None:
        self._log = folder.path / LOG
        arguments = [sys.executable, "-m", "shoestring.server.driver", str(folder.path.absolute())]
        # Whoever can talk to the service need not be who wrote the code that it runs.
        environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
        with open(self._log, "ab") as log:
            self._began_at = log.tell()
            self._process = subprocess.Popen(
                arguments + ["--end"] * ending,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def alive(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def crashed(self) -> bool:
        return (self._process.poll() or 0) < 0

    def trouble(self) -> str:
        code = self._process.poll()
        if not code:
            return ""
        if code < 0:
            return f"its controller was ended by {signal.Signals(-code).name}"
        with open(self._log, "rb") as log:
            log.seek(max(self._began_at, os.path.getsize(self._log) - _TAIL_BYTES))
            said = log.read().decode(errors="replace").splitlines()
        first = next((at for at, line in enumerate(said) if line.startswith("shoestring: ")), len(said))
        return " ".join(line.strip() for line in said[first:]).removeprefix("shoestring: ")


class Adopted:
    """A controller found going: known by the lock it holds on the journal."""

    def __init__(self, folder: RunFolder, pid: int) -> None:
        self._folder = folder
        self._pid = pid

    def alive(self) -> bool:
        return holder(self._folder) == self._pid

    def interrupt(self) -> None:
        if self.alive():
            os.kill(self._pid, signal.SIGTERM)

    def crashed(self) -> bool:
        return not self.alive()  # how it ended is only told to whoever started it

    def trouble(self) -> str:
        return ""


def holder(folder: RunFolder) -> int | None:
    """The process of this machine that drives the run. That its number lives is not enough: numbers are used again."""
    if not folder.is_driven():
        return None
    try:
        with open(folder.journal.with_name(f"{folder.journal.name}.lock"), "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read().split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return None
