"""The SQLite file under a journal: how it is created, recognised and opened, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from shoestring.errors import JournalDamaged, StorageError

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
    log = Path(f"{path}-wal")
    if log.exists():  # SQLite would apply the log of the lost file to the new one
        raise JournalDamaged(
            f"the journal {path} is gone, but its log {log.name} is still there",
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


def connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """Open a journal, after making sure that it is one."""
    if path.is_dir():
        raise StorageError(f"{path} is a folder, not a journal", hint="name the file inside it")
    if not path.exists():
        raise StorageError(f"there is no journal at {path}", hint="check the path, or start a run first")
    if path.stat().st_size == 0:
        raise JournalDamaged(f"{path} is empty: its entries are lost", hint="restore it, or remove it to start anew")
    uri = f"file:{quote(str(path.absolute()))}?mode={'ro' if readonly else 'rw'}"
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10.0)
        try:
            _recognise(connection, path)
        except sqlite3.OperationalError:
            # SQLite writes its index of the log even to read; without a log there is nothing to index, and in a folder
            # we cannot write to (an archive, a read-only mount) the file can be read as it is.
            connection.close()
            if not readonly or Path(f"{path}-wal").exists():
                raise
            connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
            _recognise(connection, path)
    except UnicodeDecodeError as error:  # SQLite quotes the damaged bytes of a schema unchanged
        raise JournalDamaged(f"{path} is damaged: its schema cannot be read", hint="restore it from a copy") from error
    except sqlite3.Error as error:
        raise explained(error, path, "open") from error
    return connection


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
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageError(f"cannot {doing} the journal {path}: {error}", hint="check the permissions there")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageError(
            f"cannot {doing} the journal {path}: another program holds a lock on it",
            hint="close the program that has it open (an SQLite browser?) and run the same command again",
        )
    return StorageError(f"cannot {doing} the journal {path}: {error}", hint="check the disk")
