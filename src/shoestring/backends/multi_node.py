"""Segments whose workers are on other machines, one supervisor on each.

Rank 0's supervisor has the segment's own folder, as on the other backends. The part of a gang on another lease has a
folder in it, with a task of its own, the same control file, and an outbox of which only the end is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.worker.outbox import Ended, Tail
from shoestring.worker.task import CONTROL, OUTBOX, PID, TASK, Task, write_json

_FIRST_PORT, _PORTS = 20_000, 10_000
"""Below the ephemeral ports of a system, and above those Ray gives its workers."""


class Part:
    """The part of a segment that runs on one lease."""

    def __init__(
        self, folder: Path, lease: LeaseId, segment: SegmentId, first_rank: int, workers: int, slots: int
    ) -> None:
        self.folder = folder
        self.lease = lease
        self.segment = segment
        self.first_rank = first_rank
        self.workers = workers
        self.slots = slots
        self.ended: Ended | None = None
        self._tail = Tail(folder / OUTBOX)

    @property
    def has_begun(self) -> bool:
        return (self.folder / PID).exists()

    def lay_out(self, task: Task) -> None:
        """Create the folder of a part other than rank 0's. It obeys the same control file."""
        if self.first_rank == 0:
            return
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / CONTROL).is_symlink():
            (self.folder / CONTROL).symlink_to(Path("..") / CONTROL)
        own = msgspec.structs.replace(task, first_rank=self.first_rank, workers=self.workers, machines=())
        if task.hosts:  # nothing of its own can overrun there
            own = msgspec.structs.replace(own, time_limit_s=None)
        write_json(self.folder / TASK, own)

    def read(self) -> None:
        if self.ended is None:
            for line in self._tail.read():
                if isinstance(line, Ended):
                    self.ended = line
                    self._tail.close()
                    return


P = TypeVar("P", bound=Part)


def parts_of(folder: Path, task: Task, kind: Callable[[Path, LeaseId, SegmentId, int, int, int], P]) -> list[P]:
    """One for each lease, in order of rank."""
    if task.hosts:
        return _parts_launched_once(folder, task, kind)
    parts: list[P] = []
    first_rank = 0
    for lease, workers in zip(task.leases, task.machines or (task.workers,), strict=True):
        place = folder / f"on-{lease}" if parts else folder
        slots = task.slots * workers // task.world_size
        parts.append(kind(place, LeaseId(lease), task.segment, first_rank, workers, slots))
        first_rank += workers
    return parts


def _parts_launched_once(
    folder: Path, task: Task, kind: Callable[[Path, LeaseId, SegmentId, int, int, int], P]
) -> list[P]:
    """Only the first starts anything."""
    return [
        kind(folder / f"on-{lease}" if rank else folder, LeaseId(lease), task.segment, rank, int(not rank), host.slots)
        for rank, (lease, host) in enumerate(zip(task.leases, task.hosts, strict=True))
    ]


def first_part(task: Task, port: int) -> Task:
    """The task of the part on the first lease, which has rank 0; its workers are reached at `port`."""
    if len(task.leases) == 1 or task.hosts:
        return task
    return msgspec.structs.replace(task, workers=task.machines[0], master_port=port)


def rendezvous_port(run_dir: Path, segment: SegmentId) -> int:
    """MASTER_PORT of a gang on other machines. Which ports are free there is unknown, so it is a hash of the segment:
    two attempts at a trial get different ports, and never connect to each other."""
    return _FIRST_PORT + zlib.crc32(f"{run_dir}:{segment}".encode()) % _PORTS


def joined_exit_reasons(parts: Sequence[Part], reasons: Sequence[str]) -> str:
    """Why a segment failed: the reasons of all parts that have one."""
    if len(reasons) == 1:
        return reasons[0]
    return "; ".join(
        reason if reason.startswith("rank ") else f"rank {part.first_rank}: {reason}"
        for part, reason in zip(parts, reasons, strict=True)
        if reason
    )
