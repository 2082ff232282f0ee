"""A worker started by a test: a folder, a task, and its outbox."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing.slowness import PATIENCE_S
from shoestring.worker.outbox import Ended, Reported, Saved, Tail
from shoestring.worker.task import CONTROL, OUTBOX, TASK, Control, Task, write_json


class WorkerRun:
    """Starts one worker, and reads its outbox."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "s0"
        self.folder.mkdir()
        self.heartbeat = tmp_path / "heartbeat"
        self.heartbeat.touch()
        self.store = DirectoryStore(tmp_path / "store")
        self.user_folder = tmp_path / "user code"
        self.user_folder.mkdir()
        self.control = Control(end_by=time.time() + 2 * PATIENCE_S)
        self.process = None
        self.environment = {}

    def next_segment(self):
        """The next start is another segment."""
        self.folder = self.folder.with_name(f"s{int(self.folder.name[1:]) + 1}")
        self.folder.mkdir()

    def write(self, name, text):
        (self.user_folder / name).write_text(text)
        return name

    def start(self, **task):
        defaults = {
            "segment": "s0",
            "job": "j7",
            "config": {},
            "until_step": 3,
            "folder": str(self.user_folder),
            "store": str(self.store.root),
            "metric": "loss",
            "heartbeat": str(self.heartbeat),
        }
        write_json(self.folder / CONTROL, self.control)
        write_json(self.folder / TASK, Task(**(defaults | task)))
        self.process = self.spawn()
        return self

    def spawn(self):
        with (self.folder / "log.txt").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "shoestring.worker", str(self.folder)],
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )

    def update_control(self, **control):
        self.control = Control(end_by=self.control.end_by, **control)
        write_json(self.folder / CONTROL, self.control)

    def lines(self, kind=None):
        tail = Tail(self.folder / OUTBOX)
        found = [line for line in tail.read() if kind is None or isinstance(line, kind)]
        tail.close()
        return found

    def wait_for(self, kind):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if found := self.lines(kind):
                return found[0]
            time.sleep(0.005)
        raise AssertionError(f"no {kind.__name__}: {self.lines()}\n{self.log()}")

    def run(self, **task):
        self.start(**task)
        return self.wait_ended()

    def wait_ended(self):
        self.process.wait(PATIENCE_S)
        return self.ended()

    def ended(self):
        found = self.lines(Ended)
        assert len(found) == 1, f"{self.lines()}\n{self.log()}"
        return found[0]

    def leaves_nothing(self):
        """Is the worker's session empty, now or in a moment?"""
        until = time.monotonic() + PATIENCE_S
        while not session_is_empty(self.process.pid):
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def log(self):
        return (self.folder / "log.txt").read_text()

    def steps(self):
        return [line.step for line in self.lines(Reported)]

    def saves(self):
        return [line.step for line in self.lines(Saved)]


def session_is_empty(pid):
    """No running process in the worker's session; zombies do not count."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                with open(f"/proc/{entry.name}/stat") as file:
                    state, _, _, session = file.read().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == pid and state not in "ZX":
                return False
    return True


@pytest.fixture
def worker(tmp_path):
    worker = WorkerRun(tmp_path)
    yield worker
    if worker.process is not None and worker.process.poll() is None:
        os.killpg(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
