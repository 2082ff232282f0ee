"""What a SIGKILL in the middle of a save leaves is swept on the next start, and at the end of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from shoestring.testing.slowness import PATIENCE_S

STUDY = """
import time
from pathlib import Path
import shoestring as ss

def train(trial):
    for step in trial.steps():
        trial.report(loss=trial["x"] + 1 / step)
        with trial.save() as folder:
            if folder:
                for part in range(40):
                    (folder / f"layer{part}").write_bytes(bytes(1_000_000))

ss.tune(train, space={"x": ss.uniform(0, 1)}, minimize="loss", max_steps=40, trials=2, recipe="random", seed=1,
        name="saves", store="runs", options={"checkpointing": "periodic", "every_s": 0.01})
"""


def partials(folder: Path) -> list[str]:
    try:
        return os.listdir(folder / "runs" / "saves" / "checkpoints" / ".partial")
    except FileNotFoundError:
        return []


def workers_of(folder: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if str(folder / "runs").encode() in words:
            found.append(int(path.parent.name))
    return found


def kill_in_the_middle_of_a_save(folder: Path) -> list[str]:
    """Controller and workers, all with SIGKILL; the names of what is left half made."""
    running = subprocess.Popen([sys.executable, "study.py"], cwd=folder, stderr=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE_S
    while not partials(folder) and time.monotonic() < until:
        time.sleep(0.002)
    running.kill()
    for pid in workers_of(folder):
        os.kill(pid, signal.SIGKILL)
    running.wait()
    time.sleep(1.1)  # a put is known to be abandoned after a second
    return partials(folder)


def test_leftovers_of_killed_saves_are_gone_after_the_next_start_and_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(STUDY)
    for _ in range(10):
        if left := kill_in_the_middle_of_a_save(tmp_path):
            break
    assert left, "no kill hit a save: the test shows nothing"
    running = subprocess.Popen([sys.executable, "study.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + PATIENCE_S
    while set(partials(tmp_path)) & set(left) and time.monotonic() < until:
        time.sleep(0.05)
    assert running.poll() is None, "they are swept when it starts, not only when it ends"
    assert not set(partials(tmp_path)) & set(left)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said
    assert partials(tmp_path) == []
    assert list((tmp_path / "runs" / "saves" / "segments").glob("*/saving")) == []
