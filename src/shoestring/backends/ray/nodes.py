"""RayNodes: a lease is a Ray node, started here (`StartedNodes`) or of a cluster that exists (`JoinedNodes`).

Where nodes are started here, the end of a lease kills its node with its whole process tree; on an existing cluster it
ends what we run on it. A node that dies by itself is a lost machine.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from shoestring.backends.lease_record import LeaseRecord
from shoestring.backends.machines import MachineEnd, Sighting
from shoestring.backends.ray.link import RayLink
from shoestring.backends.ray.messages import Node
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.world.live.clock import RunClock


class NodeSource(Protocol):
    """Where leases get their nodes: `StartedNodes`, `JoinedNodes`."""

    patience_s: float
    """For how long a worker may be missing before that counts as its own failure: by then the death of its node would
    be known."""
    local: bool
    """Are the nodes processes of this machine?"""
    link: RayLink | None

    def ensure_ready(self) -> None: ...

    def assign(self, lease: LeaseId, end_at: float) -> bool:
        """Give the lease a node, unless it has one, paid until `end_at` (wall time). False if there is none."""
        ...

    def node(self, lease: LeaseId) -> Node | None: ...

    def lost(self, lease: LeaseId) -> str: ...

    def release(self, lease: LeaseId) -> None: ...

    def needs(self, lease: LeaseId, slots: int) -> tuple[float, float]: ...

    def port(self, segment: SegmentId) -> int: ...

    def disconnect(self) -> None: ...

    def close(self) -> None: ...


class RayNodes:
    def __init__(self, nodes: NodeSource, clock: RunClock) -> None:
        self._nodes = nodes
        self._clock = clock
        self._answers: dict[LeaseId, Sighting] = {}
        """To requests of this instance."""

    def recall(self, record: LeaseRecord) -> None:
        if record.open:
            self.keep_until(record.request.lease, record.end_by)
        else:  # its controller may have died after recording the end
            self._nodes.release(record.request.lease)

    def request(self, record: LeaseRecord, *, again: bool) -> None:  # noqa: ARG002
        self._nodes.ensure_ready()
        assigned = self._nodes.assign(record.request.lease, self._clock.wall(record.end_by))
        answer = Sighting(answered_at=self._clock.now(), denied=None if assigned else "no_capacity")
        self._answers[record.request.lease] = answer

    def update(self, open_leases: Collection[LeaseId]) -> None:  # noqa: ARG002
        if self._nodes.link is not None:
            self._nodes.link.listen()

    def look(self, record: LeaseRecord) -> Sighting:
        answer = self._answers.get(record.request.lease, Sighting(answered_at=record.requested_at))
        why = "" if answer.denied else self._nodes.lost(record.request.lease)
        return answer._replace(ended=MachineEnd("lost", why) if why else None)

    def keep_until(self, lease: LeaseId, at: float) -> None:
        self._nodes.assign(lease, self._clock.wall(at))

    def release(self, lease: LeaseId) -> None:
        self._answers.pop(lease, None)
        self._nodes.release(lease)

    def close(self, *, leased: bool) -> None:
        """Nodes and user code keep running. So does a head of our own, until no lease is left."""
        if leased:
            self._nodes.disconnect()
        else:
            self._nodes.close()
