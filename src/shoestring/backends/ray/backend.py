"""RayBackend: leases are Ray nodes, and workers run under plain actors on them.

Everything else is as on the local backend: the run's folder holds everything that is known, written before it is done,
and the workers end on time by themselves. The market is simulated. Where nodes are started here (`StartedNodes`) a
revocation kills a node with its whole process tree; on an existing cluster (`JoinedNodes`) it ends what we run on it.
A node that dies by itself is a lost machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from shoestring.backends.local.backend import LocalBackend
from shoestring.backends.local.segment import LocalSegment
from shoestring.backends.multi_node import MultiNodeSegment
from shoestring.backends.ray.check import ray_address
from shoestring.backends.ray.joined_nodes import JoinedNodes
from shoestring.backends.ray.segment import NodeSource, RayWorker
from shoestring.backends.ray.started_nodes import StartedNodes
from shoestring.backends.simulated_lease import Charges, Granted, Provider
from shoestring.kernel.decisions import RequestLease, StartSegment
from shoestring.kernel.events import Event
from shoestring.kernel.spec import Code
from shoestring.kernel.types import Denial, EndCause, LeaseId, Offer
from shoestring.worker.task import Task
from shoestring.world.live.clock import RunClock


class RayBackend(LocalBackend):
    def __init__(
        self,
        run_dir: Path,
        *,
        nodes: NodeSource,
        code: Code,
        provider: Provider,
        clock: RunClock,
        store: Path,
        metric: str | None,
        folder: Path | None = None,
        deadman_s: float = 300.0,
        slots_per_worker: int = 1,
    ) -> None:
        """As the local backend; on a cluster of several machines `run_dir`, `store` and `folder` must be the same
        folders on all of them."""
        self._nodes = nodes
        super().__init__(
            run_dir,
            code=code,
            provider=_Bounded(provider, self._has_free_node),
            clock=clock,
            store=store,
            metric=metric,
            folder=folder,
            deadman_s=deadman_s,
            slots_per_worker=slots_per_worker,
        )

    def _take_over(self) -> None:
        super()._take_over()
        for lease, record in self._leases.items():
            if not record.open:  # its controller may have died after recording the end
                self._nodes.release(lease)

    # -- machines ------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        if request.lease not in self._leases:
            self._nodes.ensure_ready()
            super().acquire(request)

    def _has_free_node(self, lease: LeaseId) -> bool:
        return self._nodes.has_free_node(lease, sum(self._nodes.node(other) is None for other in self.inventory()))

    def _end(self, lease: LeaseId, at: float, cause: EndCause) -> None:
        super()._end(lease, at, cause)
        self._nodes.release(lease)

    def _update_nodes(self, now: float) -> None:
        """Assign a node to every lease once it is granted, and detect nodes that died."""
        for lease in list(self._unreported):
            record = self._leases[lease]
            due, _ = record.due()
            if not record.open or not record.answered_at <= now < due:
                continue
            self._nodes.assign(lease, self._clock.wall(due))
            if why := self._nodes.lost(lease):
                for segment in self._on(lease):
                    self._read_outbox(segment, now)
                    if not segment.over:
                        segment.kill()
                        self._out.append(segment.lost(now, why))
                        self._finish(segment)
                if record.open:
                    self._end(lease, now, "lost")

    # -- user code -----------------------------------------------------------------------------------------------------
    def _task(self, segment: StartSegment) -> Task:
        """The task of the part on the first lease, which has rank 0."""
        task = super()._task(segment)
        if len(segment.leases) == 1:
            return task
        return msgspec.structs.replace(task, workers=task.machines[0], master_port=self._nodes.port(segment.segment))

    def _segment(self, folder: Path, task: Task) -> MultiNodeSegment:
        return MultiNodeSegment(folder, task, self._clock, RayWorker(folder, task, self._nodes))

    def _finish(self, segment: LocalSegment) -> None:
        super()._finish(segment)
        if isinstance(segment, MultiNodeSegment):
            segment.end_other_ranks()

    # -- events --------------------------------------------------------------------------------------------------------
    def poll(self) -> list[Event]:
        if self._nodes.link is not None:
            self._nodes.link.listen()
        self._update_nodes(self._clock.now())
        for segment in self._segments.values():
            if isinstance(segment.worker, RayWorker):
                segment.worker.start_if_ready()
        return list(super().poll())

    def close(self) -> None:
        """Machines and user code keep running. So does a head of our own, until no lease is left."""
        leased = list(self.inventory())
        super().close()
        if leased:
            self._nodes.disconnect()
        else:
            self._nodes.close()


def nodes_for(place: str, run_dir: Path) -> NodeSource:
    """For "ray", nodes started here; for "ray:ADDRESS", those of a cluster."""
    address = ray_address(place)
    return StartedNodes(run_dir) if address is None else JoinedNodes(run_dir, address)


class _Bounded:
    """The market, limited to the nodes that are available."""

    def __init__(self, provider: Provider, has_free_node: Callable[[LeaseId], bool]) -> None:
        self._provider = provider
        self._has_free_node = has_free_node

    @property
    def denial_s(self) -> float:
        return self._provider.denial_s

    def grant(self, request: RequestLease, now: float) -> Granted | Denial:
        return self._provider.grant(request, now) if self._has_free_node(request.lease) else "no_capacity"

    def revocation(
        self, lease: LeaseId, offer: Offer, granted_at: float, max_usd_per_hour: float | None
    ) -> tuple[float, float] | None:
        return self._provider.revocation(lease, offer, granted_at, max_usd_per_hour)

    def bill(
        self, offer: Offer, max_usd_per_hour: float | None, started: float, ended: float, cause: EndCause
    ) -> Charges:
        return self._provider.bill(offer, max_usd_per_hour, started, ended, cause)
