"""The service without its HTTP: runs by their ids, submitted, read, cancelled and resumed."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from shoestring.runs.folder import RunFolder, home
from shoestring.server.callbacks import Callbacks
from shoestring.server.controllers import holder
from shoestring.server.journal_follower import Follower, concludes
from shoestring.server.limits import MAX_WAITING, NAME_PATTERN, Refusal
from shoestring.server.queue import Queue
from shoestring.server.run_state import RunHandle, RunSnapshot
from shoestring.server.schemas import Submit
from shoestring.server.submissions import Submission, all_runs, checked, read_submission, save_submission
from shoestring.world.live.user_requests import post_request

CACHED_FOLDS = 16
"""Of inactive runs: so many stay in memory, the others are folded again on request."""
_NAME = re.compile(NAME_PATTERN)
T = TypeVar("T")


class Service:
    def __init__(self, store: Path, folder: Path, max_concurrent_runs: int) -> None:
        """`store`: the folder of all runs. `folder`: where user code runs."""
        self.store = store
        self.folder = folder
        self.queue = Queue(max_concurrent_runs, self.read_on)
        self.callbacks = Callbacks(store)
        self.closing = asyncio.Event()
        """Set when the service shuts down: streams end then."""
        self.streams = 0
        self._runs: dict[str, RunHandle] = {}
        self._inactive: OrderedDict[str, RunHandle] = OrderedDict()
        """Inactive runs whose fold is in memory, the most recently used last."""
        self._fold = ThreadPoolExecutor(1, "fold")
        """The one thread that folds, and so the only one that touches followers."""
        self._slow = ThreadPoolExecutor(2, "slow")
        """For what reads a whole journal or a whole market."""
        self._submitting = asyncio.Lock()

    # -- lifecycle -----------------------------------------------------------------------------------------------------
    async def open(self) -> None:
        """Resume every submitted run that has not ended."""
        for folder in await self.slowly(lambda: list(all_runs(self.store))):
            submission = read_submission(folder)
            if submission is None or await self.slowly(concludes, folder):
                continue
            run = self._watch(folder, submission)
            await self.read_on(run)
            if not submission.cancelled:
                self.queue.add(run)
            elif run.snapshot.begun and run.snapshot.active and submission.mode == "run":
                self.queue.bring_to_an_end(run)

    async def close(self) -> None:
        await self.queue.close()
        for run in self._runs.values():
            if run.follower is not None:
                await self.folding(run.follower.close)
        self._fold.shutdown()
        self._slow.shutdown(cancel_futures=True)

    # -- requests ------------------------------------------------------------------------------------------------------
    async def submit(self, body: Submit) -> tuple[RunHandle, bool]:
        """Queue a run; False if the same submission exists already."""
        folder, submission = await self.slowly(checked, body, self.folder, self.store)
        async with self._submitting:  # two concurrent submissions of one name: the first wins
            known = await self.find(folder.name, missing_ok=True)
            if known is not None:
                if known.submission is None or not known.submission.same_as(submission):
                    raise Refusal(409, f"there is another run {known.id!r}", hint="give this one another name")
                return known, False
            if len(self.queue.waiting) >= MAX_WAITING:
                raise Refusal(429, f"{MAX_WAITING} runs wait already", hint="wait for some to end, or cancel some")
            await self.slowly(save_submission, folder, submission)
            run = self._watch(folder, submission)
        self.queue.add(run)
        return run, True

    async def cancel(self, run: RunHandle) -> None:
        """Stop a run for good; idempotent."""
        if run.submission is None:
            raise Refusal(409, f"{run.id} was not submitted here", hint=f"on its machine: shoestring stop '{run.id}'")
        if run.snapshot.concluded or run.cancelled:
            return
        run.submission = msgspec.structs.replace(run.submission, cancelled=True)
        await self.slowly(save_submission, run.folder, run.submission)
        self.queue.remove(run)
        if run.simulated:
            if run.driven is not None:
                run.driven.interrupt()
        elif run.driven is not None or holder(run.folder) is not None:
            post_request(run.folder.path, "stop")
        elif run.snapshot.begun:
            self.queue.bring_to_an_end(run)
        run.notify()

    async def resume(self, run: RunHandle) -> None:
        """Resume a run that was paused, parked or could not be started."""
        if run.submission is None or run.phase in ("concluded", "cancelled", "damaged"):
            raise Refusal(409, f"{run.id} is {run.status}: there is nothing to resume", hint="submit another run")
        if not run.waits and run.driven is None:
            run.tries, run.trouble = 0, ""
            self.queue.add(run)

    # -- runs ----------------------------------------------------------------------------------------------------------
    async def names(self) -> list[str]:
        return await self.slowly(lambda: [folder.name for folder in all_runs(self.store)])

    async def get(self, name: str) -> RunHandle:
        """The run of this id, as it is now."""
        run = await self.find(name)
        assert run is not None
        return run

    async def find(self, name: str, *, missing_ok: bool = False) -> RunHandle | None:
        run = self._runs.get(name)
        if run is not None and run.driven is None and not run.folder.path.exists():
            self._forget(run)
            run = None
        if run is None and _NAME.fullmatch(name):  # any other name cannot be a folder
            folder = RunFolder(home(self.store) / name)
            submission = await self.slowly(read_submission, folder)
            if submission is not None or folder.exists():
                run = self._runs.get(name) or self._watch(folder, submission)
        if run is None:
            if missing_ok:
                return None
            raise Refusal(404, f"there is no run {name!r}", hint="GET /v1/runs lists them")
        if run.driven is None and _files(run.folder) != run.seen:
            await self.read_on(run)
        return run

    async def read_on(self, run: RunHandle) -> None:
        """Fold new entries of its journal, and notify watchers if there were any."""
        seen = _files(run.folder)
        snapshot = await self.reading(run, RunSnapshot.of)
        run.seen = seen
        if snapshot != run.snapshot:
            run.snapshot = snapshot
            run.notify()

    async def reading(self, run: RunHandle, read: Callable[[Follower], T]) -> T:
        """Read from the up-to-date fold, in the thread it belongs to."""
        if run.follower is None:
            run.follower = Follower(run.folder)
        follower = run.follower

        def work() -> T:
            follower.refresh()
            return read(follower)

        answer = await self.folding(work)
        await self._cache_fold(run)
        return answer

    async def _cache_fold(self, run: RunHandle) -> None:
        self._inactive.pop(run.id, None)
        if run.driven is not None:
            return
        self._inactive[run.id] = run
        while len(self._inactive) > CACHED_FOLDS:
            _, oldest = self._inactive.popitem(last=False)
            if oldest.follower is not None and oldest.driven is None:
                follower, oldest.follower = oldest.follower, None
                await self.folding(follower.close)

    def _watch(self, folder: RunFolder, submission: Submission | None) -> RunHandle:
        self._runs[folder.name] = run = RunHandle(folder, submission)
        return run

    def _forget(self, run: RunHandle) -> None:
        """Its folder was deleted, and with it the run."""
        self.queue.remove(run)
        self._inactive.pop(run.id, None)
        del self._runs[run.id]

    # -- threads -------------------------------------------------------------------------------------------------------
    async def folding(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._fold, work)

    async def slowly(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._slow, work, *arguments)


def _files(folder: RunFolder) -> tuple[float, ...]:
    """Changes whenever the journal does: SQLite writes to the log beside it first."""
    stats: list[float] = []
    for path in (folder.journal, folder.journal.with_name(f"{folder.journal.name}-wal")):
        try:
            stat = path.stat()
        except OSError:
            continue
        stats += stat.st_ino, stat.st_mtime_ns, stat.st_size
    return tuple(stats)
