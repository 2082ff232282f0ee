"""SqliteJournal: one file, one writer, any number of readers that never make it wait.

Entries go to disk in groups, each group in one transaction that also checks the epoch. A group is written when an
append asks to wait, on `sync()`, or when it has grown old or long enough; age is looked at when an entry is appended,
so there is no thread.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

from shoestring.errors import JournalDamaged, JournalTaken, StorageError
from shoestring.kernel.codec import encode_turn
from shoestring.kernel.past import Entry
from shoestring.storage import sqlite_file
from shoestring.storage.lock import WriterLock
from shoestring.storage.sqlite_reader import Row, SqliteReader, chained

GROUP_ENTRIES = 100
GROUP_S = 0.2


class SqliteJournal(SqliteReader):
    """The journal of a real run. Made by `open`; `open_readonly` gives a reader."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock) -> None:
        super().__init__(path, connection)
        self._lock = lock
        self._group: list[Row] = []
        self._group_since = 0.0
        self.epoch = self._take()
        self._durable = self._ends()[:2]

    @classmethod
    def open(cls, path: str | Path, *, survives_power_loss: bool = True) -> Self:
        """Take the journal for writing, making it if there is none.

        With `survives_power_loss` a waiting append ends with the disk's word (synchronous=FULL: 0.3 ms here, half of
        it CPU). Without (NORMAL: 0.03 ms) it survives kill -9, and a power cut costs the last entries at most, never
        the order. That is enough where machines and jobs are processes of this computer: they are gone with the power
        too. It is not where a forgotten lease goes on costing money.
        """
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"cannot make the folder {path.parent}: {error.strerror}", hint="give a folder you may write to"
            ) from error
        lock = WriterLock(path)
        connection: sqlite3.Connection | None = None
        try:
            if not path.exists():
                sqlite_file.create(path)
            connection = sqlite_file.connect(path, readonly=False)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA synchronous = {'FULL' if survives_power_loss else 'NORMAL'}")
            except sqlite3.Error as error:
                raise sqlite_file.explained(error, path, "open") from error
            return cls(path, connection, lock)
        except BaseException:
            if connection is not None:
                connection.close()
            lock.release()
            raise

    @classmethod
    def open_readonly(cls, path: str | Path) -> SqliteReader:
        """For looking only: takes no lock and no epoch."""
        path = Path(path)
        return SqliteReader(path, sqlite_file.connect(path, readonly=True))

    def read(self) -> Iterator[Entry]:
        self.sync()
        return super().read()

    def append(self, entry: Entry, *, wait: bool) -> None:
        group = self._group
        seq, before = self._last()
        if entry.seq != seq + 1:
            raise StorageError(f"entry {entry.seq} does not follow entry {seq} of {self.path}")
        body = encode_turn(entry.event, entry.decisions)
        meta = msgspec.json.encode(entry.meta) if entry.meta else None
        link = chained(before, self.epoch, body, meta)
        now = time.monotonic()
        if not group:
            self._group_since = now
        group.append((entry.seq, self.epoch, body, meta, link))
        if wait or len(group) >= GROUP_ENTRIES or now - self._group_since >= GROUP_S:
            try:
                self.sync()
            except BaseException:
                if group:  # what the caller is told was not recorded must not slip in with a later group
                    group.pop()
                raise

    def sync(self) -> None:
        if not self._group:
            return
        connection, last = self._connection, self._last()
        try:
            connection.execute("BEGIN IMMEDIATE")
            head = connection.execute("UPDATE head SET seq = ?, link = ? WHERE epoch = ?", (*last, self.epoch))
            if head.rowcount != 1:
                raise JournalTaken(
                    f"another controller took over {self.path}: this one (epoch {self.epoch}) can write no more",
                    hint="leave the run to the other one; nothing that was recorded is lost",
                )
            connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", self._group)
            connection.execute("COMMIT")
            self._durable = last
            self._group.clear()
        except sqlite3.Error as error:
            self._roll_back()
            raise sqlite_file.explained(error, self.path, "write to") from error
        except BaseException:
            self._roll_back()
            self._forget_recorded()
            raise

    def close(self) -> None:
        """Write what is left and let the journal go; safe to call twice."""
        try:
            self.sync()
        finally:
            self._group.clear()
            self._connection.close()
            self._lock.release()

    def _last(self) -> tuple[int, bytes]:
        """Number and link of the last entry appended, durable or not."""
        if self._group:
            row = self._group[-1]
            return row[0], row[4]
        return self._durable

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # some errors have ended the transaction already
            self._connection.execute("ROLLBACK")

    def _forget_recorded(self) -> None:
        """A Ctrl-C may arrive just after COMMIT: ask the file which entries of the group it has."""
        seq, link, _ = self._ends()
        if any(row[0] == seq and row[4] == link for row in self._group):
            self._durable = seq, link
            self._group.clear()

    def _take(self) -> int:
        try:
            row = self._connection.execute("UPDATE head SET epoch = epoch + 1 RETURNING epoch").fetchone()
        except sqlite3.Error as error:
            raise sqlite_file.explained(error, self.path, "write to") from error
        if row is None:
            raise JournalDamaged(f"{self.path} does not say where it ends", hint="restore the journal from a copy")
        return int(row[0])
