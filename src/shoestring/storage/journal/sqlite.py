"""SqliteJournal: one file, one writer, any number of readers that never make it wait for long.

Entries go to disk in groups, each by one statement that also checks the epoch. A group is written when an append
waits, on `sync()`, or when it is old or long enough; its age is checked when an entry is appended, so there is no
thread. Reports are most of the traffic, hence the little work per entry.

On a disk of this computer SQLite keeps a write-ahead log (WAL). Its index is shared memory, which readers on other
computers do not see. So on a file system that may be shared SQLite locks the file for each commit instead, and keeps
what the commit replaces in a rollback log (PERSIST). Of its modes this one copes with cached names and sizes: the log
is never removed or cut, and whether it counts is written in it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Self

from shoestring.errors import JournalDamaged, JournalTaken, StorageError
from shoestring.kernel.codec import encode_turn
from shoestring.kernel.history import Entry
from shoestring.storage.file_system import FileSystem, file_system_of
from shoestring.storage.journal import sqlite_file
from shoestring.storage.journal.half_written import until_whole
from shoestring.storage.journal.lock import WriterLock
from shoestring.storage.journal.sqlite_reader import SqliteReader, chained, checksums, with_measured

GROUP_ENTRIES = 100
GROUP_S = 0.2

_TAKE_THE_BLANK = """
UPDATE groups SET epoch = epoch + 1
WHERE first = (SELECT max(first) FROM groups) AND lines IS NULL AND typeof(epoch) = 'integer' AND typeof(link) = 'blob'
RETURNING epoch, first, link
"""
_FILL_THE_BLANK = """
INSERT INTO groups VALUES (?1, ?2, ?3, ?4, ?5), (?6, ?2, NULL, NULL, ?5)
ON CONFLICT (first) DO UPDATE SET
    epoch = CASE WHEN epoch = excluded.epoch AND lines IS NULL THEN epoch END,
    lines = excluded.lines, checks = excluded.checks, link = excluded.link
