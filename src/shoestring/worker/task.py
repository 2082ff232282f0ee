"""The files between a backend and a worker: what to do, what is wanted, by when it must be over. Times are wall times.

The worker keeps these times by itself, so a lease ends when it was to end with every other process dead.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from shoestring.kernel.types import CheckpointRef, Config, JobId, SegmentId

TASK, CONTROL, OUTBOX, PID, LOCK, LOG = "task.json", "control.json", "out.jsonl", "pid.json", "lock", "log.txt"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What to do; written once."""

    segment: SegmentId
    job: JobId
    config: Config
    until_step: int
    slots: int = 1
    fraction: float = 1.0
    """The share of the training data to use."""
    fractions: tuple[float, ...] = ()
    """Smaller ones that a snapshot is wanted of."""
    seed: int = 0
    """The run's."""
    resume_from: CheckpointRef | None = None
    function: str | None = None
    """"/path/file.py:name" or "module:name"."""
    command: tuple[str, ...] | None = None
    argv: tuple[str, ...] = ()
    """What `sys.argv` was when the study was started: files that read their arguments do so when imported, too."""
    folder: str
    """Where user code runs: the folder the study was started in."""
    store: str
    """Root of the checkpoint store."""
    metric: str | None = None
    """What must be reported at least once; None for jobs that are only to be done."""
    time_limit_s: float | None = None
    heartbeat: str
    """A file the controller touches while it lives."""
    deadman_s: float = 300.0
    """Silence of the controller after which the worker saves and gives its machine back."""
    leases: tuple[str, ...] = ()
    workers: int = 1
    """Processes with user code to start here, ranks `first_rank` and up: all of a gang, or its part on one machine."""
    first_rank: int = 0
    """Only rank 0 reports and saves."""
    world_size: int = 1
    """Workers of the whole gang."""
    machines: tuple[int, ...] = ()
    """Workers on each machine, in order of rank, where several are played by this one; empty: they share a machine."""
    master_addr: str = "127.0.0.1"
    master_port: int = 0
    """Where rank 0 may be met by the others. 0: any port that is free here, which will do if all ranks are here."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of a running segment; replaced as a whole."""

    saves_asked: int = 0
    save_every_s: float | None = None
    halt_by: float | None = None
    """Told to halt: save and stop now; killed then."""
    notice_at: float | None = None
    gone_at: float | None = None
    """When the provider takes the machine back, and when it says so. User code hears of it at `notice_at`."""
    end_by: float = 1e15
    """The prepaid time is over then."""
    lead_s: float = 1.0
    """How long before `end_by` user code is asked to save and leave."""

    def leave_at(self) -> float:
        """From when on user code should save and go."""
        if self.halt_by is not None:
            return 0.0
        return min(self.end_by - self.lead_s, math.inf if self.notice_at is None else self.notice_at)

    def kill_at(self) -> float:
        """When it is killed, saved or not."""
        return min(time for time in (self.end_by, self.gone_at, self.halt_by) if time is not None)


class Inbox:
    """Reads control.json again only when it was replaced: asked at every step, it must cost next to nothing."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / CONTROL)
        self._seen: tuple[int, int] | None = None
        self._control = Control()

    def read(self) -> Control:
        try:
            stat = os.stat(self._path)
        except FileNotFoundError:
            return self._control
        mark = (stat.st_ino, stat.st_mtime_ns)
        if mark != self._seen:
            self._control = read_json(Path(self._path), Control)
            self._seen = mark
        return self._control


T = TypeVar("T")


def read_json(path: Path, kind: type[T]) -> T:
    return msgspec.json.decode(path.read_bytes(), type=kind)


def write_json(path: Path, value: object) -> None:
    """Replace the file as a whole: a reader sees the old content or the new, never half of it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(msgspec.json.encode(value))
    os.replace(fresh, path)
