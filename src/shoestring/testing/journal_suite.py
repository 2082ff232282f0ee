"""JournalSuite: the laws of journals, as tests to run on your own.

class TestMine(JournalSuite):
    def make(self, tmp_path):
        return MyJournal.open(tmp_path / "journal")
"""

from __future__ import annotations

import math
from pathlib import Path

from shoestring.errors import JournalTaken, StorageError
from shoestring.kernel.decisions import AddJob, RequestLease, WakeAt
from shoestring.kernel.events import JobReported, TimerFired
from shoestring.kernel.history import Entry
from shoestring.kernel.types import DecisionId, JobId, LeaseId, Offer, SegmentId
from shoestring.storage.journal.protocol import Journal


class JournalSuite:
    """Subclass it, define `make`, and run pytest."""

    refuses_a_second_writer = True
    """False for a journal that a second process cannot reach."""

    def make(self, tmp_path: Path) -> Journal:
        """Open the journal in `tmp_path` for writing, creating it the first time."""
        raise NotImplementedError

    def usurp(self, tmp_path: Path, holder: Journal) -> Journal:
        """Open it again although `holder` has it, past every lock, as after a network partition."""
        import pytest

        del tmp_path, holder
        pytest.skip("the suite of this journal does not define `usurp`")

    def test_a_new_journal_is_empty(self, tmp_path: Path) -> None:
        journal = self.make(tmp_path)
        assert list(journal.read()) == []
        journal.close()

    def test_the_next_controller_reads_all_entries(self, tmp_path: Path) -> None:
        written = [entry(1), busy_entry(2), entry(3)]
        journal = self.make(tmp_path)
        for one in written:
            journal.append(one, wait=True)
        journal.close()
        journal = self.make(tmp_path)
        assert list(journal.read()) == written
        assert list(journal.read()) == written, "reading twice must give the same"
        journal.close()

    def test_values_that_are_not_finite_survive(self, tmp_path: Path) -> None:
        metrics = {"loss": math.nan, "up": math.inf, "down": -math.inf, "fine": 0.1}
        event = JobReported(at=1.0, segment=SegmentId("s1"), job=JobId("j1"), step=1, metrics=metrics)
        journal = self.make(tmp_path)
        journal.append(Entry(seq=1, event=event, decisions=()), wait=True)
        journal.close()
        journal = self.make(tmp_path)
        (read,) = journal.read()
        journal.close()
        assert isinstance(read.event, JobReported)
        assert math.isnan(read.event.metrics.pop("loss"))
        assert read.event.metrics == {"up": math.inf, "down": -math.inf, "fine": 0.1}

    def test_entries_appended_without_wait_are_there_after_sync_and_close(self, tmp_path: Path) -> None:
        written = [entry(seq) for seq in range(1, 351)]
        journal = self.make(tmp_path)
        for one in written[:300]:
            journal.append(one, wait=False)
        assert list(journal.read()) == written[:300], "a controller reads its own entries back"
        journal.sync()
        for one in written[300:]:
            journal.append(one, wait=False)
        journal.close()
        journal = self.make(tmp_path)
        assert list(journal.read()) == written
        journal.close()

    def test_the_next_controller_continues_where_the_last_one_stopped(self, tmp_path: Path) -> None:
        for seq in range(1, 6):
            journal = self.make(tmp_path)
            assert [one.seq for one in journal.read()] == list(range(1, seq))
            journal.append(entry(seq), wait=seq % 2 == 0)
            journal.close()

    def test_reading_is_not_disturbed_by_appending(self, tmp_path: Path) -> None:
        journal = self.make(tmp_path)
        journal.append(entry(1), wait=True)
        journal.append(entry(2), wait=True)
        reading = journal.read()
        assert next(reading).seq == 1
        journal.append(entry(3), wait=True)
        assert [one.seq for one in reading] in ([2], [2, 3])
        journal.close()

    def test_an_entry_out_of_order_is_refused_and_nothing_is_recorded(self, tmp_path: Path) -> None:
        import pytest

        journal = self.make(tmp_path)
        with pytest.raises(StorageError):
            journal.append(entry(2), wait=True)
        journal.append(entry(1), wait=True)
        for seq in (0, 1, 3):
            with pytest.raises(StorageError):
                journal.append(entry(seq), wait=True)
        assert [one.seq for one in journal.read()] == [1]
        journal.append(entry(2), wait=True)
        journal.close()

    def test_every_controller_gets_a_higher_epoch(self, tmp_path: Path) -> None:
        epochs = []
        for _ in range(3):
            journal = self.make(tmp_path)
            epochs.append(journal.epoch)
            journal.close()
        assert epochs == sorted(set(epochs))

    def test_a_second_controller_is_refused_while_the_first_runs(self, tmp_path: Path) -> None:
        import pytest

        if not self.refuses_a_second_writer:
            pytest.skip("no second process can reach this journal")
        first = self.make(tmp_path)
        with pytest.raises(JournalTaken) as caught:
            self.make(tmp_path)
        assert caught.value.hint
        first.append(entry(1), wait=True)
        first.close()
        self.make(tmp_path).close()

    def test_a_controller_that_lost_its_journal_cannot_write(self, tmp_path: Path) -> None:
        import pytest

        first = self.make(tmp_path)
        first.append(entry(1), wait=True)
        second = self.usurp(tmp_path, first)
        for _ in range(2):
            with pytest.raises(JournalTaken):
                first.append(entry(2), wait=True)
        second.append(entry(2), wait=True)
        assert [one.seq for one in second.read()] == [1, 2]
        second.close()
        first.close()


def entry(seq: int) -> Entry:
    """A small turn: a timer fired and nothing was decided."""
    return Entry(seq=seq, event=TimerFired(at=float(seq), name=f"tick {seq}"), decisions=())


def busy_entry(seq: int) -> Entry:
    """A turn with decisions of several kinds, odd texts and measured times."""
    offer = Offer(provider="aws", zone="us-east-1a", machine="m6i.large", spot=True)
    decisions = (
        AddJob(id=DecisionId(f"{seq}.0"), why='"quoted",\nüñí', job=JobId("j1"), config={"lr": 1e-4, "name": None}),
        RequestLease(id=DecisionId(f"{seq}.1"), why="cheapest", lease=LeaseId("l1"), offer=offer, end_by=60.0),
        WakeAt(id=DecisionId(f"{seq}.2"), why="look again", name="look", at=30.0),
    )
    event = JobReported(at=0.5, segment=SegmentId("s1"), job=JobId("j1"), step=3, metrics={"loss": 0.25})
    return Entry(seq=seq, event=event, decisions=decisions, meta={"step_s": 0.001})
