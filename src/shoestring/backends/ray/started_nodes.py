"""StartedNodes: Ray on this machine, to try things out and for tests. A head of our own, and a node for each lease.

Nodes are processes under keepers (`keeper`): when a lease ends, its node is killed with everything on it; without a
controller it ends with its prepaid time.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import tempfile
import time
from pathlib import Path

from shoestring.backends.ray.keeper import Keep
from shoestring.backends.ray.kept_process import RAY_START, SMALL, KeptProcess
from shoestring.backends.ray.link import RayLink
from shoestring.backends.ray.messages import Node
from shoestring.backends.ray.nodes import NodeAnswer
from shoestring.backends.site import DEADMAN_S
from shoestring.errors import PermanentError
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.worker.ranks import free_port

_HEAD_IP, _NODE_IP = ("127.0.0.2", "127.0.0.3") if sys.platform == "linux" else ("127.0.0.1", "127.0.0.1")
"""Loopback addresses. A driver belongs to the node at its own address and ends with it: that must be the head."""
_HEAD_START_S = 60.0
_NODE_START_S = 120.0
_SILENT_DEADMANS = 3
"""A worker stops after `deadman_s` without a controller, and is killed after twice that."""


class StartedNodes:
    local = True

    def __init__(self, run_dir: Path, *, deadman_s: float = DEADMAN_S) -> None:
        self._run_dir = run_dir
        self._silence_s = _SILENT_DEADMANS * deadman_s
        self._home = self._run_dir / "ray"
        self._token = self._home / "token"
        self._keys = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "", "RAY_AUTH_TOKEN_PATH": str(self._token)}
        """Ray listens on all addresses of a machine and obeys any client: the token lets only this run connect."""
        self._head: KeptProcess | None = None
        self._nodes: dict[LeaseId, KeptProcess] = {}
        self._started_at: dict[LeaseId, float] = {}
        self._joined: set[LeaseId] = set()
        self.link: RayLink | None = None
        self._find_head()

    # -- the head ------------------------------------------------------------------------------------------------------
    def _find_head(self) -> None:
        for folder in sorted(self._home.glob("head-*")):
            head = KeptProcess(folder)
            if head.alive():
                self._adopt(head)
            else:
                head.end()

    def ensure_ready(self) -> None:
        """Start a head unless one answers."""
        if self.link is not None and not self.link.silent and self._head is not None and self._head.alive():
            return
        self.close()
        number = len(list(self._home.glob("head-*")))
        head = KeptProcess(self._home / f"head-{number}")
        port, scratch = free_port(), _scratch()
        self._home.mkdir(exist_ok=True)
        _write_secret(self._token)
        head.start(
            Keep(
                command=(
                    *RAY_START,
                    *SMALL,
                    "--head",
                    f"--port={port}",
                    f"--node-ip-address={_HEAD_IP}",
                    "--include-dashboard=false",
                    f"--temp-dir={scratch}",
                ),
                heartbeat=str(self._run_dir / "heartbeat"),
                silence_s=self._silence_s,
                scratch=scratch,
            ),
            self._keys,
        )
        until = time.monotonic() + _HEAD_START_S
        while not _answers(port):
            if not head.alive() or time.monotonic() > until:
                reason = head.exit_reason()
                head.end()
                raise PermanentError(f"Ray does not start on this machine: {reason}", hint=f"see {self._home}")
            time.sleep(0.05)
        self._adopt(head)

    def _adopt(self, head: KeptProcess) -> None:
        keep = head.keep
        assert keep is not None
        port = next(word.partition("=")[2] for word in keep.command if word.startswith("--port="))
        self._head = head
        self.link = RayLink(
            f"{_HEAD_IP}:{port}",
            namespace="shoestring",
            log=self._home / "driver.log",
            node_ip=_HEAD_IP,
            environment=self._keys,
        )

    # -- nodes ---------------------------------------------------------------------------------------------------------
    def assign(self, request: RequestLease, end_at: float) -> None:
        self.keep_until(request.lease, end_at)

    def answer(self, lease: LeaseId) -> NodeAnswer | None:
        """A lease has its node from the request on: it may still be starting."""
        return NodeAnswer() if lease in self._nodes else None

    def update(self) -> None: ...

    def keep_until(self, lease: LeaseId, end_at: float) -> None:
        if lease not in self._nodes:
            self._nodes[lease] = KeptProcess(self._run_dir / "leases" / lease / "node")
            self._started_at[lease] = time.monotonic()
        node = self._nodes[lease]
        if not node.never_started or self.link is None:
            node.keep_until(end_at)
            return
        scratch = _scratch()
        node.start(
            Keep(
                command=(
                    *RAY_START,
                    *SMALL,
                    f"--address={self.link.address}",
                    f"--node-ip-address={_NODE_IP}",
                    f"--resources={json.dumps({_resource(lease): 1})}",
                    f"--temp-dir={scratch}",
                ),
                end_at=end_at,
                heartbeat=str(self._run_dir / "heartbeat"),
                silence_s=self._silence_s,
                scratch=scratch,
            ),
            self._keys,
        )

    def node(self, lease: LeaseId) -> Node | None:
        """The node of this lease, once Ray knows it."""
        if self.link is None:
            return None
        for node in self.link.view.nodes:
            if node.alive and _resource(lease) in node.resources:
                self._joined.add(lease)
                return node
        return None

    def lost(self, lease: LeaseId) -> str:
        """Why the node of this lease died; "" if it did not."""
        process = self._nodes.get(lease)
        if process is None:
            return ""
        if self._head is None or not self._head.alive():
            return "the head of the Ray cluster died"
        if not process.alive():
            return "its Ray node died"
        assert self.link is not None
        if self.link.silent:
            return "Ray on this machine does not answer"
        if self.node(lease) is not None or not self.link.view.nodes:
            return ""
        if lease in self._joined:
            return "Ray lost its node"
        late = time.monotonic() - self._started_at[lease] > _NODE_START_S
        return f"its Ray node did not come up: {process.exit_reason()}" if late else ""

    def answers(self, lease: LeaseId, *, since: float) -> bool:  # noqa: ARG002
        """A dead one is known by its process, at once: `lost`."""
        return True

    def release(self, lease: LeaseId) -> None:
        node = self._nodes.pop(lease, None) or KeptProcess(self._run_dir / "leases" / lease / "node")
        node.end()

    def needs(self, lease: LeaseId, slots: int) -> tuple[float, float]:  # noqa: ARG002
        """(CPUs, GPUs) to request from Ray. The node belongs to this run alone, so nothing needs to be shared."""
        return 0.0, 0.0

    def port(self, segment: SegmentId) -> int:  # noqa: ARG002
        """MASTER_PORT of a gang."""
        return free_port()

    def close(self) -> None:
        """No lease is left: the head ends too."""
        self.disconnect()
        if self._head is not None:
            self._head.end()
            self._head = None

    def disconnect(self) -> None:
        if self.link is not None:
            self.link.close()
            self.link = None


def _write_secret(path: Path) -> None:
    """Readable by this user only, and the same for every head of this run."""
    if not path.exists():
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        os.replace(fresh, path)


def _scratch() -> str:
    """A folder for Ray's sockets, whose paths must be short. Nodes that share one and start at the same time may choose
    the same socket names, and never come up."""
    return tempfile.mkdtemp(prefix="shoestring-ray-")


def _resource(lease: LeaseId) -> str:
    return f"lease-{lease}"


def _answers(port: int) -> bool:
    try:
        socket.create_connection((_HEAD_IP, port), 1.0).close()
    except OSError:
        return False
    return True
