"""A controller writes through one mount of a folder, readers and other controllers look through another."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from shoestring.errors import JournalTaken
from shoestring.storage.journal import private_copy
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.journal_suite import busy_entry
from shoestring.testing.slowness import PATIENCE_S
from tests.storage.test_journal_kill import WRITER

pytestmark = pytest.mark.heavy

HASTY = "from shoestring.storage.journal import lock; lock.TOUCH_EVERY_S, lock.SILENCE_S = 0.5, 4.0\n"
"""A controller on the other side is given up sooner than usual, but not before the caches of a mount are old (1 s)."""
BUSY = WRITER.replace("        print(", "        time.sleep(0.03)\n        print(").replace(
    "import sys", "import sys, time"
)
"""As fast as a busy controller: one that writes without a pause leaves readers without locks no moment to look."""
ELSEWHERE = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
"""A computer of its own, as far as host names and processes are concerned."""
RENAMED = "import socket, sys; socket.sethostname('elsewhere')\n"


def writer(path, *, elsewhere=False):
    command = [sys.executable, "-c", (RENAMED if elsewhere else "") + HASTY + BUSY, str(path), "power"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*ELSEWHERE, *command] if elsewhere else command, **pipes)


def acknowledged(process, count):
    """Wait until it has appended that many more entries that wait; the number of the last one."""
    line = ""
    for _ in range(count):
        line = process.stdout.readline()
        assert line.endswith("\n"), process.stderr.read()
    return int(line)


def begun(process):
    line = process.stdout.readline()
    assert line == "ready\n", line + process.stderr.read()


def killed(process):
    """The last entry that it acknowledged before it died."""
    process.kill()
    lines = process.stdout.read().splitlines(keepends=True)
    process.wait()
    process.stdout.close()
    process.stderr.close()
    return max((int(line) for line in lines if line.endswith("\n")), default=0)


def entries(path):
    with SqliteJournal.open_readonly(path) as reader:
        return list(reader.read())


def test_the_log_of_a_local_disk_does_fail_through_two_mounts(mounts):
    """What the rest of this file is about: without it SQLite fails, or a reader does not see what was written."""

    def write_and_look():
        with closing(sqlite3.connect(mounts.here / "plain.db", isolation_level=None)) as here:
            here.execute("PRAGMA journal_mode = WAL")
            here.execute("CREATE TABLE numbers (n)")
            with closing(sqlite3.connect(mounts.there / "plain.db", isolation_level=None)) as there:
                seen = []
                for number in range(5):
                    here.execute("INSERT INTO numbers VALUES (?)", (number,))
                    seen.append(there.execute("SELECT count(*) FROM numbers").fetchone()[0])
        return seen

    if mounts.locks_are_seen:
        with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
            write_and_look()
    else:
        assert write_and_look() != [1, 2, 3, 4, 5]


def test_nothing_is_lost_when_controllers_on_either_side_are_killed_again_and_again(mounts):
    rng = random.Random(6)
    expected, last = [], 0
    (mounts.here / "run").mkdir()
    for turn in range(8):
        elsewhere = turn % 2 == 1
        side, other = (mounts.there, mounts.here) if elsewhere else (mounts.here, mounts.there)
        process = writer(side / "run" / "journal.db", elsewhere=elsewhere)
        begun(process)
        last = acknowledged(process, 3)
        for _ in range(3):
            seen = entries(other / "run" / "journal.db")
            assert len(seen) >= last, "what was acknowledged is seen on the other side at once"
            last = acknowledged(process, 1)
        time.sleep(rng.uniform(0.0, 0.05))
        last = max(last, killed(process))
        seen = entries(other / "run" / "journal.db")
        assert len(seen) >= last
        expected += [busy_entry(seq) for seq in range(len(expected) + 1, len(seen) + 1)]
        assert seen == expected
        names = os.listdir(mounts.disk / "run")
        assert not [name for name in names if name.endswith(("-wal", "-shm"))]
    with closing(sqlite3.connect(mounts.disk / "run" / "journal.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_readers_write_nothing_and_do_not_stop_the_controller(mounts):
    process = writer(mounts.here / "journal.db")
    begun(process)
    last, lengths = acknowledged(process, 1), []
    os.kill(process.pid, signal.SIGSTOP)
    before = {path.name: path.read_bytes() for path in mounts.disk.iterdir()}
    for _ in range(5):
        assert len(entries(mounts.there / "journal.db")) >= last
    assert {path.name: path.read_bytes() for path in mounts.disk.iterdir()} == before
    os.kill(process.pid, signal.SIGCONT)
    with SqliteJournal.open_readonly(mounts.there / "journal.db") as reader:
        for _ in range(20):
            lengths.append(sum(1 for _ in reader.read()))
            acknowledged(process, 1)
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0]
    killed(process)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_second_controller_is_turned_away_while_the_first_lives_and_not_after(mounts, elsewhere, monkeypatch):
    monkeypatch.setattr("shoestring.storage.journal.lock.SILENCE_S", PATIENCE_S)
    process = writer(mounts.here / "journal.db", elsewhere=elsewhere)
    begun(process)
    last = acknowledged(process, 2)
    with pytest.raises(JournalTaken, match="on elsewhere is running" if elsewhere else f"process {process.pid} on "):
        SqliteJournal.open(mounts.there / "journal.db")
    last = acknowledged(process, 200)
    last = max(last, killed(process))
    monkeypatch.setattr("shoestring.storage.journal.lock.SILENCE_S", 6.0)
    said = []
    with SqliteJournal.open(mounts.there / "journal.db", say=said.append) as journal:
        count = sum(1 for _ in journal.read())
        assert count >= last
        journal.append(busy_entry(count + 1), wait=True)
    assert any("waiting up to 6 s" in sentence for sentence in said) == elsewhere
    assert len(entries(mounts.here / "journal.db")) == count + 1


def test_a_controller_that_slept_while_another_took_over_ends_without_writing(mounts, monkeypatch):
    if mounts.locks_are_seen:
        pytest.skip("a controller that only sleeps keeps its lock there")
    monkeypatch.setattr("shoestring.storage.journal.lock.SILENCE_S", 5.0)
    process = writer(mounts.here / "journal.db")
    begun(process)
    acknowledged(process, 2)
    os.kill(process.pid, signal.SIGSTOP)
    with SqliteJournal.open(mounts.there / "journal.db") as journal:
        count = sum(1 for _ in journal.read())
        journal.append(busy_entry(count + 1), wait=True)
        os.kill(process.pid, signal.SIGCONT)
        process.stdout.read()
        assert process.wait(PATIENCE_S) == 1
        assert "took over" in process.stderr.read()
        journal.append(busy_entry(count + 2), wait=True)
    assert entries(mounts.there / "journal.db") == [busy_entry(seq) for seq in range(1, count + 3)]
    process.stdout.close()
    process.stderr.close()


def test_a_journal_with_the_log_of_a_local_disk_is_read_and_converted(mounts):
    process = writer(mounts.disk / "journal.db")
    begun(process)
    last = max(acknowledged(process, 5), killed(process))
    assert private_copy.in_wal_mode(mounts.disk / "journal.db")
    before = {path.name: path.read_bytes() for path in mounts.disk.iterdir()}
    seen = entries(mounts.there / "journal.db")
    assert len(seen) >= last
    assert {path.name: path.read_bytes() for path in mounts.disk.iterdir()} == before
    with SqliteJournal.open(mounts.here / "journal.db") as journal:
        journal.append(busy_entry(len(seen) + 1), wait=True)
        assert entries(mounts.there / "journal.db") == [*seen, busy_entry(len(seen) + 1)]
    assert sorted(os.listdir(mounts.disk)) == ["journal.db", "journal.db-journal", "journal.db.lock"]
