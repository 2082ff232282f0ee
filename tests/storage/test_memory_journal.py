"""MemoryJournal encodes nothing before `dump`, which equals the journal on disk."""

import sqlite3
from contextlib import closing

from shoestring.kernel.codec import decode_turn
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.journal_suite import busy_entry, entry


def test_entries_stay_the_same_objects():
    journal = MemoryJournal()
    one = busy_entry(1)
    journal.append(one, wait=True)
    (read,) = journal.read()
    assert read is one


def test_a_dump_is_one_line_per_turn_without_measured_times():
    journal = MemoryJournal()
    assert journal.dump() == b""
    for one in (entry(1), busy_entry(2)):
        journal.append(one, wait=False)
    lines = journal.dump().splitlines()
    assert [decode_turn(line) for line in lines] == [(one.event, one.decisions) for one in (entry(1), busy_entry(2))]
    assert b"step_s" not in journal.dump()


def test_a_dump_equals_the_journal_on_disk(tmp_path):
    memory, path = MemoryJournal(), tmp_path / "journal.db"
    with SqliteJournal.open(path) as disk:
        for journal in (memory, disk):
            journal.append(entry(1), wait=False)
            journal.append(busy_entry(2), wait=True)
            journal.append(entry(3), wait=True)
    with closing(sqlite3.connect(path)) as connection:
        groups = connection.execute("SELECT lines FROM groups WHERE lines IS NOT NULL ORDER BY first")
        lines = [line for (text,) in groups for line in text.split(b"\n")]
    assert len(lines) == 3
    assert b"".join(line.partition(b"\t")[0] + b"\n" for line in lines) == memory.dump(), "but for measured times"
