"""The queue: at most `max_concurrent_runs` run, the others wait in the order of submission.

It is derived, never saved: the waiting runs are those that were submitted and have not ended, in the order of
submission. So a service that is killed loses nothing, and the next one adopts runs whose controllers are alive.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from shoestring.server.controllers import Adopted, Spawned, holder
from shoestring.server.run_state import RunHandle

LOOK_EVERY_S = 0.2
MOST_TRIES = 3
"""For a run whose controller is killed again and again: the next one would likely be killed too."""
PATIENCE_S = 60.0
"""For runs to save and release their machines when the service ends."""


class Queue:
    def __init__(self, max_concurrent_runs: int, look: Callable[[RunHandle], Awaitable[None]]) -> None:
        """`look` folds new entries of a run's journal."""
        self.max_concurrent_runs = max_concurrent_runs
        self.waiting: list[RunHandle] = []
        self.active: list[RunHandle] = []
        self._look = look
        self._ending: set[RunHandle] = set()
        """Active runs that only wind down. They do not count against the maximum."""
        self._closing = False
        self._woken = asyncio.Event()

    # -- requests ------------------------------------------------------------------------------------------------------
    def add(self, run: RunHandle) -> None:
        """Start or resume a run, now if a place is free. One whose controller is already running is adopted."""
        if not self._adopt(run) and not run.waits:
            run.waits = True
            self.waiting.append(run)
            self.waiting.sort(key=_order)
        self._changed(run)

    def _adopt(self, run: RunHandle) -> bool:
        pid = holder(run.folder)
        if pid is not None:
            run.driven = Adopted(run.folder, pid)
            self.active.append(run)
        return pid is not None

    def remove(self, run: RunHandle) -> None:
        if run.waits:
            run.waits = False
            self.waiting.remove(run)
            self._changed(run)

    def bring_to_an_end(self, run: RunHandle) -> None:
        """Conclude a run: its machines are released, its receipt is final. A running controller knows already."""
        self._ending.add(run)
        if not self._adopt(run):
            self._start(run, ending=True)

    def ahead_of(self, run: RunHandle) -> int | None:
        return self.waiting.index(run) if run.waits else None

    # -- the loop ------------------------------------------------------------------------------------------------------
    async def work(self) -> None:
        """Start runs, follow active ones, notice ended ones; until cancelled."""
        while True:
            try:
                await self.turn()
            except Exception as error:  # a bug in one run must not block the others
                sys.stderr.write(f"shoestring: error in the queue: {type(error).__name__}: {error}\n")
                await asyncio.sleep(LOOK_EVERY_S)
            self._woken.clear()
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def turn(self) -> None:
        for run in list(self.active):
            alive = run.driven is not None and run.driven.alive()
            await self._look(run)  # after `alive`: includes what a controller wrote before it exited
            if not alive:
                self._exited(run)
        while not self._closing and self.waiting and len(self.active) - len(self._ending) < self.max_concurrent_runs:
            run = self.waiting.pop(0)
            run.waits = False
            self._start(run, ending=False)
            for other in self.waiting:
                other.notify()

    def _start(self, run: RunHandle, *, ending: bool) -> None:
        run.trouble = ""
        try:
            run.driven = Spawned(run.folder, ending=ending)
            self.active.append(run)
        except OSError as error:
            run.trouble = f"its controller cannot be started: {error}"
            self._ending.discard(run)
        self._changed(run)

    def _exited(self, run: RunHandle) -> None:
        driven, run.driven = run.driven, None
        self.active.remove(run)
        self._ending.discard(run)
        crashed = driven is not None and driven.crashed()
        run.trouble = "" if run.snapshot.concluded or driven is None else driven.trouble()
        if self._closing or not run.snapshot.active:
            pass
        elif run.cancelled:
            if run.snapshot.begun and not run.simulated and run.tries < MOST_TRIES:
                run.tries += 1
                self.bring_to_an_end(run)
        elif crashed and run.tries < MOST_TRIES:
            run.tries += 1
            self.add(run)
        self._changed(run)

    def _changed(self, run: RunHandle) -> None:
        run.notify()
        self._woken.set()

    # -- the end of the service ----------------------------------------------------------------------------------------
    async def close(self) -> None:
        """Request a pause of every run, as Ctrl-C does, and wait for them. A slow one continues without the service."""
        self._closing = True
        for run in self.active:
            if run.driven is not None and run not in self._ending:
                run.driven.interrupt()
        until = time.monotonic() + PATIENCE_S
        while self.active and time.monotonic() < until:
            await self.turn()
            await asyncio.sleep(0.05)


def _order(run: RunHandle) -> tuple[float, str]:
    return (0.0 if run.submission is None else run.submission.submitted_at), run.id
