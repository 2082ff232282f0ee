"""The journal on a file system that is said to be shared: other computers can read it, and write nothing there."""

import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from shoestring.errors import JournalDamaged, JournalTaken, StorageError
from shoestring.storage.journal import half_written, lock, private_copy, sqlite_reader
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.journal_suite import busy_entry
from shoestring.testing.slowness import PATIENCE_S
from tests.mounts import said_to_be_on

KILLED = "process 17 on another-computer\n"


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder that is said to be on NFS."""
    folder = tmp_path / "shared"
    folder.mkdir()
    said_to_be_on("nfs4", folder, monkeypatch, listed_in=tmp_path)
    return folder


@pytest.fixture
def no_locks(monkeypatch):
    """Every lock is granted, as to a computer whose locks the others do not see."""
    monkeypatch.setattr(lock.fcntl, "flock", lambda *_: None)


def written(path, count, **options):
    with SqliteJournal.open(path, **options) as journal:
        first = 1 + sum(1 for _ in journal.read())
        for seq in range(first, first + count):
            journal.append(busy_entry(seq), wait=True)
    return path


def seqs(path):
    with SqliteJournal.open_readonly(path) as reader:
        return [one.seq for one in reader.read()]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def left_by_a_killed_controller(into, tmp_path, count):
    """A journal of a local disk as kill -9 leaves it: its last entries are in the log beside it."""
    with SqliteJournal.open(tmp_path / "local" / "journal.db") as journal:
        for seq in range(1, count + 1):
            journal.append(busy_entry(seq), wait=True)
        for name in ("journal.db", "journal.db-wal"):
            shutil.copy(tmp_path / "local" / name, into / name)
    return into / "journal.db"


def left_halfway_through_a_commit(into, tmp_path, count):
    """A journal of a shared file system as kill -9 leaves it in the middle of a commit, with some pages written."""
    path = written(tmp_path / "halfway" / "journal.db", count)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("PRAGMA journal_mode = PERSIST; PRAGMA cache_size = 1; BEGIN")
        connection.execute("UPDATE groups SET lines = zeroblob(3000)")
        for name in ("journal.db", "journal.db-journal"):
            shutil.copy(path.with_name(name), into / name)
    assert private_copy.is_hot(into / "journal.db-journal")
    as_it_is = sqlite3.connect(f"file:{into / 'journal.db'}?immutable=1", uri=True)
    with closing(as_it_is), pytest.raises(sqlite3.DatabaseError, match="malformed"):
        as_it_is.execute("SELECT count(*) FROM groups WHERE lines = zeroblob(3000)").fetchone()
    return into / "journal.db"


def test_a_local_journal_has_a_write_ahead_log_and_a_shared_one_has_not(tmp_path, shared):
    for folder, has_log in ((tmp_path / "local", True), (shared, False)):
        with SqliteJournal.open(folder / "journal.db") as journal:
            journal.append(busy_entry(1), wait=True)
            names = os.listdir(folder)
            assert ("journal.db-wal" in names, "journal.db-shm" in names) == (has_log, has_log)
            assert private_copy.in_wal_mode(folder / "journal.db") == has_log
            assert seqs(folder / "journal.db") == [1]


def test_what_is_done_is_said_on_a_shared_file_system_and_nothing_on_a_local_one(tmp_path, shared, monkeypatch):
    said = []
    written(tmp_path / "local" / "journal.db", 1, say=said.append)
    assert said == []
    written(shared / "journal.db", 1, say=said.append)
    (sentence,) = said
    assert "is on nfs4, which other computers may share" in sentence
    assert "Locks" not in sentence
    said_to_be_on("nfs", shared, monkeypatch, listed_in=tmp_path, options="rw,local_lock=all")
    written(shared / "journal.db", 1, say=said.append)
    assert "Locks do not reach them (local_lock=all): resume this run on this computer only" in said[-1]


def test_a_journal_with_a_log_is_converted_by_its_controller_and_back_when_it_moves(tmp_path, shared):
    path = left_by_a_killed_controller(shared, tmp_path, 30)
    (shared / "journal.db-shm").write_bytes(b"an index of the log, by some computer")
    written(path, 5)
    assert seqs(path) == list(range(1, 36))
    assert sorted(os.listdir(shared)) == ["journal.db", "journal.db-journal", "journal.db.lock"]
    home = tmp_path / "home"
    shutil.copytree(shared, home)
    written(home / "journal.db", 5)
    assert seqs(home / "journal.db") == list(range(1, 41))
    assert private_copy.in_wal_mode(home / "journal.db")


def test_reading_a_journal_with_a_log_writes_nothing(tmp_path, shared):
    path = left_by_a_killed_controller(shared, tmp_path, 30)
    before = contents(shared)
    assert seqs(path) == list(range(1, 31))
    assert contents(shared) == before


@pytest.mark.parametrize("where", ["shared", "local"])
def test_reading_after_a_kill_in_the_middle_of_a_commit_writes_nothing_and_the_controller_continues(
    tmp_path, shared, where
):
    folder = shared if where == "shared" else tmp_path
    path = left_halfway_through_a_commit(folder, tmp_path, 40)
    before = contents(folder)
    assert seqs(path) == list(range(1, 41))
    assert contents(folder) == before
    written(path, 2)
    assert seqs(path) == list(range(1, 43))


def test_reading_leaves_no_copy_behind(tmp_path, shared, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    path = left_by_a_killed_controller(shared, tmp_path, 30)
    with SqliteJournal.open_readonly(path) as reader:
        assert len(list(reader.read())) == 30
        assert list(scratch.iterdir()) == []


def test_a_log_on_a_read_only_disk_is_read(tiny_disk, tmp_path):
    path = left_by_a_killed_controller(tiny_disk.path, tmp_path, 30)
    tiny_disk.make_readonly()
    assert seqs(path) == list(range(1, 31))


def test_a_new_run_is_refused_while_what_is_left_of_the_old_one_would_be_applied_to_it(tmp_path, shared):
    path = left_halfway_through_a_commit(shared, tmp_path, 40)
    path.unlink()
    with pytest.raises(JournalDamaged, match=r"is gone, but its log journal.db-journal is still there"):
        SqliteJournal.open(path)
    (shared / "journal.db-journal").unlink()
    written(path, 1)
    path.unlink()
    assert (shared / "journal.db-journal").exists(), "one that is done with is harmless"
    written(path, 1)
    assert seqs(path) == [1]


def test_a_reader_that_stays_open_sees_what_is_added(shared):
    path, mark = shared / "journal.db", sqlite_reader.Mark()
    with SqliteJournal.open(path) as journal, SqliteJournal.open_readonly(path) as reader:
        for seq in range(1, 6):
            journal.append(busy_entry(seq), wait=True)
            assert [one.seq for one in reader.read_on(mark)] == [seq]
            assert list(reader.read_on(mark)) == []


def test_what_is_seen_half_written_is_read_again_and_no_entry_twice(shared, monkeypatch):
    path = written(shared / "journal.db", 70)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        (whole,) = other.execute("SELECT lines FROM groups WHERE first = 60").fetchone()
        other.execute("UPDATE groups SET lines = ? WHERE first = 60", (whole[:-9],))

        def complete(_pause):
            other.execute("UPDATE groups SET lines = ? WHERE first = 60", (whole,))

        monkeypatch.setattr(time, "sleep", complete)
        assert seqs(path) == list(range(1, 71))


def test_damage_that_lasts_is_reported(shared, monkeypatch):
    monkeypatch.setattr(half_written, "PAUSE_S", 0.001)
    path = written(shared / "journal.db", 30)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE groups SET lines = zeroblob(9) WHERE first = 20")
    with SqliteJournal.open_readonly(path) as reader:
        reading = reader.read()
        assert [next(reading).seq for _ in range(19)] == list(range(1, 20))
        with pytest.raises(JournalDamaged, match="entry 20 "):
            next(reading)


def test_a_journal_that_may_not_be_read_is_named(tmp_path, shared):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = left_by_a_killed_controller(shared, tmp_path, 3)
    path.chmod(0)
    with pytest.raises(StorageError, match="cannot read the journal"):
        SqliteJournal.open_readonly(path)


@pytest.mark.usefixtures("no_locks")
def test_a_second_controller_is_turned_away_where_it_does_not_see_the_lock(shared, monkeypatch):
    monkeypatch.setattr(lock, "TOUCH_EVERY_S", 0.02)
    monkeypatch.setattr(lock, "SILENCE_S", PATIENCE_S)
    path = shared / "journal.db"
    with SqliteJournal.open(path) as first:
        first.append(busy_entry(1), wait=True)
        with pytest.raises(JournalTaken, match=f"process {os.getpid()} on .* is running this study"):
            SqliteJournal.open(path)
        first.append(busy_entry(2), wait=True)
    assert (shared / "journal.db.lock").read_bytes() == b"", "it says that it has released it"
    written(path, 1)
    assert seqs(path) == [1, 2, 3]


def test_a_controller_killed_on_another_computer_is_waited_for_and_replaced(shared, monkeypatch):
    monkeypatch.setattr(lock, "SILENCE_S", 0.3)
    path = written(shared / "journal.db", 3)
    path.with_name("journal.db.lock").write_text(KILLED)
    said = []
    written(path, 1, say=said.append)
    assert said[0].startswith("process 17 on another-computer has not released this run: waiting up to 0.3 s")
    assert seqs(path) == [1, 2, 3, 4]


@pytest.mark.usefixtures("no_locks")
def test_a_controller_killed_on_this_computer_is_not_waited_for(shared, monkeypatch):
    monkeypatch.setattr(lock, "SILENCE_S", 1e9)
    path = written(shared / "journal.db", 3)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    path.with_name("journal.db.lock").write_text(f"process {child} on {lock.socket.gethostname()}\n")
    assert seqs(written(path, 1)) == [1, 2, 3, 4]


@pytest.mark.usefixtures("no_locks")
def test_a_controller_that_was_replaced_while_it_was_stopped_writes_nothing(shared):
    path = shared / "journal.db"
    stale = SqliteJournal.open(path)
    stale.append(busy_entry(1), wait=True)
    path.with_name("journal.db.lock").write_text(KILLED)
    before = contents(shared)
    with pytest.raises(JournalTaken, match="process 17 on another-computer took over"):
        stale.append(busy_entry(2), wait=True)
    with pytest.raises(JournalTaken):
        stale.append(busy_entry(2), wait=True)
    stale.close()
    assert contents(shared) == before, "the lock still names the other one"


def test_on_a_local_disk_no_lock_is_touched_or_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "SILENCE_S", 1e9)
    path = tmp_path / "journal.db"
    Path(f"{path}.lock").write_text(KILLED)
    threads = threading.active_count()
    with SqliteJournal.open(path):
        assert threading.active_count() == threads
