"""SqliteReader: the entries of a journal in order, each one checked against all before it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from shoestring.errors import JournalDamaged
from shoestring.kernel.codec import NewerFormat, decode_turn
from shoestring.kernel.past import Entry
from shoestring.storage import sqlite_file

_BATCH = 500
_RESTORE = "restore the journal from a copy; the entries before this one are sound"

Row = tuple[int, int, bytes, bytes | None, bytes]
"""seq, epoch, body, meta, link: a line of the table."""


def chained(before: bytes, epoch: int, body: bytes, meta: bytes | None) -> bytes:
    """The link of an entry: changes with every byte of it and of all entries before it."""
    return blake2b(b"%b%d%b%b" % (before, epoch, body, meta or b""), digest_size=12).digest()


class SqliteReader:
    """Reads a journal, also while a controller is writing to it. Sees what was durable when `read` began."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def read(self) -> Iterator[Entry]:
        """In short queries rather than one long one, whose snapshot would keep the writer's log from being recycled."""
        head_seq, head_link, last_seq = self._ends()
        seq, link = 0, b""
        while seq < head_seq:
            rows, failure = self._batch(seq, head_seq)
            for row in rows:
                entry, link = self._checked(row, seq + 1, link)
                seq += 1
                yield entry
            if failure is not None:
                raise self._damaged(seq + 1, f"cannot be read: {failure}") from failure
            if not rows:
                raise self._damaged(seq + 1, f"is missing: the journal should end with entry {head_seq}")
        if last_seq > head_seq:
            raise self._damaged(head_seq + 1, f"was added from outside: the journal ends with entry {head_seq}")
        if link != head_link:
            raise self._damaged(seq, "is not the one the journal ended with")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _ends(self) -> tuple[int, bytes, int]:
        """Number and link of the last entry by the head's account, and the last number in the table."""
        sql = "SELECT seq, link, (SELECT coalesce(max(seq), 0) FROM entries) FROM head"
        try:
            row = self._connection.execute(sql).fetchone()
        except sqlite3.Error as error:
            raise sqlite_file.explained(error, self.path, "read") from error
        if row is None or [type(value) for value in row] != [int, bytes, int]:
            raise JournalDamaged(f"{self.path} does not say where it ends", hint="restore the journal from a copy")
        return row  # type: ignore[no-any-return]

    def _batch(self, after: int, until: int) -> tuple[list[Row], sqlite3.Error | None]:
        """The next rows, and what stopped us from getting more of them."""
        sql = "SELECT seq, epoch, body, meta, link FROM entries WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        rows: list[Row] = []
        try:
            rows.extend(self._connection.execute(sql, (after, until, _BATCH)))
        except sqlite3.Error as error:
            return rows, error
        return rows, None

    def _checked(self, row: Row, expected: int, before: bytes) -> tuple[Entry, bytes]:
        seq, epoch, body, meta, link = row
        if seq != expected:
            raise self._damaged(expected, "is missing")
        typed = isinstance(epoch, int) and isinstance(body, bytes) and isinstance(meta, bytes | None)
        if not typed or chained(before, epoch, body, meta) != link:
            raise self._damaged(seq, "is not what was written: it, or the one before it, was changed or moved")
        try:
            event, decisions = decode_turn(body)
            measured = msgspec.json.decode(meta, type=dict[str, float]) if meta else {}
        except NewerFormat as error:
            raise self._damaged(seq, str(error), hint="pip install --upgrade shoestring") from error
        except (ValueError, msgspec.DecodeError) as error:
            raise self._damaged(seq, str(error)) from error
        return Entry(seq=seq, event=event, decisions=decisions, meta=measured), link

    def _damaged(self, seq: int, what: str, *, hint: str = "") -> JournalDamaged:
        return JournalDamaged(f"{self.path}: entry {seq} {what}", hint=hint or _RESTORE)
