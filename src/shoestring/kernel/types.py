"""The nouns: ids, offers, listings of machines, checkpoints, and prices up to now.

Everything here is a frozen fact. What changes during a run (Job, Lease, Segment) is in `records.py`.
"""

from __future__ import annotations

from typing import Literal, NewType

import msgspec

JobId = NewType("JobId", str)
LeaseId = NewType("LeaseId", str)
SegmentId = NewType("SegmentId", str)
DecisionId = NewType("DecisionId", str)

Value = str | int | float | bool | None
Config = dict[str, Value]
Metrics = dict[str, float]
Tags = dict[str, Value]

Direction = Literal["minimize", "maximize"]
Denial = Literal["no_capacity", "quota", "price", "too_late"]
EndReason = Literal["completed", "cancelled", "out_of_budget", "deadline_reached", "failed"]
"""Why a run ended, for programs: every trial is done (or the search is), the user stopped it, no machine can be paid,
the deadline is reached, or nothing could run (no machine fits, machines were given back unused again and again, or
every trial failed)."""
EndCause = Literal["released", "revoked", "expired", "lost"]
SegmentCause = Literal["reached", "completed", "halted", "lost", "failed", "overran"]
BillingName = Literal["per_second", "per_hour", "aws_spot", "gcp_preemptible", "free"]


class Fact(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all immutable values of the kernel."""


ON_DEMAND_LEAST_S = 60.0
"""Clouds charge a started machine for a minute at least, on demand too."""
LOCAL = "local"
"""The provider of machines that are ours: free of charge, and never preempted."""
THIS_MACHINE, RAY_NODE, SLURM_NODE = "this-machine", "ray-node", "slurm-node"
"""What it provides: the machine we are on, or the nodes of a cluster."""
_OURS = {THIS_MACHINE: "this machine", RAY_NODE: "a Ray node", SLURM_NODE: "a Slurm node"}


class Offer(Fact, frozen=True, kw_only=True, order=True):
    """What can be rented: one machine type in one zone of one provider, spot or on-demand."""

    provider: str
    zone: str
    machine: str
    spot: bool

    def __str__(self) -> str:
        if self.provider == LOCAL:
            return _OURS.get(self.machine, self.machine)
        return f"{self.machine} {'spot' if self.spot else 'on-demand'} in {self.zone}"


class Listing(Fact, frozen=True, kw_only=True):
    """An offer with the facts that decisions are based on. A run's listings are fixed at its start, in its spec."""

    offer: Offer
    vcpus: float
    memory_gb: float
    gpus: int = 0
    slots: int = 1
    """How many units of parallelism the machine has; a job takes one or more of them."""
    on_demand_usd_per_hour: float
    """The on-demand price of the same machine: also the ceiling of a spot price without a maximum."""
    billing: BillingName = "per_second"
    notice_s: float = 120.0
    max_life_s: float | None = None
    """Age at which the provider preempts the machine in any case (Google's legacy preemptible VMs: 24 h)."""

    def ceiling_usd_per_hour(self, max_usd_per_hour: float | None) -> float:
        """The most an hour of this lease can ever be charged at."""
        if max_usd_per_hour is None or not self.offer.spot:
            return self.on_demand_usd_per_hour
        return max_usd_per_hour


class CheckpointRef(Fact, frozen=True, kw_only=True):
    """Where a checkpoint is, and how to verify that it is complete."""

    job: JobId
    step: int
    name: str
    """Unique within the store; relative, never a path of this machine."""
    size_bytes: int
    digest: str


class PriceHistory(Fact, frozen=True, kw_only=True):
    """Prices of one offer up to a moment: all that a policy may know. `times` ascend; a price is valid until the
    next."""

    offer: Offer
    times: tuple[float, ...]
    usd_per_hour: tuple[float, ...]
    until: float

    def __post_init__(self) -> None:
        if self.times and self.times[-1] > self.until:
            raise ValueError(f"a price history until {self.until} holds a price of {self.times[-1]}")
