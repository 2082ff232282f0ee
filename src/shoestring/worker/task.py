"""The files between a backend and a worker: the task, the current orders, and when to end. Times are wall times.

The worker obeys these times by itself, so a lease ends on time even if every other process is dead.
"""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from shoestring.errors import DamagedFile
from shoestring.kernel.types import CheckpointRef, Config, JobId, SegmentId
from shoestring.storage.checkpoints.folder_copy import sync_folder

TASK, CONTROL, OUTBOX, PID, LOCK, LOG = "task.json", "control.json", "out.jsonl", "pid.json", "lock", "log.txt"


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A machine on which a program that is launched once starts its processes, and how many."""

    name: str = "localhost"
    slots: int
    job: str = ""
    """What its provider calls the allocation it belongs to, if it has any: a launcher reaches only one."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What to do; written once."""

    segment: SegmentId
    job: JobId
    config: Config
    until_step: int
    """The target step. With `until_exit` only the scale of its progress; with `open_ended` not even that."""
    until_exit: bool = False
    """A job of a bag: it is done when its code ends, whatever it reports."""
    open_ended: bool = False
    """How many steps it has is unknown."""
    slots: int = 1
    fraction: float = 1.0
    """The data fraction to train on."""
    fractions: tuple[float, ...] = ()
    """Smaller ones to report snapshots of."""
    seed: int = 0
    """The run's."""
    resume_from: CheckpointRef | None = None
    function: str | None = None
    """"/path/file.py:name" or "module:name"."""
    command: tuple[str, ...] | None = None
    argv: tuple[str, ...] = ()
    """`sys.argv` of the process that started the study: files that read their arguments do so when imported, too."""
    folder: str
    """Where user code runs: the folder the study was started in."""
    store: str
    """Root of the checkpoint store."""
    metric: str | None = None
    """The metric that must be reported at least once; None for jobs without one."""
    time_limit_s: float | None = None
    heartbeat: str
    """A file the controller touches while it runs."""
    deadman_s: float = 300.0
    """Seconds without a heartbeat after which the worker saves and releases its machine."""
    leases: tuple[str, ...] = ()
    workers: int = 1
    """Processes with user code to start here, ranks `first_rank` and up: all of a gang, or its part on one machine."""
    first_rank: int = 0
    """Only rank 0 reports and saves."""
    world_size: int = 1
    """Workers of the whole gang."""
    machines: tuple[int, ...] = ()
    """Workers on each machine, in order of rank, where this machine simulates several; empty: they share a machine."""
    master_addr: str = "127.0.0.1"
    master_port: int = 0
    """The port of rank 0. 0: any port that is free here, which is enough if all ranks are here."""
    hosts: tuple[Host, ...] = ()
    """The command is launched once, by the supervisor with rank 0, and these are its machines. The supervisors of the
    others start nothing (`workers=0`), and end what the program has started there."""
    environment: dict[str, str] = {}
    """More variables for such a program."""

    @property
    def last_step(self) -> int | None:
        """The step after which `steps()` ends and a save is due; None: the code knows its end itself."""
        return None if self.open_ended else self.until_step


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """The current orders of a running segment; replaced as a whole."""

    saves_asked: int = 0
    save_every_s: float | None = None
    halt_by: float | None = None
    """Ordered to halt: save and stop now; killed at this time."""
    notice_at: float | None = None
    gone_at: float | None = None
    """When the provider preempts the machine, and when it gives notice. User code gets the notice at `notice_at`."""
    end_by: float = 1e15
    """The prepaid time is over then."""
    lead_s: float = 1.0
    """How long before `end_by` user code has to save and stop."""

    def leave_at(self) -> float:
        """The time from which user code should save and stop."""
        if self.halt_by is not None:
            return 0.0
        return min(self.end_by - self.lead_s, math.inf if self.notice_at is None else self.notice_at)

    def kill_at(self) -> float:
        """When it is killed, saved or not."""
        return min(time for time in (self.end_by, self.gone_at, self.halt_by) if time is not None)


class Inbox:
    """Reads control.json again only when it was replaced: it is called at every step, and must cost next to nothing."""

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
            with suppress(DamagedFile):  # the orders before it hold until the controller has written it again
                self._control = read_json(Path(self._path), Control)
            self._seen = mark
        return self._control


T = TypeVar("T")


def read_json(path: Path, kind: type[T]) -> T:
    """FileNotFoundError if there is none, DamagedFile if it is empty or holds something else."""
    content = path.read_bytes()
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        what = f"is not what was written to it: {error}" if content.strip(b"\0") else "is empty"
        raise DamagedFile(f"{path} {what}", hint="restore it from a copy, or start the run afresh (--fresh)") from error


def write_json(path: Path, value: object) -> None:
    """Replace the file as a whole: a reader sees the old content or the new, never half of it, also after a power cut.

    Without the first fsync some file systems store the new name before the content, which leaves an empty file; without
    the second the file may be missing although something was done because of it.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(fresh, "wb", buffering=0) as file:
        file.write(msgspec.json.encode(value))
        os.fsync(file.fileno())
    os.replace(fresh, path)
    sync_folder(path.parent)


def set_aside(path: Path, damage: DamagedFile) -> None:
    """Keep a damaged file under another name, and say so: what it held is made anew."""
    aside = path.with_name(f"{path.name}.damaged")
    os.replace(path, aside)
    sys.stderr.write(f"warning: {damage}; it is kept as {aside.name} and made anew from the journal\n")
