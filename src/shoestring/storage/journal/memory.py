"""MemoryJournal: for simulations and tests. Entries stay objects; nothing is encoded until somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.errors import JournalTaken, StorageError
from shoestring.kernel.codec import encode_turn
from shoestring.kernel.history import Entry


class _Shelf:
    """What the handles on one journal share."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.epoch = 0


class MemoryJournal:
    """A journal that lives as long as this process."""

    def __init__(self, taken_from: MemoryJournal | None = None) -> None:
        """A new journal, or the next controller's handle on one: the earlier handle can then write no more."""
        self._shelf: _Shelf = _Shelf() if taken_from is None else taken_from._shelf
        self._shelf.epoch += 1
        self.epoch = self._shelf.epoch

    def read(self) -> Iterator[Entry]:
        return iter(self._shelf.entries[:])

    def append(self, entry: Entry, *, wait: bool) -> None:  # noqa: ARG002 - there is nothing to wait for
        shelf = self._shelf
        if shelf.epoch != self.epoch:
            raise JournalTaken(f"this controller (epoch {self.epoch}) lost the run to another (epoch {shelf.epoch})")
        if entry.seq != len(shelf.entries) + 1:
            raise StorageError(f"entry {entry.seq} does not follow entry {len(shelf.entries)}")
        shelf.entries.append(entry)

    def sync(self) -> None:
        """Nothing outlives the process, so there is nothing to make durable."""

    def close(self) -> None:
        """Nothing to let go of."""

    def dump(self) -> bytes:
        """All turns, one canonical line each: two runs are the same run if and only if these bytes are."""
        return b"".join(encode_turn(entry.event, entry.decisions) + b"\n" for entry in self._shelf.entries)
