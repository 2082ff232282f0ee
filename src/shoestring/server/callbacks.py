"""Call-backs of job schedulers: news of a job, handed to whoever waits for it.

Two ways on, because those who wait are in two places. In this process they `wait`. Controllers are processes of their
own: for them the news is left in the run's folder as `callbacks/JOB.json`, replaced as a whole, and gone with the run.
A call-back is a hint to look, never the truth: it may be lost, come twice or come late, and the scheduler is asked.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from shoestring.runs.folder import run_folder
from shoestring.server.schemas import SlurmCallback
from shoestring.worker.task import write_json

FOLDER = "callbacks"


class Callbacks:
    def __init__(self, store: Path) -> None:
        self._store = store
        self._waiting: dict[str, list[asyncio.Future[SlurmCallback]]] = {}

    async def wait(self, job_id: str) -> SlurmCallback:
        """The next news of this job."""
        future: asyncio.Future[SlurmCallback] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(job_id, [])
        waiting.append(future)
        try:
            return await future
        finally:
            if future in waiting:  # given up
                waiting.remove(future)
            if not waiting and self._waiting.get(job_id) is waiting:
                del self._waiting[job_id]

    def heard(self, news: SlurmCallback) -> int:
        """Wake whoever waits for this job; how many there were."""
        if news.run is not None:
            folder = run_folder(news.run, self._store)
            if folder.exists():
                (folder.path / FOLDER).mkdir(exist_ok=True)
                write_json(folder.path / FOLDER / f"{news.job_id}.json", news)
        woken = [future for future in self._waiting.pop(news.job_id, []) if not future.done()]
        for future in woken:
            future.set_result(news)
        return len(woken)
