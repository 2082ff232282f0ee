"""SlurmWorker: the workers of one segment on the nodes of its leases, a supervisor on each.

An order is a file in the folder of the lease, which its host carries out. A segment is one attempt at a trial and
runs once: an order given again, by a restarted controller, is the same file.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from shoestring.backends.multi_node import MultiNodeSegment, Part, joined_exit_reasons, parts_of
from shoestring.backends.slurm.host import ALIVE, ORDERS, OVER, Order, Over
from shoestring.backends.slurm.leases import SlurmLeases
from shoestring.kernel.events import Event
from shoestring.worker.outbox import AnyLine, Ended
from shoestring.worker.task import TASK, Task, read_json, write_json

_LOOK_EVERY_S = 0.1
_LAG_S = 2.0
"""A worker may end a moment before its last lines can be read on all machines."""


class SlurmWorker:
    def __init__(self, folder: Path, task: Task, leases: Path, slurm: SlurmLeases) -> None:
        """`leases`: where the folders of leases are."""
        self._folder = folder
        self._task = task
        self._leases = leases
        self._slurm = slurm
        self._parts = parts_of(folder, task, Part)
        self._missing: tuple[float, list[float]] | None = None
        """Since when a part is missing, and the last heartbeat of each host at that time."""
        self._looked_at = 0.0
        self._killed = False

    @property
    def never_started(self) -> bool:
        return not all(self._order(part).exists() for part in self._parts)

    def start(self) -> None:
        first = self._slurm.signed(self._parts[0].lease)
        if first is not None and len(self._parts) > 1:
            self._task = msgspec.structs.replace(self._task, master_addr=first.address)
            write_json(self._folder / TASK, self._task)
        for part in self._parts:
            part.lay_out(self._task)
        for part in self._parts:
            write_json(self._order(part), Order(folder=str(part.folder)))

    def alive(self) -> bool:
        """Are all parts running, or about to? A missing part may have died with a node, which Slurm reports only after
        its timeout. It is the worker's own failure once all hosts have sent another heartbeat."""
        now = time.monotonic()
        if self._killed or now - self._looked_at < _LOOK_EVERY_S:
            return not self._killed
        self._looked_at = now
        if not any(self._is_missing(part) for part in self._parts):
            self._missing = None
            return True
        beats = [_beat(self._leases / part.lease) for part in self._parts]
        if self._missing is None:
            self._missing = now, beats
        since, then = self._missing
        return now - since < _LAG_S or any(beat <= before for beat, before in zip(beats, then, strict=True))

    def _is_missing(self, part: Part) -> bool:
        part.read()
        if part.ended is not None:
            return part.first_rank == 0 or part.ended.cause in ("failed", "lost")
        return (part.folder / OVER).exists()

    def exit_reason(self) -> str:
        return joined_exit_reasons(self._parts, [self._exit_reason(part) for part in self._parts])

    def _exit_reason(self, part: Part) -> str:
        if part.ended is not None:
            return part.ended.detail if part.ended.cause in ("failed", "lost") else ""
        try:
            return read_json(part.folder / OVER, Over).words
        except FileNotFoundError:
            return ""

    def kill(self) -> None:
        """Its control file says that its time is over; what does not stop ends with the lease."""
        self._killed = True

    def _order(self, part: Part) -> Path:
        return self._leases / part.lease / ORDERS / part.segment


class SlurmSegment(MultiNodeSegment):
    def _event(self, line: AnyLine) -> Event | None:
        """On a node that is being preempted, a supervisor may see its user code killed a moment before it is killed
        itself, and report a failure. So a failure counts only after another heartbeat of its node."""
        if isinstance(line, Ended) and line.cause == "failed":
            return None
        return super()._event(line)


def _beat(lease: Path) -> float:
    try:
        return os.stat(lease / ALIVE).st_mtime
    except OSError:
        return 0.0
