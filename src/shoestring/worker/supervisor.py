"""The supervisor: the process that ends a segment on time and reports how it ended, whatever user code does.

It is a process of its own because user code may hang in a library that never releases the GIL, be killed for its memory
use, or leave child processes behind. At the end it kills all its descendants, so no process outlives a segment.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import sys
from pathlib import Path
from typing import NoReturn

from shoestring.errors import DamagedFile
from shoestring.worker.cgroup import end_cgroup, make_cgroup
from shoestring.worker.containment import SEGMENT, adopt_orphans, end_children, end_launched
from shoestring.worker.deadman import SegmentLimits, Verdict
from shoestring.worker.gang import Gang
from shoestring.worker.outbox import Ended, GaveBack, Outbox, retrace
from shoestring.worker.process_identity import birth
from shoestring.worker.run_function import FunctionOutcome
from shoestring.worker.steady_clock import SteadyClock
from shoestring.worker.task import LOCK, LOG, OUTBOX, PID, TASK, Inbox, Task, read_json, write_json

MOST_BYTES = 2 << 20


def trim(folder: Path) -> None:
    """Move a log that has grown too long to `log.1.txt`. Writers append, so they continue at the new start."""
    path = folder / LOG
    try:
        if path.stat().st_size > MOST_BYTES:
            shutil.copyfile(path, folder / "log.1.txt")
            os.truncate(path, 0)
    except OSError:
        pass  # no reason to fail a trial


_LOOK_EVERY_S = 0.1


def supervise(folder: Path) -> None:
    """Run the segment in this folder, unless another process has: a segment runs once, even if started twice."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    if (folder / PID).exists():
        return
    task = _read_task(folder)
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # started by hand: the group killed at the end must be our own
    os.environ[SEGMENT] = str(folder)
    adopt_orphans()
    cgroup = make_cgroup()
    signature = {"pid": os.getpid(), "birth": birth(os.getpid()), "cgroup": None if cgroup is None else str(cgroup)}
    write_json(folder / PID, signature)
    Supervisor(folder, task, lock, cgroup).run()


def _read_task(folder: Path) -> Task:
    try:
        return read_json(folder / TASK, Task)
    except (OSError, DamagedFile) as error:
        sys.exit(f"the segment cannot be run: {error}")


class Supervisor:
    def __init__(self, folder: Path, task: Task, lock: int, cgroup: Path | None) -> None:
        self._folder = folder
        self._task = task
        self._inbox = Inbox(folder)
        self._clock = SteadyClock.of_run(Path(task.heartbeat).parent)
        self._limits = SegmentLimits(task, self._clock.time())
        self._outbox = Outbox(folder / OUTBOX, self._clock)
        self._cgroup = cgroup
        self._gang = Gang(task, folder, self._outbox, lock, cgroup)
        self._must_leave = False
        self._leave_sent = False
        self._gave_back = False

    def run(self) -> NoReturn:
        verdict = self._limits.verdict(self._clock.time(), self._inbox.read())
        if verdict.order == "kill":  # over before it started: ordered too late, by a controller that died
            self._close(verdict)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        self._gang.start()
        wakeup, alarm = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(alarm, False)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        self._watch(wakeup)

    def _watch(self, wakeup: int) -> NoReturn:
        killed: Verdict | None = None
        while True:
            if self._gang.is_over(leaving=self._leave_sent):
                self._close(killed)
            now, control = self._clock.time(), self._inbox.read()
            verdict = self._limits.verdict(now, control)
            if verdict.gives_back and not self._gave_back:
                self._gave_back = True
                self._outbox.write(GaveBack(wall=now, detail=verdict.detail))
            if verdict.order == "kill" and killed is None:
                killed = verdict
                self._gang.kill()
            elif (verdict.order == "leave" or self._must_leave) and not self._leave_sent:
                self._leave_sent = True
                self._gang.ask_to_leave()
            trim(self._folder)
            select.select([wakeup], [], [], min(_LOOK_EVERY_S, self._limits.quiet_s(now, control)))
            try:
                os.read(wakeup, 4096)
            except BlockingIOError:
                pass

    def _on_sigterm(self, *_: object) -> None:
        self._must_leave = True

    def _close(self, killed: Verdict | None) -> NoReturn:
        """Kill all that is left, then report how it ended, if user code did not: what follows must not meet it."""
        wall = self._clock.time()
        nothing_left = end_children() if sys.platform == "linux" else False
        end_launched(self._folder, self._task)
        if self._cgroup is not None:
            end_cgroup(self._cgroup)
        step, ended = retrace(self._folder / OUTBOX)
        if ended is None:
            end = self._gang.outcome() if killed is None else FunctionOutcome(killed.cause, 0, killed.detail)
            resumed = 0 if self._task.resume_from is None else self._task.resume_from.step
            step = max(step, resumed, end.step)
            outbox = Outbox(self._folder / OUTBOX, self._clock)
            outbox.write(Ended(wall=wall, step=step, cause=end.cause, detail=end.detail))
        if not nothing_left:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(0)
