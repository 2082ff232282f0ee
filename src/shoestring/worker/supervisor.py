"""The supervisor: the process that ends a segment on time and tells how it ended, whatever user code does.

It is a process of its own because user code may hang in a library that never lets another thread run, be killed for
its memory, or leave children behind. Its last act is to kill its own process group, so nothing outlives a segment.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

from shoestring.worker.command import died_of
from shoestring.worker.deadman import Limits, Verdict
from shoestring.worker.identity import birth
from shoestring.worker.log import trim
from shoestring.worker.outbox import Ended, GaveBack, Outbox, retrace
from shoestring.worker.player import play
from shoestring.worker.task import LOCK, LOG, OUTBOX, PID, TASK, Inbox, Task, read_json, write_json

_LOOK_EVERY_S = 0.1


def supervise(folder: Path) -> None:
    """Run the segment in this folder, unless somebody does or did: a segment runs once, however often it is started."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    if (folder / PID).exists():
        return
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # started by hand: the group killed at the end must be our own
    write_json(folder / PID, {"pid": os.getpid(), "birth": birth(os.getpid())})
    Supervisor(folder, read_json(folder / TASK, Task)).run()


class Supervisor:
    def __init__(self, folder: Path, task: Task) -> None:
        self._folder = folder
        self._task = task
        self._inbox = Inbox(folder)
        self._limits = Limits(task, time.time())
        self._outbox = Outbox(folder / OUTBOX)
        self._told_to_leave = False
        self._passed_on = False
        self._gave_back = False

    def run(self) -> NoReturn:
        verdict = self._limits.verdict(time.time(), self._inbox.read())
        if verdict.order == "kill":  # over before it began: started late, by a controller that is gone
            self._close(verdict, None)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        player = os.fork()
        if player == 0:
            self._play()
        wakeup, alarm = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(alarm, False)
        signal.signal(signal.SIGTERM, self._hear_notice)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        self._watch(player, wakeup)

    def _watch(self, player: int, wakeup: int) -> NoReturn:
        killed: Verdict | None = None
        while True:
            pid, status = os.waitpid(player, os.WNOHANG)
            if pid:
                self._close(killed, os.waitstatus_to_exitcode(status))
            now, control = time.time(), self._inbox.read()
            verdict = self._limits.verdict(now, control)
            if verdict.gives_back and not self._gave_back:
                self._gave_back = True
                self._outbox.write(GaveBack(wall=now, detail=verdict.detail))
            if verdict.order == "kill" and killed is None:
                killed = verdict
                os.kill(player, signal.SIGKILL)
            elif (verdict.order == "leave" or self._told_to_leave) and not self._passed_on:
                self._passed_on = True
                os.kill(player, signal.SIGTERM)
            trim(self._folder)
            select.select([wakeup], [], [], min(_LOOK_EVERY_S, self._limits.quiet_s(now, control)))
            try:
                os.read(wakeup, 4096)
            except BlockingIOError:
                pass

    def _play(self) -> NoReturn:
        code = 1
        try:
            play(self._task, self._folder, self._outbox)
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

    def _hear_notice(self, *_: object) -> None:
        self._told_to_leave = True

    def _close(self, killed: Verdict | None, exit_code: int | None) -> NoReturn:
        """Tell how it ended, if the player did not, and leave nothing behind."""
        step, ended = retrace(self._folder / OUTBOX)
        if ended is None:
            if self._task.resume_from is not None:
                step = max(step, self._task.resume_from.step)
            end = killed or Verdict("kill", "failed", _last_words(exit_code))
            Outbox(self._folder / OUTBOX).write(Ended(wall=time.time(), step=step, cause=end.cause, detail=end.detail))
        os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(0)


def _last_words(exit_code: int | None) -> str:
    if exit_code is None:
        return "did not start"
    if exit_code < 0:
        return f"user code was {died_of(-exit_code)}"
    return f"user code left without a word (exit code {exit_code}); see {LOG}"
