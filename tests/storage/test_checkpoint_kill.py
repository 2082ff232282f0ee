"""kill -9 during a save: every visible checkpoint is whole, and the earlier ones are unchanged."""

import os
import random
import subprocess
import sys
import time

import msgspec

from shoestring.kernel.types import CheckpointRef
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing.checkpoint_suite import contents, folder
from shoestring.testing.slowness import slowness

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


def test_a_killed_save_is_never_visible_and_damages_no_other(tmp_path):
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
            time.sleep(rng.uniform(0.0, 0.08) * slowness())
            saver.kill()
            lines = saver.stdout.read().splitlines(keepends=True)
        saved += [msgspec.json.decode(line, type=CheckpointRef) for line in lines if line.endswith("\n")]
        leftovers += len(os.listdir(store.root / ".partial")) if (store.root / ".partial").exists() else 0
        visible = store.list()
        assert {ref.name for ref in visible} >= {ref.name for ref in saved}
        for ref in visible[-3:]:
            store.get(ref, tmp_path / f"back{ref.step}-{attempt}")
            assert contents(tmp_path / f"back{ref.step}-{attempt}") == contents(source)
    assert leftovers > 0, "no kill hit a save: the test proves nothing"
    store.sweep(older_than_s=0.0)
    assert os.listdir(store.root / ".partial") == []
    assert {ref.name for ref in store.list()} >= {ref.name for ref in saved}
    for ref in saved:
        store.get(ref, tmp_path / "all" / ref.name)


HOLDER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print("holds", flush=True)
sys.stdin.read()
"""


def test_a_killed_save_is_swept_at_once_and_one_under_way_is_left(tmp_path):
    """The process of a put holds a lock, which the kernel releases however it dies."""
    source = folder(tmp_path / "source", {f"layer{n}": os.urandom(3_000_000) for n in range(8)})
    store = DirectoryStore(tmp_path / "store")
    killed: set[str] = set()
    for _ in range(60):
        command = [sys.executable, "-c", SAVER, str(store.root), str(source), "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
            assert saver.stdout.readline() == "ready\n"
            while not (store.root / ".partial").exists() or not os.listdir(store.root / ".partial"):
                time.sleep(0.002)
            saver.kill()
        killed = set(os.listdir(store.root / ".partial")) if (store.root / ".partial").exists() else set()
        if killed:
            break
    assert killed, "no kill hit a save: the test proves nothing"
    time.sleep(1.1)
    live = store.root / ".partial" / f"live@{next(iter(killed)).partition('@')[2]}"
    live.mkdir()
    os.utime(live, (time.time() - 60,) * 2)
    command = [sys.executable, "-c", HOLDER, str(live)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "holds\n"
        assert set(store.sweep()) == {f".partial/{name}" for name in killed}
        assert os.listdir(store.root / ".partial") == [live.name]
        holder.communicate()
    assert store.sweep() == (f".partial/{live.name}",)
