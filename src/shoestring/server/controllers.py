"""The controller process of a run: started by this service, or left running by an earlier one."""

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
    """What the queue needs of a run's controller."""

    def alive(self) -> bool: ...

    def interrupt(self) -> None:
        """Ctrl-C: save, release the machines, exit."""
        ...

    def crashed(self) -> bool:
        """Did it die without an error message? Then another one resumes the run; otherwise the run is left as it is."""
        ...

    def trouble(self) -> str:
        """Why it exited, if it did not exit cleanly."""
        ...


class Spawned:
    """A controller started by this service. In its own session: it survives the end of the service."""

    def __init__(self, folder: RunFolder, *, ending: bool = False) -> None:
        self._log = folder.path / LOG
        arguments = [sys.executable, "-m", "shoestring.server.driver", str(folder.path.absolute())]
        # The code of a run must not get the token of a client of the service.
        environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
        with open(self._log, "ab") as log:
            self._log_start = log.tell()
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
            log.seek(max(self._log_start, os.path.getsize(self._log) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        first = next((at for at, line in enumerate(lines) if line.startswith("shoestring: ")), len(lines))
        return " ".join(line.strip() for line in lines[first:]).removeprefix("shoestring: ")


class Adopted:
    """A controller that was already running: identified by the lock it holds on the journal."""

    def __init__(self, folder: RunFolder, pid: int) -> None:
        self._folder = folder
        self._pid = pid

    def alive(self) -> bool:
        return holder(self._folder) == self._pid

    def interrupt(self) -> None:
        if self.alive():
            os.kill(self._pid, signal.SIGTERM)

    def crashed(self) -> bool:
        return not self.alive()  # its exit code is only known to its parent process

    def trouble(self) -> str:
        return ""


def holder(folder: RunFolder) -> int | None:
    """The process of this machine that controls the run. A live pid is not enough: pids are reused."""
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
