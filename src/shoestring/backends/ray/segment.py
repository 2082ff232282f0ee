"""RayWorker: the workers of one segment on Ray nodes, one supervisor on each of its machines, each under an actor.

An actor that does not answer may be alive or not, so none is ever asked. What counts is what its supervisor wrote, and
whether Ray lists the actor. A segment is one attempt at a trial and runs once: an actor started again, by a controller
that could not know, finds the folder taken.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

import msgspec

from shoestring.backends.local.process import WorkerProcess
from shoestring.backends.multi_node import Part, complaints, parts_of
from shoestring.backends.ray.link import NOTHING, RayLink
from shoestring.backends.ray.messages import Node
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.worker.task import TASK, Task, write_json

_LAG_S = 2.0
"""An actor may be gone from Ray's list a moment before its supervisor's last words are to be read everywhere."""


class NodeSource(Protocol):
    """Where leases get their nodes: `ray_nodes.StartedNodes`, `ray_cluster.JoinedNodes`."""

    patience_s: float
    """For how long a worker of a gang may be missing before that must be its own doing: the death of a node is known by
    then."""
    here: bool
    """Are the nodes processes of this machine?"""
    link: RayLink | None

    def be_ready(self) -> None: ...

    def has_room(self, lease: LeaseId, coming: int) -> bool: ...

    def take(self, lease: LeaseId, end_at: float) -> None: ...

    def node(self, lease: LeaseId) -> Node | None: ...

    def lost(self, lease: LeaseId) -> str: ...

    def give_back(self, lease: LeaseId) -> None: ...

    def needs(self, lease: LeaseId, slots: int) -> tuple[float, float]: ...

    def port(self, segment: SegmentId) -> int: ...

    def let_go(self) -> None: ...

    def close(self) -> None: ...


class RayPart(Part):
    """What runs of a segment on one node, under an actor."""

    def __init__(
        self, folder: Path, lease: LeaseId, segment: SegmentId, first_rank: int, workers: int, slots: int
    ) -> None:
        super().__init__(folder, lease, segment, first_rank, workers, slots)
        self.actor = f"{segment}.{lease}"
        self.order: int | None = None
        """The number of the order to start it, if we gave one."""

    def is_listed(self, link: RayLink | None) -> bool | None:
        """Does Ray know its actor? None if that cannot be said now."""
        if link is None or link.view is NOTHING:
            return None
        if self.actor in link.view.actors:
            return True
        return None if self.order is not None and not link.has_heard(self.order) else False

    def words(self, link: RayLink | None) -> str:
        """What is known of its end, if it was a bad one."""
        if self.ended is not None:
            return self.ended.detail if self.ended.cause in ("failed", "lost") else ""
        if self.is_listed(link):
            return ""
        trouble = "" if link is None else link.troubles.get(self.actor, "")
        return trouble or "the worker vanished without a word"


class RayWorker:
    def __init__(self, folder: Path, task: Task, nodes: NodeSource) -> None:
        self._folder = folder
        self._task = task
        self._nodes = nodes
        self._parts = parts_of(folder, task, RayPart)
        self._wanted = False
        """Ordered, and not yet passed on: its nodes may still be on their way up."""
        self._driver = 0
        """Which driver it was passed on to, if any."""
        self._missed_at: float | None = None

    @property
    def never_started(self) -> bool:
        return not self._wanted and not all(part.has_begun for part in self._parts)

    def start(self) -> None:
        self._wanted = True

    def carry_on(self) -> None:
        """Start what is wanted once Ray knows all of its nodes: workers of a gang must find rank 0's machine."""
        link = self._nodes.link
        if link is None or link.view is NOTHING:
            return
        if self._driver and self._driver != link.generation:
            self._wanted = self._wanted or self.never_started
            self._driver = link.generation
        if not self._wanted:
            return
        nodes = [self._nodes.node(part.lease) for part in self._parts]
        first = nodes[0]
        if first is None or None in nodes:
            return
        if len(self._parts) > 1 and not self._parts[0].has_begun:
            self._task = msgspec.structs.replace(self._task, master_addr=first.address)
            write_json(self._folder / TASK, self._task)
        for part, node in zip(self._parts, nodes, strict=True):
            if node is not None and not part.has_begun:
                part.lay_out(self._task)
                cpus, gpus = self._nodes.needs(part.lease, part.slots)
                part.order = link.start(part.actor, node=node.id, folder=part.folder, cpus=cpus, gpus=gpus)
        self._wanted, self._driver = False, link.generation

    def alive(self) -> bool:
        """Is all of it there, or about to be? A part that is missing may have gone with its node, of which we hear a
        moment later, or have left since rank 0 did, whose last words are still on their way."""
        if self._wanted:
            return True
        if not any(self._is_missing(part) for part in self._parts):
            self._missed_at = None
            return True
        now = time.monotonic()
        self._missed_at = self._missed_at or now
        return now - self._missed_at < (_LAG_S if len(self._parts) == 1 else self._nodes.patience_s)

    def _is_missing(self, part: RayPart) -> bool:
        if len(self._parts) > 1:
            part.read()
            if part.ended is not None:
                return part.first_rank == 0 or part.ended.cause in ("failed", "lost")
        return part.is_listed(self._nodes.link) is False

    def exit_reason(self) -> str:
        return complaints(self._parts, [part.words(self._nodes.link) for part in self._parts])

    def kill(self) -> None:
        """A part that is only just coming up finds in the control file that its time is over."""
        self._wanted, self._driver = False, 0
        link = self._nodes.link
        for part in self._parts:
            if self._nodes.here:
                WorkerProcess(part.folder).kill()
            elif link is not None and part.is_listed(link) is not False:
                link.end(part.actor)
