"""A damaged or foreign journal gets a sentence that names the entry, never a guess."""

import random
import re
import sqlite3
from contextlib import closing

import pytest

from shoestring.errors import JournalDamaged, StorageError
from shoestring.kernel.codec import encode_turn
from shoestring.storage.sqlite import SqliteJournal
from shoestring.storage.sqlite_reader import chained
from shoestring.testing.journal_suite import busy_entry, entry

WRITTEN = [entry(seq) if seq % 3 else busy_entry(seq) for seq in range(1, 31)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "journal.db"
    with SqliteJournal.open(path) as journal:
        for one in WRITTEN:
            journal.append(one, wait=False)
    return path


def tamper(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(*statement if isinstance(statement, tuple) else (statement,))


def outcome(path, opening=SqliteJournal.open_readonly):
    """The entries that could be read, and the error that ended it."""
    came = []
    try:
        with opening(path) as journal:
            for one in journal.read():
                came.append(one)
    except StorageError as error:
        return came, error
    return came, None


def sound_before(path, says, opening=SqliteJournal.open_readonly):
    """How many entries came, all as they were written, before an error that says so."""
    came, error = outcome(path, opening)
    assert isinstance(error, JournalDamaged)
    assert re.search(says, str(error))
    assert error.hint
    assert came == WRITTEN[: len(came)]
    return len(came)


@pytest.mark.parametrize("opening", [SqliteJournal.open, SqliteJournal.open_readonly])
@pytest.mark.parametrize(
    ("statement", "says", "sound"),
    [
        ("UPDATE entries SET body = replace(body, 'tick', 'tock') WHERE seq = 17", "entry 17 is not what was", 16),
        ("UPDATE entries SET meta = x'7b7d' WHERE seq = 12", "entry 12 is not what was written", 11),
        ("UPDATE entries SET epoch = 'x' WHERE seq = 5", "entry 5 is not what was written", 4),
        ("UPDATE entries SET body = 5 WHERE seq = 5", "entry 5 is not what was written", 4),
        ("DELETE FROM entries WHERE seq = 1", "entry 1 is missing", 0),
        ("DELETE FROM entries WHERE seq = 17", "entry 17 is missing", 16),
        ("DELETE FROM entries WHERE seq = 30", "entry 30 is missing.* end with entry 30", 29),
        ("DELETE FROM entries WHERE seq > 20", "entry 21 is missing", 20),
        ("DELETE FROM entries", "entry 1 is missing", 0),
        (
            "INSERT INTO entries SELECT 31, epoch, body, meta, link FROM entries WHERE seq = 30",
            "entry 31 was added",
            30,
        ),
    ],
)
def test_an_entry_changed_removed_or_added_is_named(path, statement, says, sound, opening):
    tamper(path, statement)
    assert sound_before(path, says, opening) == sound


def test_two_entries_that_changed_places_are_noticed(path):
    tamper(
        path,
        "UPDATE entries SET seq = -1 WHERE seq = 7",
        "UPDATE entries SET seq = 7 WHERE seq = 8",
        "UPDATE entries SET seq = 8 WHERE seq = -1",
    )
    assert sound_before(path, "entry 7 is not what was written") == 6


def test_a_last_entry_forged_with_its_checksum_is_noticed(path):
    body = encode_turn(entry(99).event, ())
    with closing(sqlite3.connect(path)) as connection:
        (before,) = connection.execute("SELECT link FROM entries WHERE seq = 29").fetchone()
    forged = chained(before, 1, body, None)
    tamper(path, ("UPDATE entries SET body = ?, meta = NULL, link = ? WHERE seq = 30", (body, forged)))
    with SqliteJournal.open_readonly(path) as journal, pytest.raises(JournalDamaged, match="entry 30 is not the one"):
        list(journal.read())


@pytest.mark.parametrize(
    ("body", "says", "hint"),
    [
        (b'{"event":{"type":"TimerFired/2","at":1.0}}', "entry 30 was written by a newer shoestring", "upgrade"),
        (b'{"event":{}}', "entry 30 is not a recorded turn", "restore"),
        (b"garbage", "entry 30 is not JSON", "restore"),
    ],
)
def test_an_entry_written_whole_but_not_understood_is_named(path, body, says, hint):
    with closing(sqlite3.connect(path)) as connection:
        (before,) = connection.execute("SELECT link FROM entries WHERE seq = 29").fetchone()
    link = chained(before, 1, body, None)
    tamper(
        path,
        ("UPDATE entries SET body = ?, meta = NULL, link = ? WHERE seq = 30", (body, link)),
        ("UPDATE head SET link = ?", (link,)),
    )
    with SqliteJournal.open_readonly(path) as journal, pytest.raises(JournalDamaged, match=says) as caught:
        list(journal.read())
    assert hint in caught.value.hint


@pytest.mark.parametrize("opening", [SqliteJournal.open, SqliteJournal.open_readonly])
@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("PRAGMA user_version = 2", "written by a newer shoestring .format 2"),
        ("PRAGMA application_id = 7", "not a journal of shoestring"),
        ("DELETE FROM head", "does not say where it ends"),
        ("DROP TABLE entries", "cannot read|cannot write"),
    ],
)
def test_a_foreign_or_gutted_file_is_refused(path, statement, says, opening):
    tamper(path, statement)
    with pytest.raises(StorageError, match=says) as caught, opening(path) as journal:
        list(journal.read())
    assert caught.value.hint
    with pytest.raises(StorageError), opening(path) as journal:  # and it holds no lock afterwards
        list(journal.read())


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"not a database at all, but a text" * 100])
@pytest.mark.parametrize("opening", [SqliteJournal.open, SqliteJournal.open_readonly])
def test_something_else_under_the_name_of_a_journal_is_refused_and_left_alone(tmp_path, content, opening):
    path = tmp_path / "journal.db"
    path.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        opening(path)
    assert caught.value.hint
    assert path.read_bytes() == content


def test_the_log_of_a_lost_journal_is_not_played_into_a_new_one(path):
    journal = SqliteJournal.open(path)
    journal.append(entry(31), wait=True)
    log = path.with_name("journal.db-wal")
    kept = log.read_bytes()
    journal.close()
    path.unlink()
    log.write_bytes(kept)
    with pytest.raises(JournalDamaged, match=r"its log .* is still there"):
        SqliteJournal.open(path)


def test_a_truncated_file_gives_a_sound_beginning_and_an_error(path):
    whole = path.read_bytes()
    for length in range(1, len(whole), 997):
        path.write_bytes(whole[:length])
        came, error = outcome(path)
        assert came == WRITTEN[: len(came)]
        assert error is not None
        assert error.hint


def test_any_flipped_bit_is_harmless_or_told(path):
    """Nothing but what was written is ever read, and nothing but a StorageError is ever raised."""
    whole = path.read_bytes()
    rng = random.Random(5)
    told = 0
    for _ in range(300):
        spot = rng.randrange(len(whole))
        damaged = bytearray(whole)
        damaged[spot] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        came, error = outcome(path)
        assert came == WRITTEN[: len(came)]
        assert error is not None or len(came) == len(WRITTEN), f"bit at byte {spot}"
        told += error is not None
    assert told > 100
