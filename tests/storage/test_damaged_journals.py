"""A damaged or foreign journal gives an error with the number of the entry, never wrong entries."""

import random
import re
import sqlite3
from contextlib import closing

import pytest

from shoestring.errors import JournalDamaged, StorageError
from shoestring.kernel.codec import encode_turn
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.storage.journal.sqlite_reader import chained, checksums
from shoestring.testing.journal_suite import busy_entry, entry

GROUP = 6
WRITTEN = [entry(seq) if seq % 3 else busy_entry(seq) for seq in range(1, 31)]
BOTH = pytest.mark.parametrize("opening", [SqliteJournal.open, SqliteJournal.open_readonly])


@pytest.fixture
def path(tmp_path):
    """Groups of six: they start with the entries 1, 7, 13, 19 and 25, and the blank is at 31."""
    return written(tmp_path / "journal.db", GROUP)


def written(path, group):
    with SqliteJournal.open(path) as journal:
        for one in WRITTEN:
            journal.append(one, wait=one.seq % group == 0)
    return path


def tamper(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(*statement if isinstance(statement, tuple) else (statement,))


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM groups ORDER BY first").fetchall()


def group_at(path, first):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT epoch, lines, checks, link FROM groups WHERE first = ?", (first,)).fetchone()


def edit(path, first, change):
    """Apply `change` to the list of a group's lines."""
    lines = group_at(path, first)[1].split(b"\n")
    assert len(lines) == GROUP
    change(lines)
    tamper(path, ("UPDATE groups SET lines = ? WHERE first = ?", (b"\n".join(lines), first)))


def forge_entry_30(path, body, *, blank_too):
    """Replace the last entry, with its checksum and its link."""
    epoch, text, _, _ = group_at(path, 25)
    lines = [*text.split(b"\n")[:-1], body]
    text, checks = b"\n".join(lines), checksums(25, lines)
    link = chained(group_at(path, 19)[3], 25, epoch, text, checks)
    tamper(path, ("UPDATE groups SET lines = ?, checks = ?, link = ? WHERE first = 25", (text, checks, link)))
    if blank_too:
        tamper(path, ("UPDATE groups SET link = ? WHERE first = 31", (link,)))


def outcome(path, opening=SqliteJournal.open_readonly):
    """The entries that could be read, and the error after them."""
    read = []
    try:
        with opening(path) as journal:
            for one in journal.read():
                read.append(one)
    except StorageError as error:
        return read, error
    return read, None


def intact_before(path, message, opening=SqliteJournal.open_readonly):
    """How many entries were read, all as written, before an error with this message."""
    read, error = outcome(path, opening)
    assert isinstance(error, JournalDamaged)
    assert re.search(message, str(error))
    assert error.hint
    assert read == WRITTEN[: len(read)]
    return len(read)


def other_word(lines):
    lines[4] = lines[4].replace(b"tick", b"tock")


def other_time(lines):
    lines[5] = lines[5].replace(b"0.001", b"0.002")


def no_time(lines):
    lines[5] = lines[5].partition(b"\t")[0]


def a_time_of_its_own(lines):
    lines[4] += b'\t{"step_s":0.001}'


def first_removed(lines):
    del lines[0]


def one_removed(lines):
    del lines[4]


def last_removed(lines):
    del lines[5]


def one_added(lines):
    lines.append(lines[-1])


def one_repeated(lines):
    lines.insert(4, lines[4])


def two_moved(lines):
    lines[3], lines[4] = lines[4], lines[3]


def two_joined(lines):
    lines[3:5] = [lines[3] + lines[4]]


def one_torn(lines):
    lines[4] = lines[4].replace(b",", b"\n", 1)


@BOTH
@pytest.mark.parametrize(
    ("change", "message", "intact"),
    [
        (other_word, "entry 17 is not what was written", 16),
        (other_time, "entry 18 is not what was written", 17),
        (no_time, "entry 18 is not what was written", 17),
        (a_time_of_its_own, "entry 17 is not what was written", 16),
        (first_removed, "entry 13 is not what was written", 12),
        (one_removed, "entry 17 is not what was written", 16),
        (last_removed, "entry 18 is missing", 17),
        (one_added, "entry 19 is not what was written", 18),
        (one_repeated, "entry 18 is not what was written", 17),
        (two_moved, "entry 16 is not what was written", 15),
        (two_joined, "entry 16 is not what was written", 15),
        (one_torn, "entry 17 is not what was written", 16),
    ],
)
def test_an_entry_changed_removed_or_added_within_its_group_is_named(path, change, message, intact, opening):
    edit(path, 13, change)
    assert intact_before(path, message, opening) == intact


@BOTH
@pytest.mark.parametrize(
    ("statement", "message", "intact"),
    [
        ("UPDATE groups SET epoch = 'x' WHERE first = 7", "entry 7 is not what was written", 6),
        ("UPDATE groups SET epoch = 9 WHERE first = 7", "entry 7 is not what .* another one .* with entry 12", 6),
        ("UPDATE groups SET link = x'00' WHERE first = 7", "entry 7 is not what .* another one .* with entry 12", 6),
        ("UPDATE groups SET lines = 5 WHERE first = 7", "entry 7 is not what was written", 6),
        ("UPDATE groups SET lines = x'' WHERE first = 7", "entry 7 is not what was written", 6),
        ("UPDATE groups SET lines = NULL WHERE first = 7", "entry 7 is missing: its place is blank", 6),
        ("UPDATE groups SET checks = NULL WHERE first = 7", "entry 7 is not what was written", 6),
        ("UPDATE groups SET checks = substr(checks, 1, 9) WHERE first = 7", "entry 9 is not what was written", 8),
        ("DELETE FROM groups WHERE first = 1", "entry 1 is missing", 0),
        ("DELETE FROM groups WHERE first = 13", "entry 13 is missing", 12),
        ("DELETE FROM groups WHERE first = 25", "entry 25 is missing.* end with entry 30", 24),
        ("DELETE FROM groups WHERE first BETWEEN 13 AND 25", "entry 13 is missing.* end with entry 30", 12),
        ("DELETE FROM groups WHERE first < 31", "entry 1 is missing.* end with entry 30", 0),
        ("UPDATE groups SET first = 14 WHERE first = 13", "entry 13 is missing", 12),
        ("UPDATE groups SET first = 8 WHERE first = 13", "entry 13 is missing", 12),
        ("UPDATE groups SET first = 37 WHERE first = 31", "entry 31 is missing.* end with entry 36", 30),
        ("UPDATE groups SET first = 30 WHERE first = 31", "entry 30 is not the one", 30),
        ("INSERT INTO groups VALUES (40, 1, NULL, NULL, x'')", "entry 31 is missing: its place is blank", 30),
    ],
)
def test_a_group_changed_removed_or_added_is_named_by_its_first_entry(path, statement, message, intact, opening):
    tamper(path, statement)
    assert intact_before(path, message, opening) == intact


@pytest.mark.parametrize(
    ("statement", "message", "intact"),
    [
        ("DELETE FROM groups WHERE first = 31", "entry 31 is missing: the journal has no end", 30),
        ("DELETE FROM groups WHERE first > 20", "entry 25 is missing: the journal has no end", 24),
        ("DELETE FROM groups", "entry 1 is missing: the journal has no end", 0),
        ("UPDATE groups SET epoch = 'x' WHERE first = 31", "entry 31 is missing: its place", 30),
        ("UPDATE groups SET link = 'x' WHERE first = 31", "entry 31 is missing: its place", 30),
        ("UPDATE groups SET lines = x'00' WHERE first = 31", "entry 31 is not what was written", 30),
        ("INSERT INTO groups SELECT 32, epoch, lines, checks, link FROM groups WHERE first = 25", "entry 31 is", 30),
    ],
)
def test_a_journal_without_its_end_names_the_first_missing_entry(path, statement, message, intact):
    tamper(path, statement)
    assert intact_before(path, message) == intact
    before = rows(path)
    with pytest.raises(JournalDamaged, match=message):
        SqliteJournal.open(path)  # refused at once: there is no place to write to
    assert rows(path) == before


def test_any_flipped_bit_of_a_line_is_named_by_its_entry(path):
    text = group_at(path, 13)[1]
    rng = random.Random(7)
    for spot in {*rng.sample(range(len(text)), 60), text.index(b"\n")}:
        damaged = bytearray(text)
        damaged[spot] ^= 1 << rng.randrange(8)
        tamper(path, ("UPDATE groups SET lines = ? WHERE first = 13", (damaged,)))
        seq = 13 + text.count(b"\n", 0, spot)
        assert intact_before(path, f"entry {seq} is not what was written") == seq - 1


def test_two_swapped_groups_are_detected(path):
    tamper(
        path,
        "UPDATE groups SET first = -1 WHERE first = 7",
        "UPDATE groups SET first = 7 WHERE first = 13",
        "UPDATE groups SET first = 13 WHERE first = -1",
    )
    assert intact_before(path, "entry 7 is not what was written") == 6


def test_two_merged_groups_are_detected(path):
    one, other = group_at(path, 7), group_at(path, 13)
    joined = one[1] + b"\n" + other[1], one[2] + other[2], other[3]
    tamper(
        path,
        "DELETE FROM groups WHERE first = 13",
        ("UPDATE groups SET lines = ?, checks = ?, link = ? WHERE first = 7", joined),
    )
    assert intact_before(path, "entry 7 is not what .* another one .* with entry 18") == 6


def test_an_entry_forged_with_its_checksum_is_detected(path):
    edit(path, 7, other_word)
    lines = group_at(path, 7)[1].split(b"\n")
    tamper(path, ("UPDATE groups SET checks = ? WHERE first = 7", (checksums(7, lines),)))
    assert intact_before(path, "entry 7 is not what .* another one .* with entry 12") == 6


def test_a_last_group_forged_with_its_link_is_detected(path):
    forge_entry_30(path, encode_turn(entry(99).event, ()), blank_too=False)
    with SqliteJournal.open_readonly(path) as journal, pytest.raises(JournalDamaged, match="entry 30 is not the one"):
        list(journal.read())


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        (b'{"event":{"type":"TimerFired/2","at":1.0}}', "entry 30 was written by a newer shoestring", "upgrade"),
        (b'{"event":{}}', "entry 30 is not a recorded turn", "restore"),
        (b"garbage", "entry 30 is not JSON", "restore"),
        (encode_turn(entry(30).event, ()) + b"\tgarbage", "entry 30 .*malformed", "restore"),
    ],
)
def test_a_whole_entry_that_cannot_be_decoded_is_named(path, body, message, hint):
    forge_entry_30(path, body, blank_too=True)
    assert intact_before(path, message) == 29
    assert hint in outcome(path)[1].hint


