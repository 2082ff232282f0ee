"""RayNodes: a lease is a Ray node, started here (`StartedNodes`) or of a cluster that exists (`JoinedNodes`).

Where nodes are started here, the end of a lease kills its node with its whole process tree; on an existing cluster it
ends what we run on it, and the node if it was launched for the lease. A node that dies by itself is a lost machine.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from shoestring.backends.lease_record import LeaseRecord
from shoestring.backends.machines import MachineEnd, Sighting
from shoestring.backends.ray.link import RayLink
from shoestring.backends.ray.messages import Node
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import Denial, LeaseId, SegmentId
from shoestring.units import show_duration
from shoestring.world.live.clock import RunClock


class NodeAnswer(NamedTuple):
    """To the request of a node."""

    denied_because: str = ""
    """Empty if the lease has its node."""
    launched: bool = False
    """It was launched for the lease, and costs money from then on."""


class NodeSource(Protocol):
    """Where leases get their nodes: `StartedNodes`, `JoinedNodes`."""

    local: bool
    """Are the nodes processes of this machine?"""
    link: RayLink | None

    def ensure_ready(self) -> None: ...

    def assign(self, request: RequestLease, end_at: float) -> None:
        """Find a node for the lease, unless it has one, paid until `end_at` (wall time)."""
        ...

    def answer(self, lease: LeaseId) -> NodeAnswer | None:
        """Does it have a node? None while that is not known."""
        ...

    def keep_until(self, lease: LeaseId, end_at: float) -> None: ...

    def update(self) -> None: ...

    def node(self, lease: LeaseId) -> Node | None: ...

    def lost(self, lease: LeaseId) -> str: ...

    def answers(self, lease: LeaseId, *, since: float) -> bool:
        """Has its node shown that it is alive, later than that (monotonic time)? Asked until it has."""
        ...

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
        self._nodes.assign(record.request, self._clock.wall(record.end_by))

    def update(self, open_leases: Collection[LeaseId]) -> None:  # noqa: ARG002
        if self._nodes.link is not None:
            self._nodes.link.listen()
        self._nodes.update()

    def look(self, record: LeaseRecord) -> Sighting:
        lease = record.request.lease
        seen = self._answers.get(lease) or self._answer(record)
        why = "" if seen.answered_at is None or seen.denied else self._nodes.lost(lease)
        return seen._replace(ended=MachineEnd("lost", why) if why else None)

    def _answer(self, record: LeaseRecord) -> Sighting:
        if not record.pending:
            return Sighting(answered_at=record.answered_at)
        lease, at = record.request.lease, self._clock.now()
        answer = self._nodes.answer(lease)
        if answer is None and at >= record.end_by:
            at = record.end_by
            answer = NodeAnswer(f"its node did not join the cluster within {show_duration(at - record.requested_at)}")
        if answer is None:
            return Sighting()
        because = answer.denied_because
        denied: Denial | None = "no_capacity" if because else None
        billed_from = record.requested_at if answer.launched else None
        self._answers[lease] = Sighting(answered_at=at, billed_from=billed_from, denied=denied, denied_because=because)
        return self._answers[lease]

    def keep_until(self, lease: LeaseId, at: float) -> None:
        self._nodes.keep_until(lease, self._clock.wall(at))

    def release(self, lease: LeaseId) -> None:
        self._answers.pop(lease, None)
        self._nodes.release(lease)

    def close(self, *, leased: bool) -> None:
        """Nodes and user code keep running. So does a head of our own, until no lease is left."""
        if leased:
            self._nodes.disconnect()
        else:
            self._nodes.close()
