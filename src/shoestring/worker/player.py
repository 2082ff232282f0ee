"""The player: a process that runs user code, as one rank of a gang or as the only worker of its trial."""

from __future__ import annotations

import fcntl
import io
import os
import sys
from pathlib import Path

from shoestring.errors import CheckpointMissing
from shoestring.storage.checkpoints.directory import CheckpointStore, DirectoryStore
from shoestring.trial import Trial, TrialHost
from shoestring.worker.containment import launched
from shoestring.worker.hosts import FollowerHost, WorkerHost
from shoestring.worker.loading import describe, load_function
from shoestring.worker.outbox import Outbox, Started, Unsaved
from shoestring.worker.ranks import launch_variables, rank_variables, unreachable
from shoestring.worker.run_function import FunctionOutcome, run_function
from shoestring.worker.task import LOG, Task


def run_rank(task: Task, folder: Path, outbox: Outbox, rank: int, lock: int) -> FunctionOutcome:
    """Run the task's user code as this rank until it ends. Called with SIGTERM blocked."""
    os.environ.update(rank_variables(task, rank))
    store = DirectoryStore(Path(task.store))
    own = rank_folder(task, folder, rank)
    own.mkdir(exist_ok=True)
    host: TrialHost = WorkerHost(task, folder, outbox, store) if rank == 0 else FollowerHost(own)
    try:
        checkpoint = _restore(task, folder, store)
    except CheckpointMissing as error:
        if task.resume_from is not None:
            outbox.write(Unsaved(wall=outbox.now(), ref=task.resume_from, detail=str(error)))
        return FunctionOutcome("lost", 0, f"its checkpoint cannot be used: {error}")
    if rank == task.first_rank:
        outbox.write(Started(wall=outbox.now()))
    if lacking := unreachable(task):
        return FunctionOutcome("failed", 0 if task.resume_from is None else task.resume_from.step, lacking)
    if task.function is None:
        return _run_command(task, folder, host, checkpoint, rank, lock)
    return _run_function(task, host, checkpoint, rank)


def rank_folder(task: Task, folder: Path, rank: int) -> Path:
    """The folder for the files of one rank: the first has the segment's folder, as a lone worker has."""
    return folder if rank == task.first_rank else folder / f"rank{rank}"


def _restore(task: Task, folder: Path, store: CheckpointStore) -> Path | None:
    """One copy for all ranks here: the first one makes it, the others wait for it."""
    if task.resume_from is None:
        return None
    path = folder / "checkpoint"
    with (folder / "restoring").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            store.get(task.resume_from, path)
    return path


def _run_function(task: Task, host: TrialHost, checkpoint: Path | None, rank: int) -> FunctionOutcome:
    os.chdir(task.folder)
    sys.argv[:] = task.argv or [(task.function or "").rpartition(":")[0]]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # a killed trial should leave its last lines in the log
    trial = Trial(
        job=task.job,
        config=task.config,
        until_step=task.last_step,
        host=host,
        step=0 if task.resume_from is None else task.resume_from.step,
        checkpoint=checkpoint,
        fraction=task.fraction,
        fractions=task.fractions,
        seed=task.seed,
        slots=task.slots,
        rank=rank,
        world_size=task.world_size,
    )
    try:
        function = load_function(task.function or "", Path(task.folder))
    except Exception as error:
        return FunctionOutcome("failed", trial.step, describe(error))
    metric = task.metric if rank == 0 else None
    return run_function(function, trial, metric, until_exit=task.until_exit, log=sys.stderr.write)


def _run_command(
    task: Task, folder: Path, host: TrialHost, checkpoint: Path | None, rank: int, lock: int
) -> FunctionOutcome:
    from shoestring.worker.arguments import ProgramFiles  # most trials are functions
    from shoestring.worker.command import CommandRun

    files = ProgramFiles(rank_folder(task, folder, rank))
    with (folder / LOG).open("ab") as log:
        run = CommandRun(
            host=host,
            files=files,
            config=task.config,
            until_step=None if task.until_exit else task.until_step,
            first_step=0 if task.resume_from is None else task.resume_from.step,
            metric=task.metric if rank == 0 else None,
            fraction=task.fraction,
            fractions=task.fractions,
            log=log,
            own_group=False,
            lock=lock,
            launched=(lambda: launched(folder, task)) if task.hosts else None,
        )
        environment = files.environment(
            task.config,
            checkpoint=checkpoint,
            until_step=task.last_step,
            slots=task.slots,
            fraction=task.fraction,
            fractions=task.fractions,
        )
        environment |= {**launch_variables(task.hosts, folder), **task.environment}
        return run.run(task.command or (), Path(task.folder), environment)
