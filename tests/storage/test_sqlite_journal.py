"""The SQLite journal: groups, concurrent readers, one writer at a time, and disks that fail."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from shoestring.errors import JournalDamaged, JournalTaken, StorageError
from shoestring.storage.journal import sqlite
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.journal_suite import busy_entry, entry


def seqs(journal):
    return [one.seq for one in journal.read()]


def durable(path):
    """What another process reads now."""
    with SqliteJournal.open_readonly(path) as reader:
        return seqs(reader)


def first_refused(journal, after):
    for seq in range(after + 1, 5000):
        try:
            journal.append(busy_entry(seq), wait=True)
        except StorageError as error:
            return seq, error
    raise AssertionError("nothing was refused")


def test_an_entry_with_wait_writes_its_group(tmp_path):
    path = tmp_path / "journal.db"
    with SqliteJournal.open(path) as journal:
        journal.append(entry(1), wait=False)
        journal.append(entry(2), wait=False)
        assert durable(path) == []
        journal.append(entry(3), wait=True)
        assert durable(path) == [1, 2, 3]


def test_a_long_group_is_written_without_wait(tmp_path):
    path = tmp_path / "journal.db"
    with SqliteJournal.open(path) as journal:
        for seq in range(1, sqlite.GROUP_ENTRIES + 2):
            journal.append(entry(seq), wait=False)
        assert len(durable(path)) >= sqlite.GROUP_ENTRIES


def test_an_old_group_is_written_with_the_next_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "GROUP_S", 0.01)
    path = tmp_path / "journal.db"
    with SqliteJournal.open(path) as journal:
        journal.append(entry(1), wait=False)
        time.sleep(0.02)
        journal.append(entry(2), wait=False)
        assert durable(path) == [1, 2]


def test_a_reader_does_not_block_the_writer(tmp_path):
    path = tmp_path / "journal.db"
    with SqliteJournal.open(path) as journal:
        for seq in range(1, 1201):
            journal.append(busy_entry(seq), wait=False)
        journal.sync()
        with SqliteJournal.open_readonly(path) as reader:
            reading = reader.read()
            assert next(reading).seq == 1
            for seq in range(1201, 1251):
                journal.append(entry(seq), wait=True)  # a database that is locked is an error
            assert [one.seq for one in reading] == list(range(2, 1201)), "it reads what was there when it started"
            assert seqs(reader) == list(range(1, 1251))


def test_a_journal_in_a_folder_with_unusual_characters(tmp_path):
    path = tmp_path / "a b" / "what?#100%" / "journal.db"
    with SqliteJournal.open(path) as journal:
        journal.append(entry(1), wait=True)
        assert durable(path) == [1]


def test_the_file_has_an_application_id(tmp_path):
    path = tmp_path / "journal.db"
    SqliteJournal.open(path).close()
    assert path.read_bytes()[68:72] == b"SHOE"
    assert sorted(os.listdir(tmp_path)) == ["journal.db", "journal.db.lock"]


def test_a_refused_controller_learns_who_holds_the_journal_and_what_to_do(tmp_path):
    path = tmp_path / "journal.db"
    with SqliteJournal.open(path), pytest.raises(JournalTaken, match=f"process {os.getpid()} on ") as caught:
        SqliteJournal.open(path)
    assert "stop" in caught.value.hint
    SqliteJournal.open(path).close()


def test_a_killed_controller_holds_no_lock(tmp_path):
    path = tmp_path / "journal.db"
    code = (
        "import sys, time; from shoestring.storage.journal.sqlite import SqliteJournal\n"
        "journal = SqliteJournal.open(sys.argv[1]); print('open', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(JournalTaken, match=f"process {holder.pid} "):
        SqliteJournal.open(path)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with SqliteJournal.open(path) as journal:
        assert journal.epoch == 2


def test_a_forked_child_that_outlives_its_controller_does_not_hold_the_journal(tmp_path):
    path = tmp_path / "journal.db"
    journal = SqliteJournal.open(path)
    stay, go = os.pipe()
    born, cry = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.write(cry, b"!")
        os.read(stay, 1)
        os._exit(0)
    assert os.read(born, 1) == b"!", "it has released the inherited lock before it runs anything"
    journal.close()
    SqliteJournal.open(path).close()
    for end in (go, stay, born, cry):
        os.close(end)
    assert os.waitpid(child, 0)[1] == 0


def test_an_interrupt_between_commit_and_return_keeps_the_journal_consistent(tmp_path):
    class Interrupted(sqlite3.Connection):
        armed = False

        def execute(self, sql, *args):
            result = super().execute(sql, *args)
            if self.armed and "INSERT" in sql:
                raise KeyboardInterrupt
            return result

    path = tmp_path / "journal.db"
    with SqliteJournal.open(path) as journal:
        journal._connection.close()
        journal._connection = sqlite3.connect(path, isolation_level=None, factory=Interrupted)
        journal.append(entry(1), wait=False)
        journal._connection.armed = True
        with pytest.raises(KeyboardInterrupt):
            journal.append(entry(2), wait=True)
        journal._connection.armed = False
        journal.append(entry(3), wait=True)
        assert seqs(journal) == [1, 2, 3]


def test_a_stale_controller_changes_nothing(tmp_path):
    """Whatever the other one has recorded meanwhile: nothing, less, as much or more than the stale one has pending."""
    for written_meanwhile in range(5):
        path = tmp_path / str(written_meanwhile) / "journal.db"
        stale = SqliteJournal.open(path)
        stale.append(entry(1), wait=True)
        stale.append(entry(2), wait=False)
        path.with_name("journal.db.lock").unlink()
        with SqliteJournal.open(path) as other:
            for seq in range(2, 2 + written_meanwhile):
                other.append(busy_entry(seq), wait=True)
            for _ in range(2):
                with pytest.raises(JournalTaken, match=r"another controller took over .*epoch 1"):
                    stale.append(entry(3), wait=True)
            with pytest.raises(JournalTaken):
                stale.close()
            other.append(entry(2 + written_meanwhile), wait=True)
        assert durable(path) == list(range(1, 3 + written_meanwhile))


def test_a_journal_truncated_while_open_is_not_repaired_by_its_controller(tmp_path):
    path = tmp_path / "journal.db"
    with SqliteJournal.open(path) as journal:
        for seq in range(1, 4):
            journal.append(entry(seq), wait=True)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("DELETE FROM groups WHERE first >= 3")
        journal.append(entry(4), wait=True)
    with SqliteJournal.open_readonly(path) as reader, pytest.raises(JournalDamaged, match="entry 3 is missing"):
        list(reader.read())


def test_a_full_disk_loses_nothing_and_the_run_continues_when_there_is_space(tiny_disk):
    path = tiny_disk.path / "journal.db"
    journal = SqliteJournal.open(path)
    journal.append(entry(1), wait=True)
    journal.append(entry(2), wait=False)
    ballast = tiny_disk.fill()
    refused, error = first_refused(journal, after=2)
    assert "disk is full" in str(error)
    assert "free some space" in error.hint
    assert durable(path) == list(range(1, refused)) or (refused == 3 and durable(path) == [1])
    ballast.unlink()
    assert seqs(journal) == list(range(1, refused)), "the refused entry is not recorded, those before it are"
    journal.append(entry(refused), wait=True)
    journal.close()
    assert durable(path) == list(range(1, refused + 1))


def test_no_space_for_a_new_journal(tiny_disk):
    tiny_disk.fill()
    with pytest.raises(StorageError, match="disk is full"):
        SqliteJournal.open(tiny_disk.path / "journal.db")


def test_a_read_only_folder(tiny_disk):
    path = tiny_disk.path / "journal.db"
    with SqliteJournal.open(path) as journal:
        journal.append(entry(1), wait=True)
    tiny_disk.make_readonly()
    with pytest.raises(StorageError, match="cannot write beside the journal") as caught:
        SqliteJournal.open(path)
    assert caught.value.hint
    with pytest.raises(StorageError, match="cannot make the folder"):
        SqliteJournal.open(tiny_disk.path / "new" / "journal.db")
    assert durable(path) == [1], "reading is still possible"


def test_a_folder_instead_of_a_journal(tmp_path):
    for opening in (SqliteJournal.open, SqliteJournal.open_readonly):
        with pytest.raises(StorageError, match="is a folder") as caught:
            opening(tmp_path)
        assert caught.value.hint


def test_a_file_instead_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot make the folder"):
        SqliteJournal.open(tmp_path / "file" / "journal.db")


def test_no_journal_to_read(tmp_path):
    with pytest.raises(StorageError, match="there is no journal") as caught:
        SqliteJournal.open_readonly(tmp_path / "journal.db")
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == [], "reading must not create one"


def test_another_program_holds_a_lock_on_the_file(tmp_path):
    path = tmp_path / "journal.db"
    with SqliteJournal.open(path) as journal:
        journal._connection.execute("PRAGMA busy_timeout = 10")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="holds a lock on it"):
            journal.append(entry(1), wait=True)
        other.execute("ROLLBACK")
        other.close()
        journal.append(entry(1), wait=True)
        assert seqs(journal) == [1]
