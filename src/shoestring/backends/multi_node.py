"""Segments whose workers are on other machines, one supervisor on each.

Rank 0's supervisor has the segment's own folder, as on the other backends. The part of a gang on another lease has a
folder in it, with a task of its own, the same control file, and an outbox of which only the end is read.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from shoestring.backends.local.segment import LocalSegment
from shoestring.kernel.events import Event, SegmentEnded
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.worker.outbox import AnyLine, Ended, Tail
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
    parts: list[P] = []
    first_rank = 0
    for lease, workers in zip(task.leases, task.machines or (task.workers,), strict=True):
        place = folder / f"on-{lease}" if parts else folder
        slots = task.slots * workers // task.world_size
        parts.append(kind(place, LeaseId(lease), task.segment, first_rank, workers, slots))
        first_rank += workers
    return parts


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


class MultiNodeSegment(LocalSegment):
    def _event(self, line: AnyLine) -> Event | None:
        """When rank 0 of a gang fails, the cause may be another machine: the worker checks, and `died` reports it."""
        if isinstance(line, Ended) and line.cause == "failed" and len(self.leases) > 1:
            return None
        return super()._event(line)

    def died(self, at: float) -> SegmentEnded:
        """The host of its supervisor is gone. If the supervisor still runs, it ends now."""
        self.update_control(end_by=min(self.control.end_by, time.time()))
        return super().died(at)

    def end_other_ranks(self) -> None:
        """Rank 0 has ended: so do the others."""
        if len(self.leases) > 1:
            self.update_control(end_by=min(self.control.end_by, time.time()))
            self.worker.kill()
