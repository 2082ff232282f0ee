"""The SQLite file under a journal: how it is created, recognised and opened, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from shoestring.errors import JournalDamaged, StorageError
from shoestring.storage.journal.private_copy import in_wal_mode, is_hot, private_copy

APPLICATION_ID = 0x53484F45  # "SHOE" at byte 68 of the file: tells a journal from any other database
FORMAT = 2
PAGE_BYTES = 2048
"""A commit writes whole pages, and a usual group is about 2 kB: SQLite's default of 4 kB takes a third more CPU."""

_SCHEMA = f"""
PRAGMA page_size = {PAGE_BYTES};
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE groups (
    first INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, lines BLOB, checks BLOB, link BLOB NOT NULL
);
INSERT INTO groups VALUES (1, 0, NULL, NULL, x'');
COMMIT;
"""
"""A group is what one commit recorded: from entry `first` on, one line each in `lines`, a checksum each in `checks`;
`link` chains it to all groups before it.

The last row is blank (`lines` is NULL): the place of the next group, with the link of the last one and the epoch of the
controller that may fill it. Filling it and adding the next blank is one statement, and no row is ever deleted, so
missing groups at the end are detected: the rest does not end with a blank, or with one that does not follow."""


def create(path: Path) -> None:
    """Create a new journal atomically: an empty or partial file is then always damage, never a new journal."""
    log, rollback = Path(f"{path}-wal"), Path(f"{path}-journal")
    for left in (log, rollback):  # SQLite would apply it to the new file
        if left.exists() and (left == log or is_hot(rollback)):
            raise JournalDamaged(
                f"the journal {path} is gone, but its log {left.name} is still there",
                hint="put the file back, or remove the log too to start a new run",
            )
    unfinished = path.with_name(path.name + ".new")
    try:
        unfinished.unlink(missing_ok=True)
        connection = sqlite3.connect(unfinished, isolation_level=None)
        try:
            connection.executescript(_SCHEMA)
        finally:
            connection.close()
        os.rename(unfinished, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except sqlite3.Error as error:
        raise explained(error, path, "create") from error
    except OSError as error:
        raise StorageError(f"cannot create the journal {path}: {error.strerror}") from error


def connect(path: Path, *, shared: bool) -> sqlite3.Connection:
    """Open a journal for writing, after making sure that it is one."""
    _check_file(path)
    try:
        if shared and in_wal_mode(path):
            _leave_wal_mode(path)
        connection = sqlite3.connect(_uri(path, "rw"), uri=True, isolation_level=None, timeout=_patience_s(shared))
        _recognise(connection, path)
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        raise _not_opened(error, path) from error
    return connection


def connect_readonly(path: Path, *, shared: bool) -> sqlite3.Connection:
    """Open a journal for reading. Nothing is written in its folder that has to be shared with other computers.

    SQLite's own way of reading takes a lock and needs, for a log of a local disk, an index of it in shared memory. If
    that is not to be had, or a crash has left something to roll back, a private copy is read instead."""
    _check_file(path)
    try:
        if shared and in_wal_mode(path):
            return _recognised(private_copy(path), path)
        try:
            plain = sqlite3.connect(_uri(path, "ro"), uri=True, isolation_level=None, timeout=_patience_s(False))
            return _recognised(plain, path)
        except sqlite3.OperationalError as error:
            # In a folder we cannot write to (an archive, a read-only mount) SQLite can neither index the log nor roll
            # back. Without either to be done the file can be read as it is.
            if error.sqlite_errorcode & 0xFF not in (
                sqlite3.SQLITE_READONLY,
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_IOERR,
            ):
                raise
            if Path(f"{path}-wal").exists() or is_hot(Path(f"{path}-journal")):
                return _recognised(private_copy(path), path)
            return _recognised(sqlite3.connect(f"{_uri(path, 'ro')}&immutable=1", uri=True, isolation_level=None), path)
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        raise _not_opened(error, path) from error


def _patience_s(shared: bool) -> float:
    """How long to wait for a lock. A file server keeps that of a reader whose computer died, NFS for 90 s."""
    return 120.0 if shared else 10.0


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise StorageError(f"{path} is a folder, not a journal", hint="name the file inside it")
    if not path.exists():
        raise StorageError(f"there is no journal at {path}", hint="check the path, or start a run first")
    if path.stat().st_size == 0:
        raise JournalDamaged(f"{path} is empty: its entries are lost", hint="restore it, or remove it to start anew")


def _leave_wal_mode(path: Path) -> None:
    """Move what is in the log to the file, once and for all. With the file locked as a whole, which SQLite can do
    without shared memory: another computer that still uses the log keeps us out."""
    with closing(sqlite3.connect(_uri(path, "rw"), uri=True, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = PERSIST")
    Path(f"{path}-shm").unlink(missing_ok=True)


def _recognised(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    _recognise(connection, path)
    return connection


def _not_opened(error: Exception, path: Path) -> StorageError:
    if isinstance(error, UnicodeDecodeError):  # SQLite quotes the damaged bytes of a schema unchanged
        return JournalDamaged(f"{path} is damaged: its schema cannot be read", hint="restore it from a copy")
    if isinstance(error, sqlite3.Error):
        return explained(error, path, "open")
    why = error.strerror if isinstance(error, OSError) else error
    return StorageError(f"cannot read the journal {path}: {why}", hint="check the permissions there")


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("SELECT name FROM sqlite_master").fetchall()  # only this detects a damaged schema
        if application == APPLICATION_ID and version == FORMAT:
            return
    except BaseException:
        connection.close()
        raise
    connection.close()
    if application != APPLICATION_ID:
        raise StorageError(f"{path} is an SQLite file, but not a journal of shoestring", hint="choose another path")
    newer = version > FORMAT
    raise StorageError(
        f"{path} was written by {'a newer' if newer else 'an older'} shoestring"
        f" (format {version}; this one knows {FORMAT})",
        hint="pip install --upgrade shoestring"
        if newer
        else "resume with the version that wrote it, or start a new run",
    )


def explained(error: sqlite3.Error, path: Path, doing: str) -> StorageError:
    """What an SQLite error means for a run, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StorageError(
            f"the disk is full: cannot {doing} the journal {path}",
            hint="free some space and run the same command again to resume; everything recorded before is safe",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return JournalDamaged(f"{path} is not a journal: {error}", hint="check the path, or restore the file")
    if code == sqlite3.SQLITE_CORRUPT:
        return JournalDamaged(f"{path} is damaged: {error}", hint="restore it from a copy")
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK:
        return JournalDamaged(
            f"a killed controller left {path} halfway through a commit",
            hint="resume the run: that undoes the half; or look again, for a reader that is opened now reads past it",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageError(f"cannot {doing} the journal {path}: {error}", hint="check the permissions there")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageError(
            f"cannot {doing} the journal {path}: another program holds a lock on it",
            hint="close the program that has it open (an SQLite browser?) and run the same command again",
        )
    return StorageError(f"cannot {doing} the journal {path}: {error}", hint="check the disk")