@BOTH
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PRAGMA user_version = 3", "written by a newer shoestring .format 3; this one knows 2"),
        ("PRAGMA user_version = 1", "written by an older shoestring .format 1; this one knows 2"),
        ("PRAGMA application_id = 7", "not a journal of shoestring"),
        ("DROP TABLE groups", "cannot read|cannot write"),
    ],
)
def test_a_foreign_or_incomplete_file_is_refused(path, statement, message, opening):
    tamper(path, statement)
    with pytest.raises(StorageError, match=message) as caught, opening(path) as journal:
        list(journal.read())
    assert caught.value.hint
    with pytest.raises(StorageError), opening(path) as journal:  # and it holds no lock afterwards
        list(journal.read())


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"not a database at all, but a text" * 100])
@BOTH
def test_another_kind_of_file_is_refused_and_not_changed(tmp_path, content, opening):
    path = tmp_path / "journal.db"
    path.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        opening(path)
    assert caught.value.hint
    assert path.read_bytes() == content


def test_the_log_of_a_lost_journal_is_not_applied_to_a_new_one(path):
    journal = SqliteJournal.open(path)
    journal.append(entry(31), wait=True)
    log = path.with_name("journal.db-wal")
    kept = log.read_bytes()
    journal.close()
    path.unlink()
    log.write_bytes(kept)
    with pytest.raises(JournalDamaged, match=r"its log .* is still there"):
        SqliteJournal.open(path)


