"""Allocations: machines rented together for programs that are launched once on all of them (`Code.launch`).

On a cluster they are one allocation, and what such a program starts its processes with (srun, mpirun) takes all of it.
So a gang runs on all machines of one allocation, and has it to itself. What is left of it after a loss is a smaller
allocation, for jobs of its size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Lease
from shoestring.kernel.types import LeaseId
from shoestring.kernel.view import RunView


def launched_once(state: RunView) -> bool:
    return state.spec.code.launch == "once"


def allocation_of(state: RunView, lease: Lease) -> tuple[LeaseId, ...]:
    """All leases of its allocation that have not ended; itself alone where it was rented alone."""
    if lease.gang is None:
        return (lease.id,)
    return tuple(other.id for other in state.leases.values() if other.gang == lease.gang)


def rest_of(lease: Lease) -> str:
    """In words, what an allocation has become by its losses; "" if it has lost none."""
    return f"the rest of an allocation that lost {' and '.join(lease.lost)}" if lease.lost else ""


def release_rests(state: RunView, sizes: Collection[int]) -> Iterator[d.Decision]:
    """Release what is left of an allocation if jobs wait and none of them runs on so few machines: `sizes` are theirs.
    At once, and before anything is rented: the next allocation may need these nodes."""
    for lease in [state.leases[lease_id] for lease_id in state.idle]:
        if lease.lost and len(allocation_of(state, lease)) not in sizes:
            why = f"{rest_of(lease)}: no waiting job runs on {_machines(len(allocation_of(state, lease)))}"
            yield d.ReleaseLease(lease=lease.id, why=why)


def _machines(count: int) -> str:
    return "one machine" if count == 1 else f"{count} machines"
