"""The controller's subprocess that talks to Ray, in JSON lines: `python -m shoestring.backends.ray.driver`.

A cluster that goes down kills its drivers, connecting takes seconds, and calls may hang. None of that may happen to
the process that guards the budget, so it never imports Ray. The driver has no state: what it reports of nodes and
actors is what Ray answers at that moment, and any other driver would report the same.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import sys
import time
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any, Literal

import msgspec

from shoestring.backends.ray.actor import SegmentHost
from shoestring.backends.ray.messages import (
    AnyInput,
    AnyMessage,
    AnyOrder,
    Connected,
    End,
    Node,
    NodeAnswered,
    NotConnected,
    Probe,
    Start,
    Trouble,
    View,
)
from shoestring.errors import need

_REPORT_EVERY_S = 0.25
_ANSWER_S = 5.0
_ENDING_S = 3.0


class Driver:
    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._ray: Any = None
        self._handled = 0
        self._runs: dict[Any, str] = {}
        """Calls to actors that have not returned -> the name of the actor."""
        self._answered: SimpleQueue[str] = SimpleQueue()
        """Nodes that answered a probe."""
        self._ending: list[tuple[float, Any]] = []
        """(time, actor to kill then): an actor that still waits for its share of a node cannot handle a call to end."""

    def connect(self, address: str, namespace: str, node_ip: str) -> bool:
        host, _, port = address.rpartition(":")
        if host:
            try:
                socket.create_connection((host, int(port)), _ANSWER_S).close()
            except OSError as error:
                self._send(NotConnected(why="silent", detail=error.strerror or str(error)))
                return False
        self._ray = ray = need("ray", extra="ray")
        options = {"_node_ip_address": node_ip} if node_ip else {}
        try:
            ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.ERROR, **options)
        except ConnectionError as error:
            self._send(NotConnected(why="silent", detail=str(error)))
            return False
        except Exception as error:
            why: Literal["versions", "other"] = "versions" if "ersion mismatch" in str(error) else "other"
            self._send(NotConnected(why=why, detail=str(error)))
            return False
        version = ".".join(map(str, sys.version_info[:3]))
        head = ray.get_runtime_context().gcs_address
        self._send(Connected(ray=ray.__version__, python=version, address=head))
        return True

    def serve(self) -> None:
        """Until the controller closes the pipe."""
        decode = msgspec.json.Decoder(AnyInput).decode
        buffered = b""
        report_at = 0.0
        while True:
            ready, _, _ = select.select([0], [], [], max(0.0, report_at - time.monotonic()))
            if ready:
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return
                *lines, buffered = (buffered + chunk).split(b"\n")
                for line in lines:
                    match decode(line):
                        case Probe(node=node):
                            self._probe(node)
                        case order:
                            self._carry_out(order)
            if time.monotonic() >= report_at:
                self._collect_results()
                self._report_view()
                report_at = time.monotonic() + _REPORT_EVERY_S

    def _carry_out(self, order: AnyOrder) -> None:
        try:
            match order:
                case Start():
                    self._start(order)
                case End(actor=name):
                    self._end(name)
        except Exception as error:
            self._send(Trouble(actor=order.actor, detail=_last_line(error)))
        self._handled = max(self._handled, order.number)

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

    def _probe(self, node_id: str) -> None:
        """Its raylet accepts connections while it lives. In a thread: a machine that is gone does not refuse them."""
        for node in self._ray.nodes():
            if node["NodeID"] == node_id:
                at = node["NodeManagerAddress"], node["NodeManagerPort"]
                Thread(target=self._connect_to, args=(node_id, at), daemon=True).start()

    def _connect_to(self, node_id: str, at: tuple[str, int]) -> None:
        try:
            socket.create_connection(at, _ANSWER_S).close()
        except OSError:
            return
        self._answered.put(node_id)

    def _collect_results(self) -> None:
        ray = self._ray
        while not self._answered.empty():
            self._send(NodeAnswered(node=self._answered.get()))
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
                if "exit_actor()" not in str(error):  # else it exited after its work
                    self._send(Trouble(actor=name, detail=_last_line(error)))
            except Exception as error:
                self._send(Trouble(actor=name, detail=_last_line(error)))

    def _report_view(self) -> None:
        nodes = [
            Node(
                id=node["NodeID"],
                address=node["NodeManagerAddress"],
                alive=node["Alive"],
                resources=node["Resources"],
            )
            for node in self._ray.nodes()
        ]
        self._send(View(heard=self._handled, nodes=nodes, actors=self._ray.util.list_named_actors()))

    def _send(self, message: AnyMessage) -> None:
        self._out.write(msgspec.json.encode(message) + b"\n")
        self._out.flush()


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints must not mix with the JSON lines
    driver = Driver(out)
    if driver.connect(*sys.argv[1:4]):
        driver.serve()
    os._exit(0)  # no clean-up: actors are detached


if __name__ == "__main__":
    main()
