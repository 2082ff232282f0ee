"""RayLink: the controller's connection to Ray. It never blocks, and a crash of Ray does not reach the controller."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from shoestring.backends.ray.messages import (
    AnyInput,
    AnyMessage,
    AnyOrder,
    Connected,
    End,
    NodeAnswered,
    NotConnected,
    Probe,
    Start,
    Trouble,
    View,
)
from shoestring.errors import PermanentError

_RESTART_AFTER_S = 2.0
_PROBE_EVERY_S = 6.0
"""Longer than a node may take to answer: so an answer is to the latest probe."""
_SILENCE_S = 60.0
"""A cluster without a view for this long counts as gone."""
NO_VIEW = View(heard=-1, nodes=[], actors=[])


class RayLink:
    """A driver process for one cluster, restarted whenever it dies; orders it has not confirmed are then sent again."""

    def __init__(
        self,
        address: str,
        namespace: str,
        *,
        log: Path,
        node_ip: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`node_ip`: of the node the driver belongs to, where Ray cannot choose it."""
        self.address = address
        self.view = NO_VIEW
        self.troubles: dict[str, str] = {}
        """Actor -> why its order failed."""
        self.connected: Connected | None = None
        self._refused: NotConnected | None = None
        self.generation = 0
        """How many drivers there have been. Orders that a driver received and did not carry out are lost with it."""
        self._arguments = (address, namespace, node_ip)
        self._environment = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONSAFEPATH": "1", **(environment or {})}
        self._log = log
        self._numbered = 0
        self._unconfirmed: deque[AnyOrder] = deque()
        self._driver: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._answered_at: dict[str, float] = {}
        self._probed_at: dict[str, float] = {}
        self._decode = msgspec.json.Decoder(AnyMessage).decode
        self._started_at = 0.0
        self._last_view_at = time.monotonic()

    # -- orders --------------------------------------------------------------------------------------------------------
    def start(self, actor: str, *, node: str, folder: Path, cpus: float, gpus: float) -> int:
        """The number of the order: once it `is_confirmed`, a view without the actor means that the actor has ended."""
        self.troubles.pop(actor, None)
        return self._order(
            lambda number: Start(number=number, actor=actor, node=node, folder=str(folder), cpus=cpus, gpus=gpus)
        )

    def end(self, actor: str) -> None:
        self._order(lambda number: End(number=number, actor=actor))

    def is_confirmed(self, number: int) -> bool:
        """Has a driver passed this order on to Ray? Orders are confirmed in their sequence."""
        return not self._unconfirmed or number < self._unconfirmed[0].number

    def _order(self, order: Callable[[int], AnyOrder]) -> int:
        self._numbered += 1
        self._unconfirmed.append(order(self._numbered))
        self._send(self._unconfirmed[-1])
        return self._numbered

    def node_answers(self, node: str, *, since: float) -> bool:
        """Has this node answered a probe later than that (monotonic time)? Until it has, it is probed."""
        if self._answered_at.get(node, -math.inf) >= since:
            return True
        now = time.monotonic()
        if now - self._probed_at.get(node, -math.inf) >= _PROBE_EVERY_S:
            self._probed_at[node] = now
            self._send(Probe(node=node))
        return False

    def _send(self, order: AnyInput) -> None:
        if self._driver is None or self._driver.stdin is None:
            return
        try:
            self._driver.stdin.write(msgspec.json.encode(order) + b"\n")
            self._driver.stdin.flush()
        except BrokenPipeError:
            pass  # it died; the next `listen` finds out, and the next driver gets the order again

    # -- messages ------------------------------------------------------------------------------------------------------
    def listen(self) -> None:
        """Handle the messages since the last call."""
        if self._driver is None:
            if time.monotonic() - self._started_at >= _RESTART_AFTER_S:
                self._start_driver()
            return
        while chunk := self._read():
            *lines, self._buffer = (self._buffer + chunk).split(b"\n")
            for line in lines:
                self._handle(self._decode(line))
        stuck = time.monotonic() - max(self._last_view_at, self._started_at) >= _SILENCE_S
        if chunk is not None or stuck:
            self.close()

    @property
    def silent(self) -> bool:
        """Has there been no view of the cluster for too long?"""
        return time.monotonic() - self._last_view_at >= _SILENCE_S

    def require(self) -> None:
        """PermanentError if the cluster refuses the driver or does not answer."""
        if self._refused is not None or self.silent:
            raise refusal(self.address, self._refused)

    def _read(self) -> bytes | None:
        """Some bytes; b"" if the driver is dead; None if there is nothing new."""
        assert self._driver is not None
        assert self._driver.stdout is not None
        try:
            return os.read(self._driver.stdout.fileno(), 1 << 20)
        except BlockingIOError:
            return None

    def _handle(self, message: AnyMessage) -> None:
        match message:
            case View():
                self.view = message
                self._last_view_at = time.monotonic()
                while self._unconfirmed and self._unconfirmed[0].number <= message.heard:
                    self._unconfirmed.popleft()
            case Trouble(actor=actor, detail=detail):
                self.troubles[actor] = detail
            case NodeAnswered(node=node):
                self._answered_at[node] = self._probed_at.get(node, -math.inf)
            case Connected():
                self.connected, self._refused = message, None
            case NotConnected():
                self._refused = message

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
        for order in self._unconfirmed:
            self._send(order)

    def close(self) -> None:
        """End the driver; actors keep running."""
        if self._driver is None:
            return
        self._driver.kill()
        self._driver.wait()
        for stream in (self._driver.stdin, self._driver.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass  # an order it died before reading
        self._driver, self._buffer, self.view = None, b"", NO_VIEW


def look_at(address: str, log: Path) -> View:
    """The nodes of a cluster. Waits for the answer; PermanentError, in a sentence, if there is none."""
    link = RayLink(address, "shoestring", log=log)
    try:
        while link.view is NO_VIEW:
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
                f"the versions of Ray or Python at {address} and here differ: {_versions(detail)}",
                hint="use the same versions of Ray and Python here and on the cluster",
            )
        case NotConnected(why="other", detail=detail):
            return PermanentError(
                f"Ray at {address} refuses the connection: {' '.join(detail.split())[:300]}",
                hint="the controller must run on a node of the cluster, for instance its head",
            )
    return PermanentError(
        f"no Ray cluster answers at {address}{f' ({refused.detail})' if refused is not None else ''}",
        hint="give the address of its head, as in ray:10.0.0.1:6379, or leave it out to start nodes on this machine",
    )


def _versions(detail: str) -> str:
    """Ray's own message, on one line: the versions of the cluster and ours."""
    return " ".join(detail.replace("Version mismatch:", "").split())
