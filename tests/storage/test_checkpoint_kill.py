"""kill -9 in the middle of saving: every checkpoint one can see is whole, and the ones before are untouched."""

import os
import random
import subprocess
import sys
import time

import msgspec

from shoestring.kernel.types import CheckpointRef
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing.checkpoint_suite import contents, folder

SAVER = """
import sys
from pathlib import Path
import msgspec
from shoestring.storage.checkpoints.directory import DirectoryStore

store, step = DirectoryStore(sys.argv[1]), int(sys.argv[3])
print("ready", flush=True)
while True:
    step += 1
    ref = store.put("j1", step, Path(sys.argv[2]), segment="s1")
    print(msgspec.json.encode(ref).decode(), flush=True)
"""


def test_a_killed_save_is_never_seen_and_harms_no_other(tmp_path):
    source = folder(tmp_path / "source", {f"layer{n}": os.urandom(300_000) for n in range(4)})
    store = DirectoryStore(tmp_path / "store")
    rng = random.Random(1)
    saved: list[CheckpointRef] = []
    leftovers = 0
    for attempt in range(60):
        if attempt >= 8 and leftovers:
            break
        begin = max((ref.step for ref in store.list()), default=0)
        command = [sys.executable, "-c", SAVER, str(store.root), str(source), str(begin)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
            assert saver.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.0, 0.08))
            saver.kill()
            lines = saver.stdout.read().splitlines(keepends=True)
        saved += [msgspec.json.decode(line, type=CheckpointRef) for line in lines if line.endswith("\n")]
        leftovers += len(os.listdir(store.root / ".partial")) if (store.root / ".partial").exists() else 0
        visible = store.list()
        assert {ref.name for ref in visible} >= {ref.name for ref in saved}
        for ref in visible[-3:]:
            store.get(ref, tmp_path / f"back{ref.step}-{attempt}")
            assert contents(tmp_path / f"back{ref.step}-{attempt}") == contents(source)
    assert leftovers > 0, "no kill hit a save: the test shows nothing"
    store.sweep(older_than_s=0.0)
    assert os.listdir(store.root / ".partial") == []
    assert {ref.name for ref in store.list()} >= {ref.name for ref in saved}
    for ref in saved:
        store.get(ref, tmp_path / "all" / ref.name)
