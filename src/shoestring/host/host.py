"""LeaseHost: signs in, which grants the lease; runs every segment ordered of it; passes warnings on; and ends when the
lease does, with or without a controller.

All messages are files in the folder of the lease (`messages`), which something else carries: a shared file system, or a
post. Workers are processes of the host, so nothing waits for the provider while a lease lasts.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

from shoestring.host.messages import (
    ALIVE,
    HOSTING,
    LEFT,
    NOTICE,
    ORDERS,
    OVER,
    SIGNED,
    Hosting,
    HostNotice,
    HostSignature,
    Left,
    Order,
    Over,
)
from shoestring.host.process import WorkerProcess
from shoestring.worker.heartbeat import Heartbeat
from shoestring.worker.steady_clock import SteadyClock
from shoestring.worker.task import read_json, write_json

_LOOK_EVERY_S = 0.2
_BEAT_EVERY_S = 1.0


def sign_in(folder: Path, *, machine: str, node: str) -> bool:
    """Does this machine host the lease? The link succeeds once, for the one that comes first."""
    mine = folder / f".{SIGNED}.{machine}.{os.getpid()}"
    wall = _clock(folder).time()
    write_json(mine, HostSignature(job=machine, node=node, address=socket.gethostname(), wall=wall))
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
        self._clock = _clock(folder)
        self._heartbeat: Heartbeat | None = None
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
            write_json(self._folder / NOTICE, HostNotice(wall=self._clock.time()))
        for worker in self._workers.values():
            worker.ask_to_leave()

    def _over(self) -> Left | None:
        now = self._clock.time()
        try:
            hosting = read_json(self._folder / HOSTING, Hosting)
        except FileNotFoundError:
            return Left(wall=now, cause="released", why="its lease was released")
        if now >= hosting.end_at:
            return Left(wall=now, cause="expired", why="its prepaid time was over")
        if self._warned and not self._workers:
            return Left(wall=now, cause="revoked", why="its machine was preempted")
        self._heartbeat = self._heartbeat or Heartbeat(hosting.heartbeat)
        silence = self._heartbeat.silence_s()
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


def _clock(folder: Path) -> SteadyClock:
    """That of the run if this is the controller's computer, else a steady one from the wall time of now."""
    return SteadyClock.of_run(folder.parent.parent)
