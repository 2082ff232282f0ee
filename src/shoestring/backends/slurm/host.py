"""The host of a lease on Slurm: the batch script of the job that holds the node.

`python -m shoestring.backends.slurm.host FOLDER`, with the folder of the lease. It signs in, which grants the lease;
runs every segment ordered of it; passes Slurm's warnings on; and ends when the lease does, with or without a
controller. All messages are files in the run's folder, which all nodes see: no node needs a connection to the
controller.

Workers are processes of the script and not job steps of their own (`srun`): a step needs slurmctld to start, and after
a crash of slurmctld an idle node may count as busy for minutes. Nothing waits for Slurm while a lease lasts.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec

from shoestring.backends.local.process import WorkerProcess
from shoestring.kernel.types import EndCause
from shoestring.worker.task import read_json, write_json

HOSTING, SIGNED, NOTICE, LEFT, ALIVE, ORDERS = (
    "hosting.json",
    "host.json",
    "notice.json",
    "left.json",
    "alive",
    "orders",
)
OVER = "over.json"
"""In the folder of a segment's part, once its worker has ended."""
_LOOK_EVERY_S = 0.2
_BEAT_EVERY_S = 1.0


class Hosting(msgspec.Struct, frozen=True, kw_only=True):
    """Until when to host; replaced as a whole when the lease is extended. Wall times."""

    end_at: float
    heartbeat: str
    """A file the controller touches while it runs."""
    silence_s: float
    """Seconds without a heartbeat after which the controller counts as dead and the node is released."""


class HostSignature(msgspec.Struct, frozen=True, kw_only=True):
    """Which job hosts the lease, where, and since when."""

    job: str
    node: str
    address: str
    wall: float


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Slurm is about to end the job."""

    wall: float


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The host has stopped by itself, and why."""

    wall: float
    cause: EndCause
    why: str


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of a segment to run, or of the part of it that runs on this node."""

    folder: str


class Over(msgspec.Struct, frozen=True, kw_only=True):
    """The exit reason of a worker that did not report an end itself."""

    words: str


def sign_in(folder: Path) -> bool:
    """Does this job host the lease? The link succeeds once, for the job that comes first."""
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    job = os.environ.get("SLURM_JOB_ID", "")
    mine = folder / f".{SIGNED}.{job}.{os.getpid()}"
    write_json(mine, HostSignature(job=job, node=node, address=socket.gethostname(), wall=time.time()))
    try:
        os.link(mine, folder / SIGNED)
    except FileExistsError:
        return False
    finally:
        mine.unlink()
    return True


class LeaseHost:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._orders = folder / ORDERS
        self._workers: dict[Path, WorkerProcess] = {}
        self._known: set[str] = set()
        self._warned = False
        self._began = time.time()
        self._beaten_at = -_BEAT_EVERY_S

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._on_sigterm)
        while (left := self._over()) is None:
            self._beat()
            if self._warned:
                self._pass_on_warning()
            else:
                self._take_orders()
            self._reap()
            time.sleep(_LOOK_EVERY_S)
        self._end_all()
        write_json(self._folder / LEFT, left)

    def _on_sigterm(self, *_: object) -> None:
        self._warned = True

    def _pass_on_warning(self) -> None:
        """Repeatedly: a worker that is still starting cannot handle the signal yet."""
        if not (self._folder / NOTICE).exists():
            write_json(self._folder / NOTICE, Notice(wall=time.time()))
        for worker in self._workers.values():
            worker.ask_to_leave()

    def _over(self) -> Left | None:
        now = time.time()
        try:
            hosting = read_json(self._folder / HOSTING, Hosting)
        except FileNotFoundError:
            return Left(wall=now, cause="released", why="its lease was released")
        if now >= hosting.end_at:
            return Left(wall=now, cause="expired", why="its prepaid time was over")
        if self._warned and not self._workers:
            return Left(wall=now, cause="revoked", why="Slurm ended the job")
        silence = now - max(self._began, _touched_at(hosting.heartbeat))
        if silence >= hosting.silence_s:
            return Left(wall=now, cause="released", why=f"no controller for {silence:.0f} s")
        return None

    def _take_orders(self) -> None:
        for name in sorted(os.listdir(self._orders)):
            if name in self._known or name.startswith("."):
                continue
            self._known.add(name)
            folder = Path(read_json(self._orders / name, Order).folder)
            self._workers[folder] = WorkerProcess(folder)
            self._workers[folder].start()

    def _reap(self) -> None:
        for folder, worker in list(self._workers.items()):
            if not worker.alive():
                del self._workers[folder]
                worker.kill()  # user code may have outlived its supervisor
                write_json(folder / OVER, Over(words=worker.exit_reason()))

    def _end_all(self) -> None:
        """No process outlives the lease."""
        for worker in self._workers.values():
            worker.kill()

    def _beat(self) -> None:
        if time.monotonic() - self._beaten_at >= _BEAT_EVERY_S:
            self._beaten_at = time.monotonic()
            with open(self._folder / ALIVE, "ab"):
                os.utime(self._folder / ALIVE)


def _touched_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def main() -> None:
    folder = Path(sys.argv[1])
    if sign_in(folder):
        LeaseHost(folder).run()


if __name__ == "__main__":
    main()
