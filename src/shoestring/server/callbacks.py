"""Callbacks of job schedulers: state changes of a job, delivered to its waiters.

There are two kinds of waiters. Those in this process `wait`. Controllers are separate processes: for them the callback
is written to the run's folder as `callbacks/JOB.json`, replaced as a whole, and deleted with the run. A callback is
only a hint to query the scheduler: it may be lost, arrive twice or arrive late.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from shoestring.runs.folder import RunFolder, home
from shoestring.server.schemas import SlurmCallback
from shoestring.worker.task import write_json

FOLDER = "callbacks"


class Callbacks:
    def __init__(self, store: Path) -> None:
        self._store = store
        self._waiting: dict[str, list[asyncio.Future[SlurmCallback]]] = {}

    async def wait(self, job_id: str) -> SlurmCallback:
        """The next callback for this job."""
        future: asyncio.Future[SlurmCallback] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(job_id, [])
        waiting.append(future)
        try:
            return await future
        finally:
            if future in waiting:  # cancelled
                waiting.remove(future)
            if not waiting and self._waiting.get(job_id) is waiting:
                del self._waiting[job_id]

    def deliver(self, callback: SlurmCallback) -> int:
        """Wake all waiters of this job; returns how many there were."""
        if callback.run is not None:
            folder = RunFolder(home(self._store) / callback.run)
            if folder.exists():
                (folder.path / FOLDER).mkdir(exist_ok=True)
                write_json(folder.path / FOLDER / f"{callback.job_id}.json", callback)
        woken = [future for future in self._waiting.pop(callback.job_id, []) if not future.done()]
        for future in woken:
            future.set_result(callback)
        return len(woken)
