"""kill -9 loses no entry that was appended with `wait`."""

import random
import subprocess
import sys
import time

import pytest

from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.journal_suite import busy_entry

WRITER = """
import sys
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.journal_suite import busy_entry

journal = SqliteJournal.open(sys.argv[1], survives_power_loss=sys.argv[2] == "power")
seq = sum(1 for _ in journal.read())
print("ready", flush=True)
while True:
    seq += 1
    journal.append(busy_entry(seq), wait=seq % 7 == 0)
    if seq % 7 == 0:
        print(seq, flush=True)
"""


@pytest.mark.parametrize("survives", ["power", "kill"])
def test_every_entry_appended_with_wait_survives_kill_9(tmp_path, survives):
    path = tmp_path / "journal.db"
    rng = random.Random(survives)
    told, expected = 0, []
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), survives], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout.readline() == "ready\n"
            begun = [int(writer.stdout.readline()) for _ in range(3)]
            time.sleep(rng.uniform(0.0, 0.08))
            writer.kill()
            lines = writer.stdout.read().splitlines(keepends=True)
        acknowledged = begun + [int(line) for line in lines if line.endswith("\n")]
        told = max([told, *acknowledged])
        with SqliteJournal.open_readonly(path) as reader:
            entries = list(reader.read())
        assert len(entries) >= told
        expected += [busy_entry(seq) for seq in range(len(expected) + 1, len(entries) + 1)]
        assert entries == expected[: len(entries)]
    assert told > 100
