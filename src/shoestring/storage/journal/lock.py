"""WriterLock: one live controller per journal, by a lock that the operating system releases when its process dies.

On a shared file system the lock of another computer may not be seen: some are mounted with locks that stay on each
computer, and a lock taken on the file server itself is another one than that of its clients. So there a holder also
touches the file regularly, and one that is named in it and still does so is alive, whatever the lock says.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from shoestring.errors import JournalTaken, StorageError

TOUCH_EVERY_S = 2.0
SILENCE_S = 20.0
"""A holder that has not touched the file for this long is dead, or stopped; the epoch in the journal fences it off."""

_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """Holds `<journal>.lock` from construction to `release()`. The file stays: removing it would be a race."""

    def __init__(self, journal: Path, *, shared: bool = False, say: Callable[[str], None] = lambda _: None) -> None:
        self._journal = journal
        self._path = path = journal.with_name(journal.name + ".lock")
        self._name = f"process {os.getpid()} on {socket.gethostname()}"
        self._over = threading.Event()
        self._toucher: threading.Thread | None = None
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(
                f"cannot write beside the journal {journal}: {error.strerror}",
                hint="give a folder you may write to",
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if shared:
                self._refuse_if_alive(say)
        except BaseException as error:
            holder = self._holder()
            self._close()
            if not isinstance(error, OSError):
                raise
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise StorageError(
                    f"cannot lock {path}: {error.strerror}",
                    hint="keep the run on a disk of this machine: this file system has no locks",
                ) from error
            raise self._taken(holder) from error
        with suppress(OSError):  # on a full disk the lock still holds, only without the name of its holder
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{self._name}\n".encode(), 0)
            if shared:
                os.fsync(self._fd)  # other computers read it
        if shared:
            self._toucher = threading.Thread(target=self._touch, name="journal lock", daemon=True)
            self._toucher.start()
        _held.add(self)

    def check(self) -> None:
        """On a shared file system: JournalTaken if another controller has put its name in place of ours."""
        if self._toucher is None:
            return
        with suppress(OSError):
            holder = self._path.read_text(errors="replace").strip()
            if holder and holder != self._name:
                raise JournalTaken(
                    f"{holder} took over {self._journal}: this controller can no longer write",
                    hint="leave the run to the other one; no recorded entry is lost",
                )

    def release(self) -> None:
        """Release it, and say so in the file: another computer then need not wait to see whether we are alive."""
        self._over.set()
        if self._toucher is not None:
            self._toucher.join()
            self._toucher = None
        if self._fd >= 0:
            with suppress(OSError):
                if self._holder() == self._name:
                    os.ftruncate(self._fd, 0)
        self._close()

    def _close(self) -> None:
        _held.discard(self)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _holder(self) -> str:
        return os.pread(self._fd, 200, 0).decode(errors="replace").strip()

    def _taken(self, holder: str) -> JournalTaken:
        return JournalTaken(
            f"{holder or 'another process'} is running this study: it holds {self._journal}",
            hint="wait for it, or stop it first (shoestring stop); to read only, use shoestring status or report",
        )

    def _refuse_if_alive(self, say: Callable[[str], None]) -> None:
        """We have the lock. Is the controller that is named in the file nevertheless alive?"""
        holder = self._holder()
        if not holder or _is_dead_here(holder):
            return
        touched, until = self._touched(), time.monotonic() + SILENCE_S
        say(f"{holder} has not released this run: waiting up to {SILENCE_S:g} s to see whether it is alive")
        while time.monotonic() < until:
            time.sleep(TOUCH_EVERY_S / 4)
            if self._touched() != touched:
                raise self._taken(holder)

    def _touched(self) -> int:
        """When the file was last touched. Opened anew: network file systems ask their server only then."""
        with open(self._path, "rb") as file:
            return os.fstat(file.fileno()).st_mtime_ns

    def _touch(self) -> None:
        while not self._over.wait(TOUCH_EVERY_S):
            with suppress(OSError):
                os.utime(self._fd)


def _is_dead_here(holder: str) -> bool:
    """Was this a process of this computer that no longer exists?"""
    try:
        pid, host = int(holder.split()[1]), holder.split()[-1]
    except (ValueError, IndexError):
        return False
    if host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _release_in_child() -> None:
    # A forked child shares the lock; left open there, it would outlive a controller killed with kill -9.
    for lock in list(_held):
        lock._close()


os.register_at_fork(after_in_child=_release_in_child)
