"""Checks of `on="slurm"` and `on="slurm:PARTITION"` before a run starts, with one sentence per error."""

from __future__ import annotations

import re
from typing import NamedTuple

from shoestring.backends.slurm import commands as slurm
from shoestring.errors import BackendError, PermanentError, SpecError
from shoestring.values import did_you_mean

_PARTITION = re.compile(r"[\w.-]+")


class SlurmCluster(NamedTuple):
    nodes: int
    slots: int
    """Cores of its smallest node."""
    features: frozenset[str]


def slurm_partition(place: str) -> str | None:
    """The partition in "slurm:PARTITION"; None in "slurm", which is Slurm's default partition."""
    _, colon, partition = place.partition(":")
    if not colon:
        return None
    if not _PARTITION.fullmatch(partition):
        raise SpecError(
            f"on={place!r} names no partition of Slurm",
            hint="write it as slurm:PARTITION, or slurm for the default one; `sinfo` lists them",
        )
    return partition


def look_around(place: str) -> SlurmCluster:
    """Check that Slurm is installed and answers, and that the partition exists; its size."""
    wanted = slurm_partition(place)
    try:
        nodes = slurm.nodes()
    except BackendError as error:
        hint = "is slurmctld up (`scontrol ping`)? SLURM_CONF names the configuration of a cluster of your own"
        raise PermanentError(str(error), hint=error.hint or hint) from error
    names = sorted({node.partition for node in nodes})
    if wanted is not None and wanted not in names:
        raise SpecError(f"Slurm has no partition {wanted!r}", hint=did_you_mean(wanted, names))
    ours = [node for node in nodes if (node.is_default if wanted is None else node.partition == wanted)]
    if wanted is None and not ours:
        raise SpecError("Slurm has no default partition", hint=f"name one: {', '.join(f'slurm:{n}' for n in names)}")
    return SlurmCluster(
        len(ours), min(node.cpus for node in ours), frozenset().union(*(node.features for node in ours))
    )