"""
"""Turns the blank at the end into a group and adds a new blank after it. If the blank is another controller's, or was
filled by one, the epoch becomes NULL, which the table forbids: the statement fails as a whole."""


class SqliteJournal(SqliteReader):
    """The journal of a real run. Made by `open`; `open_readonly` gives a reader."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock) -> None:
        super().__init__(path, connection)
        self._lock = lock
        self._lines: list[bytes] = []
        """The group under way: entries appended and not yet written."""
        self._since = 0.0
        self.epoch, self._first, self._link = self._take()

    @classmethod
    def open(
        cls, path: str | Path, *, survives_power_loss: bool = True, say: Callable[[str], None] = lambda _: None
    ) -> Self:
        """Open the journal for writing, creating it if there is none.

        With `survives_power_loss` a waiting append returns once the disk confirms it (synchronous=FULL: 0.3 ms here,
        half of it CPU). Without (NORMAL: 0.03 ms) it survives kill -9, and a power cut costs the last entries at most,
        never the order. That is enough where machines and jobs are processes of this computer: a power cut ends them
        too. It is not where a forgotten lease keeps costing money. On a shared file system every append that waits
        returns once the server confirms it. `say` is told what is done there.
        """
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"cannot make the folder {path.parent}: {error.strerror}", hint="give a folder you may write to"
            ) from error
        system = file_system_of(path.parent)
        lock = WriterLock(path, shared=system.is_shared, say=say)
        try:
            if not path.exists():
                sqlite_file.create(path)
            if not system.is_shared:
                return cls._opened(path, lock, mode="WAL", synchronous="FULL" if survives_power_loss else "NORMAL")
            journal = until_whole(lambda: cls._opened(path, lock, mode="PERSIST", synchronous="FULL"))
        except BaseException:
            lock.release()
            raise
        say(_on_a_shared(system, path))
        return journal

    @classmethod
    def _opened(cls, path: Path, lock: WriterLock, *, mode: str, synchronous: str) -> Self:
        connection = sqlite_file.connect(path, shared=mode != "WAL")
        try:
            try:
                connection.execute(f"PRAGMA journal_mode = {mode}")
                connection.execute(f"PRAGMA synchronous = {synchronous}")
            except sqlite3.Error as error:
                raise sqlite_file.explained(error, path, "open") from error
            return cls(path, connection, lock)
        except BaseException:
            connection.close()
            raise

    @classmethod
    def open_readonly(cls, path: str | Path) -> SqliteReader:
        """For reading only: takes no lock and no epoch."""
        path = Path(path)
        if not file_system_of(path.parent).is_shared:
            return SqliteReader(path, sqlite_file.connect_readonly(path, shared=False))

        def connect() -> sqlite3.Connection:
            return sqlite_file.connect_readonly(path, shared=True)

        return SqliteReader(path, until_whole(connect), reconnect=connect)

    def read(self) -> Iterator[Entry]:
        self.sync()
        return super().read()

    def append(self, entry: Entry, *, wait: bool) -> None:
        lines = self._lines
        if entry.seq != self._first + len(lines):
            last = self._first + len(lines) - 1
            raise StorageError(f"entry {entry.seq} does not follow entry {last} of {self.path}")
        line = encode_turn(entry.event, entry.decisions)
        if entry.meta:
            line = with_measured(line, entry.meta)
        lines.append(line)
        if not wait:
            now = monotonic()
            if len(lines) == 1:
                self._since = now
            if len(lines) < GROUP_ENTRIES and now - self._since < GROUP_S:
                return
        try:
            self.sync()
        except BaseException:
            if lines:  # an entry reported as not recorded must not be written with a later group
                lines.pop()
            raise

    def sync(self) -> None:
        lines = self._lines
        if not lines:
            return
        first, after = self._first, self._first + len(lines)
        text, checks = b"\n".join(lines), checksums(first, lines)
        link = chained(self._link, first, self.epoch, text, checks)
        self._lock.check()
        try:
            self._connection.execute(_FILL_THE_BLANK, (first, self.epoch, text, checks, link, after))
            self._recorded(after, link)
        except sqlite3.IntegrityError as error:
            raise JournalTaken(
                f"another controller took over {self.path}: this one (epoch {self.epoch}) can no longer write",
                hint="leave the run to the other one; no recorded entry is lost",
            ) from error
        except sqlite3.Error as error:
            raise sqlite_file.explained(error, self.path, "write to") from error
        except BaseException:
            if self._end() == (after, link):  # a Ctrl-C that came just after the commit
                self._recorded(after, link)
            raise

    def close(self) -> None:
        """Write what is left and release the journal; safe to call twice."""
        try:
            self.sync()
        finally:
            self._lines.clear()
            self._connection.close()
            self._lock.release()

    def _recorded(self, after: int, link: bytes) -> None:
        self._first, self._link = after, link
        self._lines.clear()

    def _take(self) -> tuple[int, int, bytes]:
        """Claim the blank at the end: its new epoch, its position, and the link of the last group."""
        self._lock.check()
        try:
            rows = self._connection.execute(_TAKE_THE_BLANK).fetchall()
        except sqlite3.Error as error:
            raise sqlite_file.explained(error, self.path, "write to") from error
        if rows:
            return rows[0]  # type: ignore[no-any-return]
        for _ in super().read():  # raises, with the number of the missing entry
            pass
        raise JournalDamaged(f"{self.path} does not say where it ends", hint="restore the journal from a copy")


def _on_a_shared(system: FileSystem, path: Path) -> str:
    text = (
        f"{path.parent} is on {system.kind}, which other computers may share: the journal is kept in a form that they"
        " can read while it is written, and every commit waits for the file server"
    )
    if system.local_locks:
        text += f". Locks do not reach them ({system.local_locks}): resume this run on this computer only"
    return text
