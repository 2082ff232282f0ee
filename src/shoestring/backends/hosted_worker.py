"""HostedWorker: the workers of one segment on machines with a host, a supervisor on each.

An order goes through the post to the host of the lease, which carries it out. A segment is one attempt at a trial and
runs once: an order given again, by a restarted controller, is the same order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from shoestring.backends.folder_post import FolderPost
from shoestring.backends.multi_node import Part, first_part, joined_exit_reasons, parts_of, rendezvous_port
from shoestring.worker.task import TASK, Host, Task, write_json

_LOOK_EVERY_S = 0.1
_LAG_S = 2.0
"""A worker may end a moment before its last lines can be read on all machines."""


class HostedWorkers:
    """The orders to machines with a host."""

    def __init__(
        self, run_dir: Path, post: FolderPost, variables: Callable[[Sequence[Host]], dict[str, str]] | None = None
    ) -> None:
        """`variables`: of the environment, for a program that is launched once on these machines, where a launcher only
        reaches those of one allocation."""
        self._run_dir = run_dir
        self._post = post
        self._variables = variables

    def task(self, task: Task) -> Task:
        return first_part(task, rendezvous_port(self._run_dir, task.segment))

    def worker(self, folder: Path, task: Task) -> HostedWorker:
        return HostedWorker(folder, task, self._post, self._variables)

    def end_leftovers(self, segments: Path, running: Collection[Path]) -> None:
        """Each host ends what is left on its machine."""

    def update(self) -> None: ...


class HostedWorker:
    doubts_failures = True
    """On a machine that is being preempted, a supervisor may see its user code killed a moment before it is killed
    itself, and report a failure. So a failure counts only after another heartbeat of its host."""

    def __init__(
        self,
        folder: Path,
        task: Task,
        post: FolderPost,
        variables: Callable[[Sequence[Host]], dict[str, str]] | None = None,
    ) -> None:
        self._folder = folder
        self._task = task
        self._post = post
        self._variables = variables
        self._parts = parts_of(folder, task, Part)
        self.supervisors = len(self._parts)
        self._missing: tuple[float, list[int]] | None = None
        """Since when a part is missing, and the last heartbeat of each host at that time."""
        self._looked_at = 0.0
        self._killed = False

    @property
    def never_started(self) -> bool:
        return not all(self._post.is_ordered(part.lease, part.segment) for part in self._parts)

    def start(self) -> None:
        first = self._post.signed(self._parts[0].lease)
        if self._task.hosts:
            hosts = tuple(map(self._host, self._parts))
            more = {} if self._variables is None else self._variables(hosts)
            self._task = msgspec.structs.replace(self._task, hosts=hosts, environment=more)
            write_json(self._folder / TASK, self._task)
        elif first is not None and len(self._parts) > 1:
            self._task = msgspec.structs.replace(self._task, master_addr=first.address)
            write_json(self._folder / TASK, self._task)
        for part in self._parts:
            part.lay_out(self._task)
        for part in self._parts:
            self._post.order(part.lease, part.segment, part.folder)

    def _host(self, part: Part) -> Host:
        signed = self._post.signed(part.lease)
        if signed is None:
            return Host(slots=part.slots)
        return Host(name=signed.node, slots=part.slots, job="" if self._variables is None else signed.job)

    def alive(self) -> bool:
        """Are all parts running, or about to? A missing part may have died with a node, which its provider may
        report only after a timeout. It is the worker's own failure once all hosts have sent another heartbeat."""
        now = time.monotonic()
        if self._killed or now - self._looked_at < _LOOK_EVERY_S:
            return not self._killed
        self._looked_at = now
        if not any(self._is_missing(part) for part in self._parts):
            self._missing = None
            return True
        beats = [self._post.beat(part.lease) for part in self._parts]
        if self._missing is None:
            self._missing = now, beats
        since, then = self._missing
        return now - since < _LAG_S or any(beat <= before for beat, before in zip(beats, then, strict=True))

    def _is_missing(self, part: Part) -> bool:
        part.read()
        if part.ended is not None:
            return part.first_rank == 0 or part.ended.cause in ("failed", "lost")
        return self._post.exit_reason(part.folder) is not None

    def exit_reason(self) -> str:
        return joined_exit_reasons(self._parts, [self._exit_reason(part) for part in self._parts])

    def _exit_reason(self, part: Part) -> str:
        if part.ended is not None:
            return part.ended.detail if part.ended.cause in ("failed", "lost") else ""
        return self._post.exit_reason(part.folder) or ""

    def kill(self) -> None:
        """Its control file says that its time is over; what does not stop ends with the lease."""
        self._killed = True
