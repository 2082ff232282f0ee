"""CrashingJournal: crashes at the chosen entry, and writes nothing afterwards."""

import pytest

from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.crashing_journal import Crash, CrashingJournal
from shoestring.testing.journal_suite import entry


def append_nine(journal, wait):
    for seq in range(1, 10):
        journal.append(entry(seq), wait=wait(seq))


def appended_until_the_crash(journal, wait=lambda _seq: True):
    with pytest.raises(Crash):
        append_nine(journal, wait)
    return [one.seq for one in journal.inner.read()]


def test_a_crash_before_an_entry_leaves_it_out_and_one_after_leaves_it_in():
    assert appended_until_the_crash(CrashingJournal(MemoryJournal(), crash_before=3)) == [1, 2]
    assert appended_until_the_crash(CrashingJournal(MemoryJournal(), crash_after=3)) == [1, 2, 3]


def test_entries_appended_without_wait_are_lost_with_their_group():
    def only_two(seq):
        return seq == 2

    crashing = CrashingJournal(MemoryJournal(), crash_after=5, loses_groups=True)
    assert appended_until_the_crash(crashing, wait=only_two) == [1, 2]


def test_nothing_is_written_after_the_crash():
    journal = CrashingJournal(MemoryJournal(), crash_after=1, loses_groups=True)
    assert appended_until_the_crash(journal) == [1]
    for attempt in (lambda: journal.append(entry(2), wait=True), journal.sync, journal.read):
        with pytest.raises(Crash):
            attempt()
    journal.close()
    assert [one.seq for one in journal.inner.read()] == [1]


def test_no_ordinary_handler_catches_a_crash():
    assert not issubclass(Crash, Exception)
