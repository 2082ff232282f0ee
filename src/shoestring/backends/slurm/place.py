"""`on="slurm"`: nodes of Slurm's default partition; `on="slurm:PARTITION"`: of another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shoestring.backends.registry import Nodes
from shoestring.backends.slurm import commands as slurm
from shoestring.errors import BackendError, PermanentError, SpecError
from shoestring.kernel.types import SLURM_NODE
from shoestring.values import did_you_mean

if TYPE_CHECKING:
    from shoestring.backends.site import Site
    from shoestring.market.priced import PricedMarket
    from shoestring.world.protocol import Backend

_PARTITION = re.compile(r"[\w.-]+")


class SlurmPlace:
    forms = ("slurm", "slurm:PARTITION")
    machine = SLURM_NODE
    least_slice_s: float | None = 120.0
    """A lease that is still pending by then is denied, and resuming a node takes minutes."""
    in_caller = False

    def parse(self, address: str | None) -> None:
        if address is not None and not _PARTITION.fullmatch(address):
            raise SpecError(
                f"on='slurm:{address}' names no partition of Slurm",
                hint="write it as slurm:PARTITION, or slurm for the default one; `sinfo` lists them",
            )

    def check(self, address: str | None) -> Nodes:
        """The size of the partition; the slots of a node are its cores. Parts of it are known by their features; where
        no partition is named, also each partition by its name."""
        nodes = _nodes(address)
        labels = {feature: [node for node in nodes if feature in node.features] for feature in _features(nodes)}
        for node in slurm.nodes() if address is None else nodes:
            labels.setdefault(node.partition, []).append(node)
        return _size(nodes)._replace(labels={label: _size(labelled) for label, labelled in labels.items()})

    def survives_power_loss(self, address: str | None) -> bool:  # noqa: ARG002
        return True

    def open(self, address: str | None, site: Site, market: PricedMarket) -> Backend:
        from shoestring.backends.folder_post import FolderPost
        from shoestring.backends.hosted_machines import HostedMachines
        from shoestring.backends.hosted_worker import HostedWorkers
        from shoestring.backends.on_market import on_market
        from shoestring.backends.processes import ProcessBackend
        from shoestring.backends.slurm.gang_job import variables_of
        from shoestring.backends.slurm.jobs import SlurmJobs

        post = FolderPost(site)
        jobs = SlurmJobs(site.run_dir, post, address, _features(_nodes(address)), market.labels)
        # Slurm decides when a lease starts: it waits in the queue, or for its node to be resumed.
        machines = on_market(HostedMachines(jobs, post, site.clock), market, site, grants=False)
        return ProcessBackend(site, machines, HostedWorkers(site.run_dir, post, variables_of), market)


def _features(nodes: Iterable[slurm.SlurmNode]) -> frozenset[str]:
    return frozenset[str]().union(*(node.features for node in nodes))


def _size(nodes: Sequence[slurm.SlurmNode]) -> Nodes:
    return Nodes(len({node.name for node in nodes}), min(node.cpus for node in nodes))


def _nodes(partition: str | None) -> list[slurm.SlurmNode]:
    """The nodes of the partition. PermanentError or SpecError if Slurm does not answer, or has no such partition."""
    try:
        nodes = slurm.nodes()
    except BackendError as error:
        hint = "is slurmctld up (`scontrol ping`)? SLURM_CONF names the configuration of a cluster of your own"
        raise PermanentError(str(error), hint=error.hint or hint) from error
    names = sorted({node.partition for node in nodes})
    if partition is not None and partition not in names:
        raise SpecError(f"Slurm has no partition {partition!r}", hint=did_you_mean(partition, names))
    ours = [node for node in nodes if (node.is_default if partition is None else node.partition == partition)]
    if partition is None and not ours:
        raise SpecError("Slurm has no default partition", hint=f"name one: {', '.join(f'slurm:{n}' for n in names)}")
    return ours
