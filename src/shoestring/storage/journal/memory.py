"""MemoryJournal: for simulations and tests. Entries stay objects; nothing is encoded before `dump`."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.errors import JournalTaken, StorageError
from shoestring.kernel.codec import encode_turn
from shoestring.kernel.history import Entry


class _Shared:
    """What the handles on one journal share."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.epoch = 0


class MemoryJournal:
    """A journal that lasts as long as this process."""

    def __init__(self, taken_from: MemoryJournal | None = None) -> None:
        """A new journal, or the next controller's handle on one: the earlier handle can then no longer write."""
        self._shared: _Shared = _Shared() if taken_from is None else taken_from._shared
        self._shared.epoch += 1
        self.epoch = self._shared.epoch

    def read(self) -> Iterator[Entry]:
        return iter(self._shared.entries[:])

    def append(self, entry: Entry, *, wait: bool) -> None:  # noqa: ARG002 - there is nothing to wait for
        shared = self._shared
        if shared.epoch != self.epoch:
            raise JournalTaken(
                f"controller {shared.epoch} took over the run: this one ({self.epoch}) can no longer write"
            )
        if entry.seq != len(shared.entries) + 1:
            raise StorageError(f"entry {entry.seq} does not follow entry {len(shared.entries)}")
        shared.entries.append(entry)

    def sync(self) -> None:
        """Nothing outlives the process, so there is nothing to make durable."""

    def close(self) -> None:
        """Nothing to close."""

    def dump(self) -> bytes:
        """All turns, one canonical line each: two runs are the same run if and only if these bytes are."""
        return b"".join(encode_turn(entry.event, entry.decisions) + b"\n" for entry in self._shared.entries)
