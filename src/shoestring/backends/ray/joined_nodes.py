"""JoinedNodes: an existing Ray cluster, whose nodes are assigned to leases one by one.

A node with the resource `lease-<id>` (`ray start --resources='{"lease-l7": 1}'`) is the node of that lease: a machine
launched for a lease announces itself like this. Otherwise a lease gets any free node that has CPUs or GPUs, no such
resource and, where the user's own node types are told apart, the label of its type as a resource; and if there is none,
one may be launched (`launcher`). Ray shares the CPUs and GPUs of a node between this run and others; a segment waits
for its share.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from shoestring.backends.multi_node import rendezvous_port
from shoestring.backends.ray.launcher import NodeLauncher
from shoestring.backends.ray.link import NO_VIEW, RayLink
from shoestring.backends.ray.messages import Node
from shoestring.backends.ray.nodes import NodeAnswer
from shoestring.errors import TransientError
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import LeaseId, Offer, SegmentId
from shoestring.market.own import NodeType
from shoestring.worker.task import read_json, write_json

_NAMED = "lease-"
_RAYS_OWN = frozenset({"CPU", "GPU", "memory", "object_store_memory"})
_RAYS_PREFIXES = ("node:", "accelerator_type:", _NAMED)


class _AssignedNode(msgspec.Struct, frozen=True):
    node: str


class JoinedNodes:
    local = False

    def __init__(
        self,
        run_dir: Path,
        address: str,
        labels: Mapping[Offer, str] = MappingProxyType({}),
        types: Iterable[NodeType] = (),
    ) -> None:
        """`labels`: of the nodes of an offer, where not all are alike. `types`: some of them may be launched."""
        self._run_dir = run_dir
        self._labels = labels
        self._assigned: dict[LeaseId, str] = {}
        self._denied: dict[LeaseId, str] = {}
        home = self._run_dir / "ray"
        home.mkdir(parents=True, exist_ok=True)
        # All nodes see the run's folder under this path, so it identifies this run among all others on the cluster.
        mark = f"{zlib.crc32(str(self._run_dir).encode()):08x}"
        namespace = f"shoestring-{self._run_dir.name}-{mark}"
        self._launcher = NodeLauncher(run_dir, mark, types)
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

    def assign(self, request: RequestLease, end_at: float) -> None:
        lease, launcher = request.lease, self._launcher
        if self._recalls(lease):
            return
        free = self._named(lease) or ([] if launcher.has_launched(lease) else self._free_nodes(request.offer))
        if free:
            self._give(lease, free[0])
        elif launcher.can_launch(request.offer):
            assert self.link is not None
            assert self.link.connected is not None
            launcher.launch(request, self.link.connected.address, end_at)
        else:
            label = self._labels.get(request.offer)
            self._denied[lease] = "no Ray node is free" if label is None else f"no Ray node with {label} is free"

    def _recalls(self, lease: LeaseId) -> bool:
        """Is its node known, to this controller or from an earlier one?"""
        if lease not in self._assigned and (record := self._record(lease)).exists():
            self._assigned[lease] = read_json(record, _AssignedNode).node
        return lease in self._assigned

    def _give(self, lease: LeaseId, node: Node) -> None:
        write_json(self._record(lease), _AssignedNode(node.id))
        self._assigned[lease] = node.id

    def _record(self, lease: LeaseId) -> Path:
        return self._run_dir / "leases" / lease / "node.json"

    def answer(self, lease: LeaseId) -> NodeAnswer | None:
        """A node that is launched is there when it has joined the cluster."""
        if lease not in self._assigned and self._launcher.has_launched(lease) and (joined := self._named(lease)):
            self._give(lease, joined[0])
        if lease in self._assigned:
            return NodeAnswer(launched=self._launcher.has_launched(lease))
        failed = self._launcher.failed(lease)
        because = f"its node could not be launched ({failed})" if failed else self._denied.get(lease)
        return None if because is None else NodeAnswer(because)

    def keep_until(self, lease: LeaseId, end_at: float) -> None:
        self._recalls(lease)
        self._launcher.keep_until(lease, end_at)

    def update(self) -> None:
        self._launcher.update()

    def node(self, lease: LeaseId) -> Node | None:
        return next((node for node in self._alive() if node.id == self._assigned.get(lease)), None)

    def lost(self, lease: LeaseId) -> str:
        assert self.link is not None
        if self.link.silent:
            return "the Ray cluster does not answer any more"
        if self.link.view is NO_VIEW or self.node(lease) is not None:
            return ""
        return "its Ray node died" if lease in self._assigned else "no Ray node was free for it"

    def answers(self, lease: LeaseId, *, since: float) -> bool:
        node = self.node(lease)
        return node is not None and self.link is not None and self.link.node_answers(node.id, since=since)

    def release(self, lease: LeaseId) -> None:
        self._assigned.pop(lease, None)
        self._denied.pop(lease, None)
        self._launcher.end(lease)

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
        self._launcher.close()

    def _alive(self) -> list[Node]:
        return [] if self.link is None else [node for node in self.link.view.nodes if node.alive]

    def _named(self, lease: LeaseId) -> list[Node]:
        names = {f"{_NAMED}{lease}", self._launcher.resource(lease)}
        return [node for node in self._alive() if not names.isdisjoint(node.resources)]

    def _free_nodes(self, offer: Offer) -> list[Node]:
        assigned, label = set(self._assigned.values()), self._labels.get(offer)
        free = [node for node in self._alive() if node.id not in assigned and is_open(node)]
        return [node for node in free if label is None or label in node.resources]


def is_open(node: Node) -> bool:
    """May this node be assigned to any lease?"""
    return slots_of(node) >= 1 and not any(name.startswith(_NAMED) for name in node.resources)


def labels_of(node: Node) -> list[str]:
    """Its resources that Ray does not define itself."""
    return [name for name in node.resources if name not in _RAYS_OWN and not name.startswith(_RAYS_PREFIXES)]


def slots_of(node: Node) -> int:
    return math.floor(node.resources.get("GPU", 0.0) or node.resources.get("CPU", 0.0))
