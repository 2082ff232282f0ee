"""A gang: the processes with user code that one supervisor starts, and what their ends mean. Most have one rank.

Rank 0 reports for the trial. When it ends, the segment ends, and the other ranks are killed: they may block in a
collective operation that will never complete. A failure of any rank fails the gang. The failure of one rank soon makes
its peers fail, so the supervisor collects exit reasons for a moment before it reports them.
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

from shoestring.worker.cgroup import enter_cgroup
from shoestring.worker.containment import adopt_orphans, ask_to_leave, end_children, end_launched, launched
from shoestring.worker.outbox import Ended, Outbox
from shoestring.worker.player import rank_folder, run_rank
from shoestring.worker.ranks import free_port
from shoestring.worker.run_function import FunctionOutcome, died_of
from shoestring.worker.task import LOG, Task, read_json, write_json

_COLLECT_S = 0.5
_OUTCOME_FILE = "ended.json"


class Gang:
    def __init__(self, task: Task, folder: Path, outbox: Outbox, lock: int, cgroup: Path | None) -> None:
        self._task = msgspec.structs.replace(task, master_port=task.master_port or free_port())
        self._folder = folder
        self._outbox = outbox
        self._lock = lock
        """The segment's, which user code holds as long as any of it runs."""
        self._cgroup = cgroup
        """For all user code, if it could be made."""
        self._alive: dict[int, int] = {}
        """Rank -> process."""
        self._failed: dict[int, FunctionOutcome] = {}
        """In the order in which they were detected."""
        self._failed_at = 0.0
        """When the first of them was."""
        self._reporter_ended = False
        """The rank that reports has ended, and has written its end to the outbox if it could."""
        self._attends = not task.workers
        """Of a program that rank 0 has launched once for all machines, this one has nothing to start: it waits until
        the segment is over."""

    def start(self) -> None:
        """Called with SIGTERM blocked; each rank unblocks it once its handler is set."""
        for rank in range(self._task.first_rank, self._task.first_rank + self._task.workers):
            pid = os.fork()
            if pid == 0:
                self._run_rank(rank)
            self._alive[rank] = pid

    def ask_to_leave(self) -> None:
        """Signal rank 0 only; the others must answer it until it has saved."""
        if 0 in self._alive:
            os.kill(self._alive[0], signal.SIGTERM)
        if self._attends:
            ask_to_leave(launched(self._folder, self._task))

    def kill(self) -> None:
        self._attends = False
        for pid in self._alive.values():
            os.kill(pid, signal.SIGKILL)

    def is_over(self, *, leaving: bool) -> bool:
        """Is there nothing left to wait for? Rank 0 may close its connections while it is `leaving`: failures of the
        others then wait for its end."""
        self._reap()
        if self._attends:
            return False
        if self._reporter_ended or not self._alive:
            return True
        if not self._failed or (leaving and 0 in self._alive):
            return False
        return time.monotonic() - self._failed_at >= _COLLECT_S

    def outcome(self) -> FunctionOutcome:
        """The outcome of a gang whose reporting rank wrote none."""
        if not self._failed:
            return (
                FunctionOutcome("failed", 0, _exit_reason(0))
                if self._reporter_ended
                else FunctionOutcome("completed", 0)
            )
        causes = {outcome.cause for outcome in self._failed.values()}
        step = self._failed[0].step if 0 in self._failed else 0  # steps after its last report are lost
        return FunctionOutcome("failed" if "failed" in causes else "lost", step, self._exit_reasons())

    def _exit_reasons(self) -> str:
        ranks: dict[str, list[str]] = {}
        for rank, outcome in self._failed.items():
            ranks.setdefault(outcome.detail, []).append(str(rank))
        if self._task.world_size == 1:
            return next(iter(ranks))
        return "; ".join(f"rank {' and '.join(numbers)}: {detail}" for detail, numbers in ranks.items())

    def _reap(self) -> None:
        for rank, pid in list(self._alive.items()):
            dead, status = os.waitpid(pid, os.WNOHANG)
            if not dead:
                continue
            del self._alive[rank]
            code = os.waitstatus_to_exitcode(status)
            written = self._outcome_file(rank)
            outcome = read_json(written, FunctionOutcome) if written.exists() else None
            if outcome is None and code:
                outcome = FunctionOutcome("failed", 0, _exit_reason(code))
            if outcome is not None and outcome.cause in ("failed", "lost"):
                self._failed_at = self._failed_at if self._failed else time.monotonic()
                self._failed[rank] = outcome
            elif self._reports_end(rank):
                self._reporter_ended = True

    def _run_rank(self, rank: int) -> NoReturn:
        code = 1
        try:
            if self._cgroup is not None:
                enter_cgroup(self._cgroup)
            adopt_orphans()
            os.set_inheritable(self._lock, True)
            outcome = run_rank(self._task, self._folder, self._outbox, rank, self._lock)
            end_children()  # before its end is known, and the trial may be started elsewhere
            end_launched(self._folder, self._task)
            # Another rank may have caused rank 0's failure: they are reported together.
            if self._reports_end(rank) and (outcome.cause != "failed" or self._task.workers == 1):
                wall = self._outbox.now()
                self._outbox.write(Ended(wall=wall, step=outcome.step, cause=outcome.cause, detail=outcome.detail))
            else:
                write_json(self._outcome_file(rank), outcome)
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

    def _reports_end(self, rank: int) -> bool:
        """Does this rank write the end of its gang to the outbox?"""
        return rank == 0 or self._task.workers == 1

    def _outcome_file(self, rank: int) -> Path:
        return rank_folder(self._task, self._folder, rank) / _OUTCOME_FILE


def _exit_reason(exit_code: int) -> str:
    if exit_code < 0:
        return f"user code was {died_of(-exit_code)}"
    return f"user code exited without an error message (exit code {exit_code}); see {LOG}"
