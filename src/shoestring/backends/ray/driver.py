"""The process beside the controller that talks to Ray, in JSON lines: `python -m shoestring.backends.ray.driver`.

A cluster that goes away takes its drivers with it, connecting takes seconds, and calls may hang. None of that may
happen to the process that guards the money, so it never loads Ray. This one remembers nothing: what it tells of nodes
and actors is what Ray says at that moment, and any other driver would tell the same.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import sys
import time
from typing import IO, Any, Literal

import msgspec

from shoestring.backends.ray.actor import SegmentHost
from shoestring.backends.ray.messages import (
    AnyNews,
    AnyOrder,
    Connected,
    End,
    Node,
    NotConnected,
    Start,
    Trouble,
    View,
)
from shoestring.errors import need

_TELL_EVERY_S = 0.25
_ANSWER_S = 5.0
_ENDING_S = 3.0


class Driver:
    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._ray: Any = None
        self._heard = 0
        self._runs: dict[Any, str] = {}
        """What was asked of actors and has not come back, and of whom."""
        self._ending: list[tuple[float, Any]] = []
        """Actors to be gone by then: one that waits for its share of a node cannot be asked to end."""

    def connect(self, address: str, namespace: str, node_ip: str) -> bool:
        host, _, port = address.rpartition(":")
        if host:
            try:
                socket.create_connection((host, int(port)), _ANSWER_S).close()
            except OSError as error:
                self._say(NotConnected(why="silent", detail=error.strerror or str(error)))
                return False
        self._ray = ray = need("ray", extra="ray")
        place = {"_node_ip_address": node_ip} if node_ip else {}
        try:
            ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.ERROR, **place)
        except ConnectionError as error:
            self._say(NotConnected(why="silent", detail=str(error)))
            return False
        except Exception as error:
            why: Literal["versions", "other"] = "versions" if "ersion mismatch" in str(error) else "other"
            self._say(NotConnected(why=why, detail=str(error)))
            return False
        self._say(Connected(ray=ray.__version__, python=".".join(map(str, sys.version_info[:3]))))
        return True

    def serve(self) -> None:
        """Until nobody is left to give orders."""
        decode = msgspec.json.Decoder(AnyOrder).decode
        said = b""
        tell_at = 0.0
        while True:
            ready, _, _ = select.select([0], [], [], max(0.0, tell_at - time.monotonic()))
            if ready:
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return
                *lines, said = (said + chunk).split(b"\n")
                for line in lines:
                    self._obey(decode(line))
            if time.monotonic() >= tell_at:
                self._hear_from_actors()
                self._tell()
                tell_at = time.monotonic() + _TELL_EVERY_S

    def _obey(self, order: AnyOrder) -> None:
        try:
            match order:
                case Start():
                    self._start(order)
                case End(actor=name):
                    self._end(name)
        except Exception as error:
            self._say(Trouble(actor=order.actor, detail=_in_a_line(error)))
        self._heard = max(self._heard, order.number)

    def _start(self, order: Start) -> None:
        on_node = need("ray.util.scheduling_strategies", extra="ray").NodeAffinitySchedulingStrategy
        host = self._ray.remote(max_restarts=0, max_concurrency=2)(SegmentHost)
        actor = host.options(
            name=order.actor,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=order.cpus,
            num_gpus=order.gpus,
            scheduling_strategy=on_node(order.node, soft=False),
        ).remote()
        self._runs[actor.run.remote(order.folder, os.environ.get("OMP_NUM_THREADS"))] = order.actor

    def _end(self, name: str) -> None:
        try:
            actor = self._ray.get_actor(name)
        except ValueError:
            return  # it has ended
        self._runs[actor.end.remote()] = name
        self._ending.append((time.monotonic() + _ENDING_S, actor))

    def _hear_from_actors(self) -> None:
        ray = self._ray
        while self._ending and self._ending[0][0] <= time.monotonic():
            ray.kill(self._ending.pop(0)[1])
        if not self._runs:
            return
        done, _ = ray.wait(list(self._runs), num_returns=len(self._runs), timeout=0)
        for result in done:
            name = self._runs.pop(result)
            try:
                ray.get(result)
            except ray.exceptions.RayActorError as error:
                if "exit_actor()" not in str(error):  # else it ended when its work did
                    self._say(Trouble(actor=name, detail=_in_a_line(error)))
            except Exception as error:
                self._say(Trouble(actor=name, detail=_in_a_line(error)))

    def _tell(self) -> None:
        nodes = [
            Node(
                id=node["NodeID"],
                address=node["NodeManagerAddress"],
                alive=node["Alive"],
                resources=node["Resources"],
            )
            for node in self._ray.nodes()
        ]
        self._say(View(heard=self._heard, nodes=nodes, actors=self._ray.util.list_named_actors()))

    def _say(self, news: AnyNews) -> None:
        self._out.write(msgspec.json.encode(news) + b"\n")
        self._out.flush()


def _in_a_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints must not get between the lines
    driver = Driver(out)
    if driver.connect(*sys.argv[1:4]):
        driver.serve()
    os._exit(0)  # nothing is to be ended: actors are detached


if __name__ == "__main__":
    main()
