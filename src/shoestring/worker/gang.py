"""A gang: the processes with user code that one supervisor starts, and what their ends mean. Most have one member.

Rank 0 speaks for the trial. When it ends, the segment ends, and whoever is left is killed: the others may sit in a
collective operation that nobody answers any more. A failure of any rank is a failure of all. The failure of one soon
makes others fail that were talking to it, so the last words of all are gathered for a moment before any are passed on.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

import msgspec

from shoestring.worker.command import died_of
from shoestring.worker.outbox import Ended, Outbox
from shoestring.worker.player import own_folder, play
from shoestring.worker.ranks import free_port
from shoestring.worker.run_function import FunctionOutcome
from shoestring.worker.task import LOG, Task, read_json, write_json

_GATHERING_S = 0.5
_PARTING = "ended.json"


class Gang:
    def __init__(self, task: Task, folder: Path, outbox: Outbox) -> None:
        self._task = msgspec.structs.replace(task, master_port=task.master_port or free_port())
        self._folder = folder
        self._outbox = outbox
        self._alive: dict[int, int] = {}
        """Rank -> process."""
        self._failed: dict[int, FunctionOutcome] = {}
        """In the order in which they were noticed."""
        self._failed_at = 0.0
        """When the first of them was."""
        self._spoken = False
        """Its speaker has ended, and told of it in the outbox if it had anything to tell."""

    def start(self) -> None:
        """Called with SIGTERM blocked; each unblocks it when it can hear."""
        for rank in range(self._task.first_rank, self._task.first_rank + self._task.workers):
            pid = os.fork()
            if pid == 0:
                self._play(rank)
            self._alive[rank] = pid

    def ask_to_leave(self) -> None:
        """Rank 0 decides; the others must answer it until it has saved."""
        if 0 in self._alive:
            os.kill(self._alive[0], signal.SIGTERM)

    def kill(self) -> None:
        for pid in self._alive.values():
            os.kill(pid, signal.SIGKILL)

    def is_over(self, *, leaving: bool) -> bool:
        """Is there nothing left to wait for? Rank 0 on its way out may close its door on the others: while it is
        `leaving`, their failures wait for its word."""
        self._bury()
        if self._spoken or not self._alive:
            return True
        if not self._failed or (leaving and 0 in self._alive):
            return False
        return time.monotonic() - self._failed_at >= _GATHERING_S

    def ending(self) -> FunctionOutcome:
        """What to say of a gang whose speaker said nothing."""
        if not self._failed:
            return FunctionOutcome("failed", 0, _last_words(0)) if self._spoken else FunctionOutcome("completed", 0)
        causes = {ending.cause for ending in self._failed.values()}
        step = self._failed[0].step if 0 in self._failed else 0  # what others did after its last word is lost
        return FunctionOutcome("failed" if "failed" in causes else "lost", step, self._complaints())

    def _complaints(self) -> str:
        ranks: dict[str, list[str]] = {}
        for rank, ending in self._failed.items():
            ranks.setdefault(ending.detail, []).append(str(rank))
        if self._task.world_size == 1:
            return next(iter(ranks))
        return "; ".join(f"rank {' and '.join(numbers)}: {detail}" for detail, numbers in ranks.items())

    def _bury(self) -> None:
        for rank, pid in list(self._alive.items()):
            dead, status = os.waitpid(pid, os.WNOHANG)
            if not dead:
                continue
            del self._alive[rank]
            code = os.waitstatus_to_exitcode(status)
            parting = self._parting(rank)
            ending = read_json(parting, FunctionOutcome) if parting.exists() else None
            if ending is None and code:
                ending = FunctionOutcome("failed", 0, _last_words(code))
            if ending is not None and ending.cause in ("failed", "lost"):
                self._failed_at = self._failed_at if self._failed else time.monotonic()
                self._failed[rank] = ending
            elif self._speaks(rank):
                self._spoken = True

    def _play(self, rank: int) -> NoReturn:
        code = 1
        try:
            ending = play(self._task, self._folder, self._outbox, rank)
            # Rank 0's failure may be another's doing: it is said with the others'.
            if self._speaks(rank) and (ending.cause != "failed" or self._task.workers == 1):
                wall = time.time()
                self._outbox.write(Ended(wall=wall, step=ending.step, cause=ending.cause, detail=ending.detail))
            else:
                write_json(self._parting(rank), ending)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (OSError, ValueError):
                    pass
            os._exit(code)

    def _speaks(self, rank: int) -> bool:
        """Does this rank tell the end of its gang by itself?"""
        return rank == 0 or self._task.workers == 1

    def _parting(self, rank: int) -> Path:
        return own_folder(self._task, self._folder, rank) / _PARTING


def _last_words(exit_code: int) -> str:
    if exit_code < 0:
        return f"user code was {died_of(-exit_code)}"
    return f"user code left without a word (exit code {exit_code}); see {LOG}"