@pytest.mark.parametrize("group", [1, GROUP, 100])
def test_a_truncated_file_gives_intact_first_entries_and_an_error(tmp_path, group):
    path = written(tmp_path / "journal.db", group)
    whole = path.read_bytes()
    for length in range(1, len(whole), 997):
        path.write_bytes(whole[:length])
        read, error = outcome(path)
        assert read == WRITTEN[: len(read)]
        assert error is not None
        assert error.hint


@BOTH
def test_any_flipped_bit_of_the_schema_is_harmless_or_an_error(path, opening):
    whole = path.read_bytes()
    begin = whole.index(b"CREATE TABLE")
    for spot in range(begin - 30, begin + 130):
        for bit in (0, 5, 7):
            damaged = bytearray(whole)
            damaged[spot] ^= 1 << bit
            path.write_bytes(damaged)
            read, error = outcome(path, opening)
            assert read == WRITTEN if error is None else read == WRITTEN[: len(read)]


@pytest.mark.parametrize("group", [1, GROUP, 100])
def test_any_flipped_bit_is_harmless_or_an_error(tmp_path, group):
    """Nothing but what was written is ever read, and nothing but a StorageError is ever raised."""
    path = written(tmp_path / "journal.db", group)
    whole = path.read_bytes()
    rng = random.Random(5)
    told = 0
    for _ in range(300):
        spot = rng.randrange(len(whole))
        damaged = bytearray(whole)
        damaged[spot] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        read, error = outcome(path)
        assert read == WRITTEN[: len(read)]
        assert error is not None or len(read) == len(WRITTEN), f"bit at byte {spot}"
        told += error is not None
    assert told > 100
