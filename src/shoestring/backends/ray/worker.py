"""RayWorker: the workers of one segment on Ray nodes, one supervisor on each of its machines, each under an actor.

An actor that does not answer may be alive or not, so none is ever queried. What counts is what its supervisor wrote,
and whether Ray lists the actor. A segment is one attempt at a trial and runs once: an actor started a second time, by a
restarted controller, finds the folder locked.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from weakref import WeakSet

import msgspec

from shoestring.backends.multi_node import Part, first_part, joined_exit_reasons, parts_of
from shoestring.backends.ray.link import NO_VIEW, RayLink
from shoestring.backends.ray.nodes import NodeSource
from shoestring.host.process import WorkerProcess
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.worker.task import TASK, Task, write_json

_LAG_S = 2.0
"""An actor may be gone from Ray's list a moment before its supervisor's last lines can be read on all machines, and a
machine may take a moment to end all of its processes."""
_MOST_DOUBT_S = 90.0
"""With Ray's own settings a machine that was killed counts as alive for about 16 s, and for a minute if it vanished
from the network."""


class RayPart(Part):
    """The part of a segment that runs on one node, under an actor."""

    def __init__(
        self, folder: Path, lease: LeaseId, segment: SegmentId, first_rank: int, workers: int, slots: int
    ) -> None:
        super().__init__(folder, lease, segment, first_rank, workers, slots)
        self.actor = f"{segment}.{lease}"
        self.order: int | None = None
        """The number of the order to start it, if this controller gave one."""

    def is_listed(self, link: RayLink | None) -> bool | None:
        """Does Ray list its actor? None if that is not known now."""
        if link is None or link.view is NO_VIEW:
            return None
        if self.actor in link.view.actors:
            return True
        return None if self.order is not None and not link.is_confirmed(self.order) else False

    def exit_reason(self, link: RayLink | None) -> str:
        """Why it failed, or "" if it did not."""
        if self.ended is not None:
            return self.ended.detail if self.ended.cause in ("failed", "lost") else ""
        if self.is_listed(link):
            return ""
        trouble = "" if link is None else link.troubles.get(self.actor, "")
        return trouble or "the worker disappeared without reporting an end"


class RayWorkers:
    """The orders to Ray nodes."""

    def __init__(self, nodes: NodeSource) -> None:
        self._nodes = nodes
        self._workers: WeakSet[RayWorker] = WeakSet()

    def task(self, task: Task) -> Task:
        return first_part(task, self._nodes.port(task.segment))

    def worker(self, folder: Path, task: Task) -> RayWorker:
        worker = RayWorker(folder, task, self._nodes)
        self._workers.add(worker)
        return worker

    def end_leftovers(self, segments: Path, running: Collection[Path]) -> None:
        """Each node ends what is left on its machine."""

    def update(self) -> None:
        for worker in list(self._workers):
            worker.start_if_ready()


class RayWorker:
    def __init__(self, folder: Path, task: Task, nodes: NodeSource) -> None:
        self._folder = folder
        self._task = task
        self._nodes = nodes
        self._parts = parts_of(folder, task, RayPart)
        self.supervisors = len(self._parts)
        self.doubts_failures = self.supervisors > 1 or not nodes.local
        """When rank 0 of a gang fails, the cause may be another machine. And on a machine that is being preempted, a
        supervisor may see its user code killed a moment before it is killed itself."""
        self._ordered = False
        """Ordered, and not yet passed on: its nodes may still be starting."""
        self._driver_generation = 0
        """The generation of the driver it was passed on to, or 0."""
        self._missing_since: float | None = None

    @property
    def never_started(self) -> bool:
        return not self._ordered and not all(part.has_begun for part in self._parts)

    def start(self) -> None:
        self._ordered = True

    def start_if_ready(self) -> None:
        """Start an ordered segment once Ray knows all of its nodes: workers of a gang need the address of rank 0."""
        link = self._nodes.link
        if link is None or link.view is NO_VIEW:
            return
        if self._driver_generation and self._driver_generation != link.generation:
            self._ordered = self._ordered or self.never_started
            self._driver_generation = link.generation
        if not self._ordered:
            return
        nodes = [self._nodes.node(part.lease) for part in self._parts]
        first = nodes[0]
        if first is None or None in nodes:
            return
        if self._task.hosts and not self._parts[0].has_begun:
            named = zip(self._task.hosts, nodes, strict=True)
            hosts = tuple(msgspec.structs.replace(host, name=node.address) for host, node in named if node is not None)
            self._task = msgspec.structs.replace(self._task, hosts=hosts)
            write_json(self._folder / TASK, self._task)
        elif len(self._parts) > 1 and not self._parts[0].has_begun:
            self._task = msgspec.structs.replace(self._task, master_addr=first.address)
            write_json(self._folder / TASK, self._task)
        for part, node in zip(self._parts, nodes, strict=True):
            if node is not None and not part.has_begun:
                part.lay_out(self._task)
                cpus, gpus = self._nodes.needs(part.lease, part.slots)
                part.order = link.start(part.actor, node=node.id, folder=part.folder, cpus=cpus, gpus=gpus)
        self._ordered, self._driver_generation = False, link.generation

    def alive(self) -> bool:
        """Are all parts running, or about to? A part that is missing may have died with its node, which Ray reports
        seconds later: a trial that was started again at once would be on a dead lease. So it is the worker's own
        failure only once all nodes have answered. Or its supervisor has stopped, and its last lines cannot be read yet
        on this machine."""
        if self._ordered:
            return True
        if not any(self._is_missing(part) for part in self._parts):
            self._missing_since = None
            return True
        now = time.monotonic()
        self._missing_since = self._missing_since or now
        since = self._missing_since + _LAG_S
        if now < since:
            return True
        answers = [self._nodes.answers(part.lease, since=since) for part in self._parts]
        return not all(answers) and now - since < _MOST_DOUBT_S

    def _is_missing(self, part: RayPart) -> bool:
        if self.doubts_failures:
            part.read()
            if part.ended is not None and part.ended.cause in ("failed", "lost"):
                return True
            if part.ended is not None and len(self._parts) > 1:
                return part.first_rank == 0
        return part.is_listed(self._nodes.link) is False

    def exit_reason(self) -> str:
        return joined_exit_reasons(self._parts, [part.exit_reason(self._nodes.link) for part in self._parts])

    def kill(self) -> None:
        """A part that is still starting finds in the control file that its time is over."""
        self._ordered, self._driver_generation = False, 0
        link = self._nodes.link
        for part in self._parts:
            if self._nodes.local:
                WorkerProcess(part.folder).kill()
            elif link is not None and part.is_listed(link) is not False:
                link.end(part.actor)
