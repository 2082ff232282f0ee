"""What changes as a run goes on: jobs, leases, segments, and the accounts. Only `evolve` writes to them.

They are mutable for speed (a report changes one job, and reports are most of the traffic); policies get the same
objects to read, and `shoestring.testing.PolicySuite` fails a policy that writes.
"""

from __future__ import annotations

import math
from array import array
from typing import Literal

import msgspec

from shoestring.kernel.types import CheckpointRef, Config, JobId, LeaseId, Metrics, Offer, SegmentId, Tags

JobStatus = Literal["paused", "waiting", "running", "finished", "dropped", "failed"]
Phase = Literal["running", "pausing", "parking", "winding_down", "concluded"]


class Pace(msgspec.Struct):
    """Time spent training and nothing else: start-up, restoring and saving are not in it."""

    steps: int = 0
    seconds: float = 0.0


class Save(msgspec.Struct, frozen=True, gc=False):
    """What writing a checkpoint took."""

    size_bytes: int
    took_s: float


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """What a trial told on its way, of the smaller part of the data that it had trained on by then."""

    step: int
    """The last step finished, or the one under way."""
    metrics: Metrics
    seconds: float
    """Training time up to that moment; start-up, restores, saves and lost work are not in it."""


class Job(msgspec.Struct, kw_only=True):
    """One configuration to be run; progresses in steps, can be saved and continued."""

    id: JobId
    number: int
    config: Config
    tags: Tags
    fraction: float = 1.0
    """The share of the training data it uses."""
    status: JobStatus = "paused"
    """paused: on the books, not wanted now · waiting: wanted, without a machine · running · finished: all its steps
    done, or its code said so · dropped: stopped early by the search · failed: its own code failed too often."""
    until_step: int = 0
    slots: int = 1
    offer: Offer | None = None
    """Pinned by the search; None leaves the choice to placement."""
    step: int = 0
    """The last step whose state still exists somewhere."""
    checkpoints: list[CheckpointRef] = []
    """Whole and in the store, oldest first."""
    last_save: Save | None = None
    """Known also when that checkpoint is gone."""
    saves_every_s: float | None = None
    """How often its latest segment was told to save by itself."""
    steps: array[int] = msgspec.field(default_factory=lambda: array("q"))
    values: array[float] = msgspec.field(default_factory=lambda: array("d"))
    """The learning curve of the run's metric: `values[i]` was reported at `steps[i]`."""
    latest: Metrics = {}
    best: float = float("nan")
    paces: dict[tuple[str, int], Pace] = {}
    """How fast it went, by machine type and slots; what its open segment adds is in the segment."""
    snapshots: dict[float, Snapshot] = {}
    """By fraction, each smaller than its own: observations of other sizes, no points of its learning curve."""
    failures: int = 0
    segment: SegmentId | None = None
    lost_steps: int = 0
    revocations: int = 0
    detail: str = ""
    """The last error, in words."""
    rented: Offer | None = None
    """What its latest segment was started on."""
    seconds: float | None = None
    usd: float | None = None
    """Of training, and what it costs, as judged when it last came to rest."""
    feasible: bool | None = None
    """Does it keep all limits? None: not judged, or there is nothing to judge by."""

    @property
    def checkpoint(self) -> CheckpointRef | None:
        return self.checkpoints[-1] if self.checkpoints else None

    @property
    def saved_step(self) -> int:
        return self.checkpoints[-1].step if self.checkpoints else 0

    @property
    def wanted(self) -> bool:
        return self.status in ("waiting", "running")

    @property
    def over(self) -> bool:
        return self.status in ("finished", "dropped", "failed")

    @property
    def seconds_per_step(self) -> float | None:
        """The mean over all that was ever trained of it, lost work too; None if nothing is known."""
        steps = sum(pace.steps for pace in self.paces.values())
        return math.fsum(pace.seconds for pace in self.paces.values()) / steps if steps else None


class Lease(msgspec.Struct, kw_only=True):
    """A machine we hold and pay for, from the request to the bill."""

    id: LeaseId
    offer: Offer
    slots: int
    free_slots: int
    requested_at: float
    end_by: float
    max_usd_per_hour: float | None
    reserve_usd: float
    granted_at: float | None = None
    gone_at: float | None = None
    """Set by a notice: the machine will be taken then."""
    releasing: bool = False
    segments: list[SegmentId] = []
    idle_since: float | None = None
    timers: list[str] = []
    """Names of timers that are void once this lease has ended."""

    @property
    def usable(self) -> bool:
        """May work be put on it?"""
        return self.granted_at is not None and self.gone_at is None and not self.releasing


class Segment(msgspec.Struct, kw_only=True):
    """One uninterrupted stretch of one job on one or more leases."""

    id: SegmentId
    job: JobId
    leases: tuple[LeaseId, ...]
    slots: int
    """On all leases together."""
    slots_on: tuple[int, ...]
    """On each of them."""
    machine: str
    """The type of the first of them."""
    until_step: int
    started_at: float
    running_since: float | None = None
    saved_at: float | None = None
    halting: bool = False
    first_step: int = 0
    """What it began from."""
    step: int = 0
    """The last step it reported, or began from."""
    step_at: float = 0.0
    """When it reported that."""
    trained_s: float = 0.0
    """Training time up to its latest save."""
    trains_from: float = float("inf")
    """Training time counts from here: its start, moved on by every save by as long as that took."""

    @property
    def pace(self) -> Pace:
        """How fast it goes. Worked out when asked: every report passes here, and few are asked about."""
        if self.step == self.first_step or self.trains_from == float("inf"):
            return Pace()
        return Pace(self.step - self.first_step, max(self.trained_s, self.step_at - self.trains_from))

    def unsaved_s(self, now: float) -> float:
        """Seconds of training that would be lost if the machine went now."""
        if self.running_since is None:
            return 0.0
        return max(0.0, now - max(self.running_since, self.saved_at or 0.0))


class Settled(msgspec.Struct, frozen=True, gc=False):
    """A job that was wanted came to rest: it stands at the step it was to reach, or is over."""

    job: JobId
    status: JobStatus
    step: int
    until_step: int
    """What it was to reach, whatever it is asked to do later."""
    value: float | None
    """The metric as last reported; None if it never was."""


class Account(msgspec.Struct, kw_only=True):
    """What one offer has cost so far: finished leases only."""

    leases: int = 0
    seconds: float = 0.0
    charged_usd: float = 0.0
    refunded_usd: float = 0.0
    on_demand_usd: float = 0.0
    """What the same seconds would have cost on demand."""
    revoked: int = 0
    at_limit: int = 0
    """Of those, how many had come to the provider's limit on lifetimes: no bad luck, and known beforehand."""
