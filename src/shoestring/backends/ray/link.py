"""RayLink: the controller's end of the line to Ray. It never waits, and what happens to Ray does not happen to us."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from shoestring.backends.ray.messages import AnyNews, AnyOrder, Connected, End, NotConnected, Start, Trouble, View
from shoestring.errors import PermanentError

_AGAIN_AFTER_S = 2.0
_SILENCE_S = 60.0
"""A cluster not heard of for so long is gone, or as good as."""
NOTHING = View(heard=-1, nodes=[], actors=[])


class RayLink:
    """A driver process for one cluster, started again whenever it dies; what it has not heard is then said again."""

    def __init__(
        self,
        address: str,
        namespace: str,
        *,
        log: Path,
        node_ip: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`node_ip`: of the node to which the driver is to belong, where that cannot be left to Ray."""
        self.address = address
        self.view = NOTHING
        self.troubles: dict[str, str] = {}
        """Actor -> why it could not do what it was to do."""
        self.connected: Connected | None = None
        self._refused: NotConnected | None = None
        self.generation = 0
        """How many drivers there have been. What one has heard and not yet done dies with it."""
        self._arguments = (address, namespace, node_ip)
        self._environment = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONSAFEPATH": "1", **(environment or {})}
        self._log = log
        self._numbered = 0
        self._unheard: deque[AnyOrder] = deque()
        self._driver: subprocess.Popen[bytes] | None = None
        self._heard = b""
        self._decode = msgspec.json.Decoder(AnyNews).decode
        self._started_at = 0.0
        self._heard_at = time.monotonic()

    # -- orders --------------------------------------------------------------------------------------------------------
    def start(self, actor: str, *, node: str, folder: Path, cpus: float, gpus: float) -> int:
        """The number of the order: once it `has_heard` that, a view without the actor says that it has ended."""
        self.troubles.pop(actor, None)
        return self._order(
            lambda number: Start(number=number, actor=actor, node=node, folder=str(folder), cpus=cpus, gpus=gpus)
        )

    def end(self, actor: str) -> None:
        self._order(lambda number: End(number=number, actor=actor))

    def has_heard(self, number: int) -> bool:
        """Has some driver passed this order on to Ray? Those after it wait for their turn too."""
        return not self._unheard or number < self._unheard[0].number

    def _order(self, order: Callable[[int], AnyOrder]) -> int:
        self._numbered += 1
        self._unheard.append(order(self._numbered))
        self._pass_on(self._unheard[-1])
        return self._numbered

    def _pass_on(self, order: AnyOrder) -> None:
        if self._driver is None or self._driver.stdin is None:
            return
        try:
            self._driver.stdin.write(msgspec.json.encode(order) + b"\n")
            self._driver.stdin.flush()
        except BrokenPipeError:
            pass  # it died; the next look finds out, and the next driver is told again

    # -- news ----------------------------------------------------------------------------------------------------------
    def listen(self) -> None:
        """Take in what was told since the last look."""
        if self._driver is None:
            if time.monotonic() - self._started_at >= _AGAIN_AFTER_S:
                self._start_driver()
            return
        while chunk := self._read():
            *lines, self._heard = (self._heard + chunk).split(b"\n")
            for line in lines:
                self._take(self._decode(line))
        stuck = time.monotonic() - max(self._heard_at, self._started_at) >= _SILENCE_S
        if chunk is not None or stuck:
            self.close()

    @property
    def silent(self) -> bool:
        """Has nothing been heard of the cluster for too long?"""
        return time.monotonic() - self._heard_at >= _SILENCE_S

    def require(self) -> None:
        """PermanentError if there is no hope that anything asked of the cluster will be done."""
        if self._refused is not None or self.silent:
            raise refusal(self.address, self._refused)

    def _read(self) -> bytes | None:
        """Some bytes; none, of a dead driver; None if there is nothing new."""
        assert self._driver is not None
        assert self._driver.stdout is not None
        try:
            return os.read(self._driver.stdout.fileno(), 1 << 20)
        except BlockingIOError:
            return None

    def _take(self, news: AnyNews) -> None:
        match news:
            case View():
                self.view = news
                self._heard_at = time.monotonic()
                while self._unheard and self._unheard[0].number <= news.heard:
                    self._unheard.popleft()
            case Trouble(actor=actor, detail=detail):
                self.troubles[actor] = detail
            case Connected():
                self.connected, self._refused = news, None
            case NotConnected():
                self._refused = news

    def _start_driver(self) -> None:
        with self._log.open("ab") as log:
            self._driver = subprocess.Popen(
                [sys.executable, "-m", "shoestring.backends.ray.driver", *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self._environment},
                start_new_session=True,  # Ctrl-C is the controller's to handle
            )
        assert self._driver.stdout is not None
        os.set_blocking(self._driver.stdout.fileno(), False)
        self._started_at = time.monotonic()
        self.generation += 1
        for order in self._unheard:
            self._pass_on(order)

    def close(self) -> None:
        """End the driver; actors go on."""
        if self._driver is None:
            return
        self._driver.kill()
        self._driver.wait()
        for stream in (self._driver.stdin, self._driver.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass  # an order it did not live to read
        self._driver, self._heard, self.view = None, b"", NOTHING


def look_at(address: str, log: Path) -> View:
    """Who is there? Waits for the answer; PermanentError, in a sentence, if there is none."""
    link = RayLink(address, "shoestring", log=log)
    try:
        while link.view is NOTHING:
            link.listen()
            link.require()
            time.sleep(0.02)
        return link.view
    finally:
        link.close()


def refusal(address: str, refused: NotConnected | None) -> PermanentError:
    match refused:
        case NotConnected(why="versions", detail=detail):
            return PermanentError(
                f"Ray at {address} and here do not fit together: {_versions(detail)}",
                hint="use the same versions of Ray and Python here and on the cluster",
            )
        case NotConnected(why="other", detail=detail):
            return PermanentError(
                f"Ray at {address} does not take us: {' '.join(detail.split())[:300]}",
                hint="the controller must run on a node of the cluster, for instance its head",
            )
    return PermanentError(
        f"no Ray cluster answers at {address}{f' ({refused.detail})' if refused is not None else ''}",
        hint="give the address of its head, as in ray:10.0.0.1:6379, or leave it out to start nodes on this machine",
    )


def _versions(detail: str) -> str:
    """Ray's own words, on one line: which versions the cluster has, and which we."""
    return " ".join(detail.replace("Version mismatch:", "").split())
