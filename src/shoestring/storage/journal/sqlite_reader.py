"""SqliteReader: the entries of a journal in order, each group of them checked against all before it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from pathlib import Path
from struct import pack
from types import TracebackType
from typing import Self
from zlib import crc32

import msgspec

from shoestring.errors import JournalDamaged
from shoestring.kernel.codec import NewerFormat, decode_turn
from shoestring.kernel.history import Entry
from shoestring.storage.journal import sqlite_file
from shoestring.storage.journal.half_written import tries, until_whole

_BATCH = 50
_RESTORE = "restore the journal from a copy; the entries before this one are intact"
_COLUMNS = "first, epoch, lines, checks, link"

Row = tuple[int, int, bytes | None, bytes | None, bytes]
"""A group by its columns, or, with None for lines and checks, the blank place after the last one."""


@dataclass
class Mark:
    """The position of a reader: the last group it has read whole, its last entry and its link."""

    row: int = 0
    seq: int = 0
    link: bytes = b""


def with_measured(turn: bytes, meta: dict[str, float]) -> bytes:
    """The line of an entry that has measured times. JSON escapes tabs and line ends, so both can be separators."""
    return b"%b\t%b" % (turn, msgspec.json.encode(meta))


def checksums(first: int, lines: Sequence[bytes]) -> bytes:
    """One for each line, to find the damaged one; a line in the place of another does not match either."""
    return pack(f"<{len(lines)}I", *map(crc32, lines, count(first)))


def chained(before: bytes, first: int, epoch: int, lines: bytes, checks: bytes) -> bytes:
    """The link of a group: changes with every byte of it and of all groups before it."""
    return blake2b(b"%b%d %d %b%b" % (before, first, epoch, checks, lines), digest_size=12).digest()


class SqliteReader:
    """Reads a journal, also while a controller is writing to it. Sees what was durable when `read` began."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, reconnect: Callable[[], sqlite3.Connection] | None = None
    ) -> None:
        self.path = path
        self._connection = connection
        self._reconnect = reconnect
        """On a shared file system, whose caches are up to date only in a file that was just opened."""
        self._is_new = True

    def read(self) -> Iterator[Entry]:
        return self.read_on(Mark())

    def read_on(self, mark: Mark) -> Iterator[Entry]:
        """The entries after the mark, which moves along: for a reader that has read the rest and needs the new ones."""
        if self._reconnect is None:
            yield from self._read_on(mark)
            return
        last = mark.seq
        for is_last_try in tries():
            try:
                self._renew()
                for entry in self._read_on(mark):
                    if entry.seq > last:
                        last = entry.seq
                        yield entry
                return
            except JournalDamaged:
                if is_last_try:
                    raise

    def _renew(self) -> None:
        """Open the file anew where that matters, but for the first time."""
        if self._reconnect is not None and not self._is_new:
            self._connection.close()
            self._connection = self._reconnect()
        self._is_new = False

    def _read_on(self, mark: Mark) -> Iterator[Entry]:
        """In short queries rather than one long one, whose snapshot would keep the writer's log from being recycled."""
        end = self._end()
        while rows := self._batch(mark.row, end):
            for row in rows:
                if isinstance(row, sqlite3.Error):
                    raise self._damaged(mark.seq + 1, f"cannot be read: {row}") from row
                seq = mark.seq
                for entry in self._checked(row, mark.seq + 1, mark.link):
                    seq = entry.seq
                    yield entry
                mark.row, mark.seq, mark.link = row[0], seq, row[4]
        seq, link = mark.seq, mark.link
        if end is None:
            raise self._damaged(seq + 1, "is missing: the journal has no end mark before it")
        if seq + 1 < end[0]:
            raise self._damaged(seq + 1, f"is missing: the journal should end with entry {end[0] - 1}")
        if end != (seq + 1, link):
            raise self._damaged(seq, "is not the one the journal ended with")

    def mark_before(self, seq: int) -> Mark:
        """The mark from which to read this entry and those after it: the end of the group before its own. Earlier
        entries are not checked."""
        return self._mark_before(seq) if self._reconnect is None else until_whole(lambda: self._mark_before(seq))

    def _mark_before(self, seq: int) -> Mark:
        self._renew()
        sql = "SELECT first, link FROM groups WHERE first <= ? ORDER BY first DESC LIMIT 2"
        try:
            rows = self._connection.execute(sql, (seq,)).fetchall()
        except sqlite3.Error as error:
            raise sqlite_file.explained(error, self.path, "read") from error
        if len(rows) < 2:
            return Mark()
        (own, _), (before, link) = rows
        return Mark(before, own - 1, link)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _end(self) -> tuple[int, bytes] | None:
        """The number of the next entry and the link of the last group; None if the blank row with them is gone."""
        try:
            row = self._connection.execute(f"SELECT {_COLUMNS} FROM groups ORDER BY first DESC LIMIT 1").fetchone()
        except sqlite3.Error as error:
            raise sqlite_file.explained(error, self.path, "read") from error
        if row is None or [type(value) for value in row] != [int, int, type(None), type(None), bytes]:
            return None
        return row[0], row[4]

    def _batch(self, after: int, end: tuple[int, bytes] | None) -> list[Row | sqlite3.Error]:
        """The next rows before the end and, if an error prevented reading more of them, the error."""
        sql = f"SELECT {_COLUMNS} FROM groups WHERE first > ? AND first < ? ORDER BY first LIMIT ?"
        rows: list[Row | sqlite3.Error] = []
        try:
            rows.extend(self._connection.execute(sql, (after, 1 << 62 if end is None else end[0], _BATCH)))
        except sqlite3.Error as error:
            rows.append(error)
        return rows

    def _checked(self, row: Row, expected: int, before: bytes) -> Iterator[Entry]:
        """The entries of a group. If it is not what was written, those before the first damaged one."""
        first, epoch, text, checks, link = row
        if first != expected:
            raise self._damaged(expected, "is missing")
        if text is None:
            raise self._damaged(expected, "is missing: its place is blank, but the journal does not end there")
        if not (isinstance(epoch, int) and isinstance(text, bytes) and isinstance(checks, bytes)):
            raise self._damaged(first, "is not what was written")
        lines = text.split(b"\n")
        intact = len(lines)
        damage = ""
        if chained(before, first, epoch, text, checks) != link:
            intact, damage = _diagnosed(first, lines, checks)
        for seq, line in enumerate(lines[:intact], first):
            yield self._entry(seq, line)
        if damage:
            raise self._damaged(first + intact, damage)

    def _entry(self, seq: int, line: bytes) -> Entry:
        body, _, meta = line.partition(b"\t")
        try:
            event, decisions = decode_turn(body)
            measured = msgspec.json.decode(meta, type=dict[str, float]) if meta else {}
        except NewerFormat as error:
            raise self._damaged(seq, str(error), hint="pip install --upgrade shoestring") from error
        except (ValueError, msgspec.DecodeError) as error:
            raise self._damaged(seq, str(error)) from error
        return Entry(seq=seq, event=event, decisions=decisions, meta=measured)

    def _damaged(self, seq: int, what: str, *, hint: str = "") -> JournalDamaged:
        return JournalDamaged(f"{self.path}: entry {seq} {what}", hint=hint or _RESTORE)


def _diagnosed(first: int, lines: Sequence[bytes], checks: bytes) -> tuple[int, str]:
    """How many entries of a damaged group come before the damage, and what it is."""
    now = checksums(first, lines)
    width = len(now) // len(lines)
    for index in range(len(lines)):
        spot = slice(index * width, (index + 1) * width)
        if now[spot] != checks[spot]:
            return index, "is not what was written: it was changed or moved"
    if len(now) < len(checks):
        return len(lines), "is missing"
    # Each line matches its checksum, so the group was moved, or a line together with its checksum.
    last = first + len(lines) - 1
    return 0, f"is not what was written, or another one of its group, which ends with entry {last}"
