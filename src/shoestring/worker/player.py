"""The player: the process in which user code runs. It hears of notices and wishes between steps, and saves when due."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from shoestring.errors import CheckpointMissing
from shoestring.kernel.types import Metrics
from shoestring.storage.checkpoints import CheckpointStore, DirectoryStore
from shoestring.trial import Trial
from shoestring.worker.arguments import Desk
from shoestring.worker.checkpoint import Keeper
from shoestring.worker.command import CommandRun
from shoestring.worker.loading import describe, load_function
from shoestring.worker.outbox import Ended, Outbox, Saved, Started, Unsaved
from shoestring.worker.play import Ending, play_function
from shoestring.worker.task import LOG, Inbox, Task


class WorkerHost:
    """What a trial in a worker process talks to: the outbox, the store, and the control file."""

    def __init__(self, task: Task, folder: Path, outbox: Outbox, store: CheckpointStore) -> None:
        self._task = task
        self._folder = folder
        self._outbox = outbox
        self._inbox = Inbox(folder)
        self._keeper = Keeper(store, task.job, task.segment)
        self._supervisor = os.getppid()
        self._told_to_leave = False
        self._saved_step = 0 if task.resume_from is None else task.resume_from.step
        self._saved_at = time.monotonic()
        self._saves_made = 0
        signal.signal(signal.SIGTERM, self._hear_notice)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])  # blocked since the fork: none was missed

    def _hear_notice(self, *_: object) -> None:
        self._told_to_leave = True

    def leaving(self) -> bool:
        if os.getppid() != self._supervisor:
            os.killpg(os.getpgrp(), signal.SIGKILL)  # nobody is left to end us on time
        return self._told_to_leave or time.time() >= self._inbox.read().leave_at()

    def save_due(self, step: int) -> bool:
        if step == self._saved_step:
            return False
        control = self._inbox.read()
        return (
            step >= self._task.until_step
            or control.saves_asked > self._saves_made
            or (control.save_every_s is not None and time.monotonic() - self._saved_at >= control.save_every_s)
            or self.leaving()
        )

    def reported(self, step: int, metrics: Metrics) -> None:
        self._outbox.report(step, metrics)

    def folder(self) -> Path:
        path = self._folder / "saving"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def saved(self, step: int, folder: Path, began: float) -> None:
        asked = self._inbox.read().saves_asked
        ref = self._keeper.put(step, folder)
        now = time.monotonic()
        self._outbox.write(Saved(wall=time.time(), step=step, ref=ref, took_s=now - began))
        self._keeper.thin_out()
        self._saved_step, self._saved_at, self._saves_made = step, now, asked


def play(task: Task, folder: Path, outbox: Outbox) -> None:
    """Run the task's user code to its end, and tell of it. Called with SIGTERM blocked."""
    store = DirectoryStore(Path(task.store))
    host = WorkerHost(task, folder, outbox, store)
    try:
        checkpoint = _restore(task, folder, store)
    except CheckpointMissing as error:
        if task.resume_from is not None:
            outbox.write(Unsaved(wall=time.time(), ref=task.resume_from, detail=str(error)))
        ending = Ending("lost", 0, f"its checkpoint cannot be used: {error}")
    else:
        outbox.write(Started(wall=time.time()))
        runner = _play_command if task.function is None else _play_function
        ending = runner(task, folder, host, checkpoint)
    outbox.write(Ended(wall=time.time(), step=ending.step, cause=ending.cause, detail=ending.detail))


def _restore(task: Task, folder: Path, store: CheckpointStore) -> Path | None:
    if task.resume_from is None:
        return None
    path = folder / "checkpoint"
    store.get(task.resume_from, path)
    return path


def _play_function(task: Task, _folder: Path, host: WorkerHost, checkpoint: Path | None) -> Ending:
    os.chdir(task.folder)
    sys.argv[:] = task.argv or [(task.function or "").rpartition(":")[0]]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # a killed trial should leave its last words in the log
    trial = Trial(
        job=task.job,
        config=task.config,
        until_step=task.until_step,
        host=host,
        step=0 if task.resume_from is None else task.resume_from.step,
        checkpoint=checkpoint,
    )
    try:
        function = load_function(task.function or "", Path(task.folder))
    except Exception as error:
        return Ending("failed", trial.step, describe(error))
    return play_function(function, trial, task.metric, log=sys.stderr.write)


def _play_command(task: Task, folder: Path, host: WorkerHost, checkpoint: Path | None) -> Ending:
    desk = Desk(folder)
    with (folder / LOG).open("ab") as log:
        run = CommandRun(
            host=host,
            desk=desk,
            config=task.config,
            until_step=task.until_step,
            first_step=0 if task.resume_from is None else task.resume_from.step,
            metric=task.metric,
            log=log,
            own_group=False,
        )
        environment = desk.environment(task.config, checkpoint, task.until_step, task.slots)
        return run.run(task.command or (), Path(task.folder), environment)
