"""JoinedNodes: a Ray cluster that is there already, whose nodes are taken as leases one by one.

A node that carries the resource `lease-<id>` (`ray start --resources='{"lease-l7": 1}'`) is the node of that lease:
this is how a machine launched for a lease says so. Otherwise a lease takes any node that has CPUs or GPUs, is named by
no lease, and is not taken. Ray shares the CPUs and GPUs of a node out between us and others; a segment waits for its
share.
"""

from __future__ import annotations

import math
import time
import zlib
from pathlib import Path

import msgspec

from shoestring.backends.multi_node import meeting_port
from shoestring.backends.ray.link import NOTHING, RayLink
from shoestring.backends.ray.messages import Node
from shoestring.errors import TransientError
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.worker.task import read_json, write_json

_NAMED = "lease-"


class _Taken(msgspec.Struct, frozen=True):
    node: str


class JoinedNodes:
    here = False
    patience_s = 20.0

    def __init__(self, run_dir: Path, address: str) -> None:
        self._run_dir = run_dir.resolve()
        self._taken: dict[LeaseId, str] = {}
        home = self._run_dir / "ray"
        home.mkdir(parents=True, exist_ok=True)
        # The run's folder is seen by all nodes under this path, so it tells this run from all others on the cluster.
        mark = f"{zlib.crc32(str(self._run_dir).encode()):08x}"
        namespace = f"shoestring-{self._run_dir.name}-{mark}"
        self.link: RayLink | None = RayLink(address, namespace, log=home / "driver.log")

    def be_ready(self) -> None:
        """Wait for the first word of the cluster; PermanentError, in a sentence, if it does not take us."""
        assert self.link is not None
        self.link.listen()
        self.link.require()
        if self.link.connected is not None and self.link.view is NOTHING:
            raise TransientError(f"no word from Ray at {self.link.address} for the moment")
        while self.link.view is NOTHING:
            time.sleep(0.02)
            self.link.listen()
            self.link.require()

    def has_room(self, lease: LeaseId, coming: int) -> bool:
        """Is there a node for one lease more, when so many have none yet?"""
        return bool(self._named(lease)) or len(self._free_nodes()) > coming

    def take(self, lease: LeaseId, end_at: float) -> None:  # noqa: ARG002
        if lease in self._taken:
            return
        record = self._run_dir / "leases" / lease / "node.json"
        if record.exists():
            self._taken[lease] = read_json(record, _Taken).node
            return
        free = self._named(lease) or self._free_nodes()
        if free:
            write_json(record, _Taken(free[0].id))
            self._taken[lease] = free[0].id

    def node(self, lease: LeaseId) -> Node | None:
        return next((node for node in self._alive() if node.id == self._taken.get(lease)), None)

    def lost(self, lease: LeaseId) -> str:
        assert self.link is not None
        if self.link.silent:
            return "the Ray cluster does not answer any more"
        if self.link.view is NOTHING or self.node(lease) is not None:
            return ""
        return "its Ray node died" if lease in self._taken else "no Ray node was left for it"

    def give_back(self, lease: LeaseId) -> None:
        self._taken.pop(lease, None)

    def needs(self, lease: LeaseId, slots: int) -> tuple[float, float]:
        """(CPUs, GPUs) to ask Ray for: a slot is a GPU where there are any, else a core."""
        node = self.node(lease)
        cpus, gpus = (0.0, 0.0) if node is None else (node.resources.get("CPU", 0.0), node.resources.get("GPU", 0.0))
        return (0.0, min(slots, gpus)) if gpus else (min(slots, cpus), 0.0)

    def port(self, segment: SegmentId) -> int:
        return meeting_port(self._run_dir, segment)

    def close(self) -> None:
        self.let_go()

    def let_go(self) -> None:
        if self.link is not None:
            self.link.close()
            self.link = None

    def _alive(self) -> list[Node]:
        return [] if self.link is None else [node for node in self.link.view.nodes if node.alive]

    def _named(self, lease: LeaseId) -> list[Node]:
        return [node for node in self._alive() if f"{_NAMED}{lease}" in node.resources]

    def _free_nodes(self) -> list[Node]:
        taken = set(self._taken.values())
        return [node for node in self._alive() if node.id not in taken and is_open(node)]


def is_open(node: Node) -> bool:
    """May any lease take this node?"""
    return slots_of(node) >= 1 and not any(name.startswith(_NAMED) for name in node.resources)


def slots_of(node: Node) -> int:
    return math.floor(node.resources.get("GPU", 0.0) or node.resources.get("CPU", 0.0))
