"""The host of a lease on Slurm: the batch script of the job that holds the node.

`python -m shoestring.backends.slurm.host FOLDER`, with the folder of the lease. It signs in, which is what grants the
lease; runs every segment it is given; passes Slurm's warnings on; and ends when the lease does, with or without anybody
listening. All words go through files in the run's folder, which all nodes see: no node needs a way to the controller.

Workers are processes of the script and not steps of their own (`srun`): a step needs Slurm's controller to begin, and
after a crash of that Slurm may call a node busy for minutes that is idle. Nothing waits for Slurm while a lease lasts.
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
"""In the folder of a segment's part, once its worker is gone."""
_LOOK_EVERY_S = 0.2
_BEAT_EVERY_S = 1.0


class Hosting(msgspec.Struct, frozen=True, kw_only=True):
    """Until when to host; replaced as a whole when the lease is paid for longer. Wall times."""

    end_at: float
    heartbeat: str
    """A file the controller touches while it lives."""
    silence_s: float
    """Silence of the controller after which nobody can want this node any more."""


class HostSignature(msgspec.Struct, frozen=True, kw_only=True):
    """Who hosts, and since when."""

    job: str
    node: str
    address: str
    wall: float


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Slurm is about to end the job."""

    wall: float


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The host has left by itself, and why."""

    wall: float
    cause: EndCause
    why: str


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of a segment to run, or of the part of it that is to run here."""

    folder: str


class Over(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said of a worker that has said nothing itself."""

    words: str


def sign_in(folder: Path) -> bool:
    """Is the lease ours to host? The link succeeds once, whichever job comes first."""
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
        signal.signal(signal.SIGTERM, self._hear_notice)
        while (left := self._over()) is None:
            self._beat()
            if self._warned:
                self._pass_on_warning()
            else:
                self._take_orders()
            self._bury()
            time.sleep(_LOOK_EVERY_S)
        self._end_all()
        write_json(self._folder / LEFT, left)

    def _hear_notice(self, *_: object) -> None:
        self._warned = True

    def _pass_on_warning(self) -> None:
        """Again and again: a worker that is only just coming up cannot hear yet."""
        if not (self._folder / NOTICE).exists():
            write_json(self._folder / NOTICE, Notice(wall=time.time()))
        for worker in self._workers.values():
            worker.ask_to_leave()

    def _over(self) -> Left | None:
        now = time.time()
        try:
            hosting = read_json(self._folder / HOSTING, Hosting)
        except FileNotFoundError:
            return Left(wall=now, cause="released", why="nobody wants this node any more")
        if now >= hosting.end_at:
            return Left(wall=now, cause="expired", why="its prepaid time was over")
        if self._warned and not self._workers:
            return Left(wall=now, cause="revoked", why="Slurm took the node back")
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

    def _bury(self) -> None:
        for folder, worker in list(self._workers.items()):
            if not worker.alive():
                del self._workers[folder]
                worker.kill()  # user code may have outlived its supervisor
                write_json(folder / OVER, Over(words=worker.exit_reason()))

    def _end_all(self) -> None:
        """Nothing outlives the lease."""
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
