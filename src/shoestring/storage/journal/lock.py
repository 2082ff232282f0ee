"""WriterLock: one live controller per journal, by a lock that the operating system releases when its process dies."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import weakref
from contextlib import suppress
from pathlib import Path

from shoestring.errors import JournalTaken, StorageError

_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """Holds `<journal>.lock` from construction to `release()`. The file stays: removing it would be a race."""

    def __init__(self, journal: Path) -> None:
        path = journal.with_name(journal.name + ".lock")
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(
                f"cannot write beside the journal {journal}: {error.strerror}",
                hint="give a folder you may write to",
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._fd, 200, 0).decode(errors="replace").strip() or "another process"
            self.release()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise StorageError(
                    f"cannot lock {path}: {error.strerror}",
                    hint="keep the run on a disk of this machine: this file system has no locks",
                ) from error
            raise JournalTaken(
                f"{holder} is running this study: it holds {journal}",
                hint="wait for it, or stop it first (shoestring stop); to read only, use shoestring status or report",
            ) from error
        with suppress(OSError):  # on a full disk the lock still holds, only without the name of its holder
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        _held.add(self)

    def release(self) -> None:
        _held.discard(self)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _release_in_child() -> None:
    # A forked child shares the lock; left open there, it would outlive a controller killed with kill -9.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_release_in_child)
