"""A run's journal, folded once per start: read before the journal is locked, and read on once it is."""

from __future__ import annotations

from contextlib import closing

from shoestring.kernel.history import RecordedEvents
from shoestring.kernel.state import RunState
from shoestring.report.study import Study
from shoestring.report.trials import Tally
from shoestring.runs.folder import RunFolder
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.storage.journal.sqlite_reader import Mark, SqliteReader


class Replayed:
    """What the journal in a run's folder says so far; nothing if there is none."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.past = RecordedEvents()
        self.tally = Tally()
        self._mark = Mark()
        if folder.exists():
            with closing(SqliteJournal.open_readonly(folder.journal)) as reader:
                self.read_on(reader)

    @property
    def state(self) -> RunState:
        return self.tally.state

    @property
    def study(self) -> Study:
        """The results as of the entries read, or watched by the tally, so far."""
        return Study(self.folder.entries, self.folder, self.tally)

    def read_on(self, journal: SqliteReader) -> None:
        """Fold what was recorded since: between the first look and the lock another controller may have written."""
        for entry in journal.read_on(self._mark):
            self.tally.add(entry)
            self.past.replayed(entry)
