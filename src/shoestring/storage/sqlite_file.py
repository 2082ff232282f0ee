"""The SQLite file under a journal: how one is made, recognised and opened, and what its errors mean in words."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from shoestring.errors import JournalDamaged, StorageError

APPLICATION_ID = 0x53484F45  # "SHOE" at byte 68 of the file: `file` and we can tell a journal from any other database
FORMAT = 1

_SCHEMA = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, body BLOB NOT NULL, meta BLOB, link BLOB NOT NULL
);
CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, seq INTEGER NOT NULL, link BLOB NOT NULL
);
INSERT INTO head VALUES (1, 0, 0, x'');
COMMIT;
"""
"""`link` chains each entry to all before it. `head` repeats the last entry's number and link, so that entries missing
at the end are noticed too, and it holds the epoch: every commit updates it and sees in passing whether it is ours."""


def create(path: Path) -> None:
    """Make a new journal appear whole: an empty or half-made file is then always damage, never a beginning."""
    log = Path(f"{path}-wal")
    if log.exists():  # SQLite would play the log of the lost file into the new one
        raise JournalDamaged(
            f"the journal {path} is gone, but its log {log.name} is still there",
            hint="put the file back, or remove the log too to begin anew",
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
        raise JournalDamaged(f"{path} is empty: what it held is gone", hint="restore it, or remove it to begin anew")
    uri = f"file:{quote(str(path.absolute()))}?mode={'ro' if readonly else 'rw'}"
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10.0)
        try:
            _recognise(connection, path)
        except sqlite3.OperationalError:
            # SQLite wants to write its index of the log even to read; with no log there is nothing to index, and in a
            # folder we cannot write to (an archive, a read-only mount) the file can be taken as it is.
            connection.close()
            if not readonly or Path(f"{path}-wal").exists():
                raise
            connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
            _recognise(connection, path)
    except sqlite3.Error as error:
        raise explained(error, path, "open") from error
    return connection


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION_ID and version <= FORMAT:
            return
    except BaseException:
        connection.close()
        raise
    connection.close()
    if application != APPLICATION_ID:
        raise StorageError(f"{path} is an SQLite file, but not a journal of shoestring", hint="choose another path")
    raise StorageError(
        f"{path} was written by a newer shoestring (format {version}; this one knows {FORMAT})",
        hint="pip install --upgrade shoestring",
    )


def explained(error: sqlite3.Error, path: Path, doing: str) -> StorageError:
    """What an SQLite error means for a run, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StorageError(
            f"the disk is full: cannot {doing} the journal {path}",
            hint="free some space and give the same command again; everything recorded before is safe",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return JournalDamaged(f"{path} is not a journal: {error}", hint="check the path, or restore the file")
    if code == sqlite3.SQLITE_CORRUPT:
        return JournalDamaged(f"{path} is damaged: {error}", hint="restore it from a copy")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageError(f"cannot {doing} the journal {path}: {error}", hint="check who may read and write there")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageError(
            f"cannot {doing} the journal {path}: another program keeps it locked",
            hint="close the program that has it open (an SQLite browser?) and give the same command again",
        )
    return StorageError(f"cannot {doing} the journal {path}: {error}", hint="check the disk")
