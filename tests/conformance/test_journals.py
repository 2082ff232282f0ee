"""The journals we ship satisfy the laws of journals."""

from pathlib import Path

import pytest

from shoestring.storage.journal.memory import MemoryJournal
from shoestring.storage.journal.protocol import Journal
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.crashing_journal import CrashingJournal
from shoestring.testing.journal_suite import JournalSuite
from tests.mounts import said_to_be_on


class TestMemoryJournal(JournalSuite):
    refuses_a_second_writer = False
    latest: MemoryJournal | None = None

    def make(self, tmp_path: Path) -> Journal:  # noqa: ARG002
        self.latest = MemoryJournal(taken_from=self.latest)
        return self.latest

    def usurp(self, tmp_path: Path, holder: Journal) -> Journal:  # noqa: ARG002
        return self.make(tmp_path)


class TestSqliteJournal(JournalSuite):
    def make(self, tmp_path: Path) -> Journal:
        return SqliteJournal.open(tmp_path / "journal.db")

    def usurp(self, tmp_path: Path, holder: Journal) -> Journal:  # noqa: ARG002
        (tmp_path / "journal.db.lock").unlink()
        return self.make(tmp_path)


class TestSqliteJournalThatOutlivesOnlyTheProcess(TestSqliteJournal):
    def make(self, tmp_path: Path) -> Journal:
        return SqliteJournal.open(tmp_path / "journal.db", survives_power_loss=False)


class TestSqliteJournalOnASharedFileSystem(TestSqliteJournal):
    @pytest.fixture(autouse=True)
    def _shared(
        self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said_to_be_on("nfs4", tmp_path, monkeypatch, listed_in=tmp_path_factory.mktemp("mounts"))


class TestCrashingJournalThatDoesNotCrash(TestSqliteJournal):
    def make(self, tmp_path: Path) -> Journal:
        return CrashingJournal(super().make(tmp_path), loses_groups=True)
