"""JoinedNodes: an existing Ray cluster, whose nodes are assigned to leases one by one.

A node with the resource `lease-<id>` (`ray start --resources='{"lease-l7": 1}'`) is the node of that lease: a machine
launched for a lease announces itself like this. Otherwise a lease gets any free node that has CPUs or GPUs and no such
resource. Ray shares the CPUs and GPUs of a node between this run and others; a segment waits for its share.
"""

from __future__ import annotations

import math
import time
import zlib
from pathlib import Path

import msgspec

from shoestring.backends.multi_node import rendezvous_port
from shoestring.backends.ray.link import NO_VIEW, RayLink
from shoestring.backends.ray.messages import Node
from shoestring.errors import TransientError
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.worker.task import read_json, write_json

_NAMED = "lease-"


class _AssignedNode(msgspec.Struct, frozen=True):
    node: str


class JoinedNodes:
    local = False
    patience_s = 30.0
    """With Ray's own settings a node that is killed counts as alive for about 16 s."""

    def __init__(self, run_dir: Path, address: str) -> None:
        self._run_dir = run_dir
        self._assigned: dict[LeaseId, str] = {}
        home = self._run_dir / "ray"
        home.mkdir(parents=True, exist_ok=True)
        # All nodes see the run's folder under this path, so it identifies this run among all others on the cluster.
        mark = f"{zlib.crc32(str(self._run_dir).encode()):08x}"
        namespace = f"shoestring-{self._run_dir.name}-{mark}"
        self.link: RayLink | None = RayLink(address, namespace, log=home / "driver.log")

    def ensure_ready(self) -> None:
        """Wait for the first view of the cluster; PermanentError, in a sentence, if it refuses the driver."""
        assert self.link is not None
        self.link.listen()
        self.link.require()
        if self.link.connected is not None and self.link.view is NO_VIEW:
            raise TransientError(f"Ray at {self.link.address} does not answer for the moment")
        while self.link.view is NO_VIEW:
            time.sleep(0.02)
            self.link.listen()
            self.link.require()

    def assign(self, lease: LeaseId, end_at: float) -> bool:  # noqa: ARG002
        if lease in self._assigned:
            return True
        record = self._run_dir / "leases" / lease / "node.json"
        if record.exists():
            self._assigned[lease] = read_json(record, _AssignedNode).node
            return True
        free = self._named(lease) or self._free_nodes()
        if free:
            write_json(record, _AssignedNode(free[0].id))
            self._assigned[lease] = free[0].id
        return bool(free)

    def node(self, lease: LeaseId) -> Node | None:
        return next((node for node in self._alive() if node.id == self._assigned.get(lease)), None)

    def lost(self, lease: LeaseId) -> str:
        assert self.link is not None
        if self.link.silent:
            return "the Ray cluster does not answer any more"
        if self.link.view is NO_VIEW or self.node(lease) is not None:
            return ""
        return "its Ray node died" if lease in self._assigned else "no Ray node was free for it"

    def release(self, lease: LeaseId) -> None:
        self._assigned.pop(lease, None)

    def needs(self, lease: LeaseId, slots: int) -> tuple[float, float]:
        """(CPUs, GPUs) to request from Ray: a slot is a GPU if the node has any, else a core."""
        node = self.node(lease)
        cpus, gpus = (0.0, 0.0) if node is None else (node.resources.get("CPU", 0.0), node.resources.get("GPU", 0.0))
        return (0.0, min(slots, gpus)) if gpus else (min(slots, cpus), 0.0)

    def port(self, segment: SegmentId) -> int:
        return rendezvous_port(self._run_dir, segment)

    def close(self) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        if self.link is not None:
            self.link.close()
            self.link = None

    def _alive(self) -> list[Node]:
        return [] if self.link is None else [node for node in self.link.view.nodes if node.alive]

    def _named(self, lease: LeaseId) -> list[Node]:
        return [node for node in self._alive() if f"{_NAMED}{lease}" in node.resources]

    def _free_nodes(self) -> list[Node]:
        assigned = set(self._assigned.values())
        return [node for node in self._alive() if node.id not in assigned and is_open(node)]


def is_open(node: Node) -> bool:
    """May this node be assigned to any lease?"""
    return slots_of(node) >= 1 and not any(name.startswith(_NAMED) for name in node.resources)


def slots_of(node: Node) -> int:
    return math.floor(node.resources.get("GPU", 0.0) or node.resources.get("CPU", 0.0))
