"""private_copy: a journal as of now, read without a lock on it, without a file beside it, and without writing to it.

For a reader on another computer than the controller, or in a folder it cannot write to. What a controller that is
writing at the same time has changed halfway through the copy is found by the reader, as damage is, and read again.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

_TRIES = 20
_PAUSE_S = 0.1
_PARTS = ("", "-wal", "-journal")
"""The file, the log of what is to be added to it, and the log of what is to be restored in it after a crash."""


def in_wal_mode(path: Path) -> bool:
    """Does this file say that it has a write-ahead log? SQLite, asked the same, would begin to use it.

    Only for files on shared file systems: a process that closes a file loses all of SQLite's locks on it. There they
    are held during a statement only, by the one thread of the controller."""
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\x02\x02"


def is_hot(rollback: Path) -> bool:
    """Does this log hold what a killed controller changed halfway? One that is done with begins with a zero."""
    with suppress(FileNotFoundError), rollback.open("rb") as file:
        return file.read(1) not in (b"", b"\0")
    return False


def private_copy(path: Path) -> sqlite3.Connection:
    """A connection to the copy, which takes no place on disk once the connection is closed."""
    with TemporaryDirectory(prefix="shoestring-") as scratch:
        copy = Path(scratch) / "journal"
        for _ in range(_TRIES):
            before = _changes(path)
            _copy(path, copy)
            if _changes(path) == before:
                break
            time.sleep(_PAUSE_S)
        with closing(sqlite3.connect(copy, isolation_level=None)) as recovering:
            recovering.execute("PRAGMA locking_mode = EXCLUSIVE")
            recovering.execute("PRAGMA journal_mode = DELETE")  # all in one file, which can stay open when it is gone
        connection = sqlite3.connect(f"file:{quote(str(copy))}?mode=ro&immutable=1", uri=True, isolation_level=None)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return connection


def _copy(path: Path, copy: Path) -> None:
    for part in _PARTS:
        target = Path(f"{copy}{part}")
        target.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{path}{part}", target)


def _changes(path: Path) -> list[tuple[int, int]]:
    """Differs after every write. Opened anew: network file systems ask their server only then."""
    found = []
    for part in _PARTS:
        try:
            with open(f"{path}{part}", "rb") as file:
                stat = os.fstat(file.fileno())
            found.append((stat.st_size, stat.st_mtime_ns))
        except FileNotFoundError:
            found.append((0, 0))
    return found
