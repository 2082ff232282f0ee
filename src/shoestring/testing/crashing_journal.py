"""CrashingJournal: kills the controller at a chosen entry, just before or just after it was recorded."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel.history import Entry
from shoestring.storage.journal.protocol import Journal


class Crash(BaseException):
    """Simulates kill -9: not an Exception, so that no ordinary handler catches it."""


class CrashingJournal:
    """Wraps a journal and raises Crash around the n-th append made through it, counted from 1.

    From then on the process counts as dead: clean-up code that still runs can write nothing. With `loses_groups`,
    entries appended without `wait` are held back until one with `wait` comes, and lost in the crash, as on a real disk.
    """

    def __init__(
        self,
        inner: Journal,
        *,
        crash_before: int | None = None,
        crash_after: int | None = None,
        loses_groups: bool = False,
    ) -> None:
        self.inner = inner
        self.appends = 0
        self.crashed = False
        self._crash_before, self._crash_after, self._loses_groups = crash_before, crash_after, loses_groups
        self._held: list[Entry] = []

    @property
    def epoch(self) -> int:
        return self.inner.epoch

    def read(self) -> Iterator[Entry]:
        self.sync()
        return self.inner.read()

    def append(self, entry: Entry, *, wait: bool) -> None:
        self._check_alive()
        self.appends += 1
        if self.appends == self._crash_before:
            self._crash()
        if self._loses_groups and not wait:
            self._held.append(entry)
        else:
            self._pass_on()
            self.inner.append(entry, wait=wait)
        if self.appends == self._crash_after:
            self._crash()

    def sync(self) -> None:
        self._check_alive()
        self._pass_on()
        self.inner.sync()

    def close(self) -> None:
        """Closes the inner journal; what a crash lost stays lost."""
        if not self.crashed:
            self._pass_on()
        self.inner.close()

    def _pass_on(self) -> None:
        for entry in self._held:
            self.inner.append(entry, wait=False)
        self._held.clear()

    def _check_alive(self) -> None:
        if self.crashed:
            raise Crash("the controller is dead")

    def _crash(self) -> None:
        self.crashed = True
        self._held.clear()
        raise Crash(f"at append {self.appends}")
