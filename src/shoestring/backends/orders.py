"""How orders reach the machines: the protocols Orders and Worker, and the shortest way, processes on this computer."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from shoestring.host.process import WorkerProcess, end_leftovers
from shoestring.worker.task import Task


class Worker(Protocol):
    """What runs one segment, on this machine or others."""

    supervisors: int
    """On how many machines it runs, each with a supervisor of its own."""
    doubts_failures: bool
    """A failure that user code reports may be that of its machine: it counts once the worker is no longer alive."""

    def start(self) -> None: ...

    @property
    def never_started(self) -> bool: ...

    def alive(self) -> bool:
        """Is it running, or about to?"""
        ...

    def exit_reason(self) -> str: ...

    def kill(self) -> None: ...


class Orders(Protocol):
    def task(self, task: Task) -> Task:
        """The task of the part on the first lease, which has rank 0."""
        ...

    def worker(self, folder: Path, task: Task) -> Worker: ...

    def end_leftovers(self, segments: Path, running: Collection[Path]) -> None:
        """Kill what is left on this computer of segments in this folder other than the running ones."""
        ...

    def update(self) -> None:
        """Pass on what had to wait. Called at every poll."""
        ...


class ProcessesHere:
    """All machines are this computer: a gang is one supervisor with all of its workers."""

    def task(self, task: Task) -> Task:
        return task

    def worker(self, folder: Path, task: Task) -> Worker:  # noqa: ARG002
        return WorkerProcess(folder)

    def end_leftovers(self, segments: Path, running: Collection[Path]) -> None:
        end_leftovers(segments, running)

    def update(self) -> None: ...
