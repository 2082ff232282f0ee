"""The queue: so many runs at once, the others in the order in which they came.

It is derived, never saved: who waits is who was submitted and has not come to an end, in the order of submission. So a
service that is killed loses nothing, and the next one takes over runs whose controllers are still going.
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
"""Of a run whose controller is killed time and again: what kills it is likely to do so once more."""
PATIENCE_S = 60.0
"""For runs to save and give their machines back when the service ends."""


class Queue:
    def __init__(self, at_once: int, look: Callable[[RunHandle], Awaitable[None]]) -> None:
        """`look` reads on in a run's journal."""
        self.at_once = at_once
        self.waiting: list[RunHandle] = []
        self.going: list[RunHandle] = []
        self._look = look
        self._ending: set[RunHandle] = set()
        """Of those going: runs that only wind down. They keep nobody waiting."""
        self._closing = False
        self._woken = asyncio.Event()

    # -- what is asked -------------------------------------------------------------------------------------------------
    def add(self, run: RunHandle) -> None:
        """Go on with a run, now if there is room. One whose controller is going already is taken over."""
        if not self._adopt(run) and not run.waits:
            run.waits = True
            self.waiting.append(run)
            self.waiting.sort(key=_order)
        self._changed(run)

    def _adopt(self, run: RunHandle) -> bool:
        pid = holder(run.folder)
        if pid is not None:
            run.driven = Adopted(run.folder, pid)
            self.going.append(run)
        return pid is not None

    def remove(self, run: RunHandle) -> None:
        if run.waits:
            run.waits = False
            self.waiting.remove(run)
            self._changed(run)

    def bring_to_an_end(self, run: RunHandle) -> None:
        """Conclude a run: its machines are given back, its receipt is final. One that is driven was asked already."""
        self._ending.add(run)
        if not self._adopt(run):
            self._start(run, ending=True)

    def ahead_of(self, run: RunHandle) -> int | None:
        return self.waiting.index(run) if run.waits else None

    # -- going on ------------------------------------------------------------------------------------------------------
    async def work(self) -> None:
        """Start what may start, follow what goes, notice what has ended; until cancelled."""
        while True:
            try:
                await self.turn()
            except Exception as error:  # a bug met in one run must not keep all others waiting
                sys.stderr.write(f"shoestring: the queue stumbled: {type(error).__name__}: {error}\n")
                await asyncio.sleep(LOOK_EVERY_S)
            self._woken.clear()
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def turn(self) -> None:
        for run in list(self.going):
            alive = run.driven is not None and run.driven.alive()
            await self._look(run)  # after asking: what a controller wrote before it left is seen
            if not alive:
                self._left(run)
        while not self._closing and self.waiting and len(self.going) - len(self._ending) < self.at_once:
            run = self.waiting.pop(0)
            run.waits = False
            self._start(run, ending=False)
            for other in self.waiting:
                other.news()

    def _start(self, run: RunHandle, *, ending: bool) -> None:
        run.trouble = ""
        try:
            run.driven = Spawned(run.folder, ending=ending)
            self.going.append(run)
        except OSError as error:
            run.trouble = f"its controller cannot be started: {error}"
            self._ending.discard(run)
        self._changed(run)

    def _left(self, run: RunHandle) -> None:
        driven, run.driven = run.driven, None
        self.going.remove(run)
        self._ending.discard(run)
        crashed = driven is not None and driven.crashed()
        run.trouble = "" if run.snapshot.concluded or driven is None else driven.trouble()
        if self._closing or not run.snapshot.goes_on:
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
        run.news()
        self._woken.set()

    # -- the end of the service ----------------------------------------------------------------------------------------
    async def close(self) -> None:
        """Ask every run to pause, as Ctrl-C does, and wait for them. One that takes too long goes on by itself."""
        self._closing = True
        for run in self.going:
            if run.driven is not None and run not in self._ending:
                run.driven.interrupt()
        until = time.monotonic() + PATIENCE_S
        while self.going and time.monotonic() < until:
            await self.turn()
            await asyncio.sleep(0.05)


def _order(run: RunHandle) -> tuple[float, str]:
    return (0.0 if run.submission is None else run.submission.submitted_at), run.id
