"""The journal: what happened and what was decided, entry by entry. A run is the fold of it and nothing else.

Laws of every journal, checked by `shoestring.testing.journal_suite`:
an entry is recorded whole or not at all; entries are numbered from 1 without a gap; what was appended with `wait`
survives kill -9, with all entries before it; an append that raises has recorded nothing of its entry; a controller that
lost its journal to another one gets JournalTaken; damage is reported with the number of its entry, never skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from shoestring.kernel.history import Entry


class JournalReader(Protocol):
    """Read access to a run, which another process may be driving."""

    def read(self) -> Iterator[Entry]:
        """All entries in order. At a damaged one: those before it first, then JournalDamaged."""
        ...

    def close(self) -> None: ...


class Journal(JournalReader, Protocol):
    """The one place where a run is recorded, held by one controller at a time."""

    @property
    def epoch(self) -> int:
        """The number of this holder of the journal: 1 for the first, one more with every opening."""
        ...

    def append(self, entry: Entry, *, wait: bool) -> None:
        """Record an entry. With `wait` it is durable on return; without, it may sit in a group for a moment."""
        ...

    def sync(self) -> None:
        """Make everything appended so far durable."""
        ...
