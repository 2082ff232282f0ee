"""What changes during a run: jobs, leases, segments, and the accounts. Only `evolve` writes to them.

They are mutable for speed (a report changes one job, and reports are most of the traffic); policies get the same
objects to read, and `shoestring.testing.PolicySuite` fails a policy that writes.
"""

from __future__ import annotations

import math
from array import array
from typing import Literal

import msgspec

from shoestring.kernel.types import CheckpointRef, Config, Denial, JobId, LeaseId, Metrics, Offer, SegmentId, Tags

JobStatus = Literal["paused", "waiting", "running", "finished", "pruned", "failed"]
Phase = Literal["running", "pausing", "parking", "winding_down", "concluded"]


Where = tuple[str, int]
"""A machine type and how many of its slots: what the speed of a trial depends on. Zones and prices have no effect."""
Latency = Literal["provision", "start", "restore", "save"]
"""provision: from the request of a machine to its grant · start: until a trial's code runs · restore: the same, from a
checkpoint · save: of a checkpoint."""


class Timing(msgspec.Struct):
    """All measurements of one latency so far."""

    count: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        self.longest_s = max(self.longest_s, seconds)


class Pace(msgspec.Struct):
    """Time spent training and nothing else: start-up, restores and saves are not in it."""

    steps: float = 0
    """Those of a finished job of a bag are scaled so that all of it is `max_steps`: see `RunView.paces`."""
    seconds: float = 0.0


class MachineTime(msgspec.Struct):
    """How the time of machines was used, in seconds of a whole machine: a trial on one of four slots uses a quarter.
    What is left of the time that machines were held was idle."""

    trained_s: float = 0.0
    starting_s: float = 0.0
    """Until a trial's code ran."""
    restoring_s: float = 0.0
    """The same, from a checkpoint."""
    saving_s: float = 0.0
    redone_s: float = 0.0
    """Trained and not saved when the segment ended, unfinished steps included: trained again, or lost for good."""

    @property
    def used_s(self) -> float:
        return self.trained_s + self.starting_s + self.restoring_s + self.saving_s + self.redone_s

    def add(self, other: MachineTime, share: float = 1.0) -> None:
        self.trained_s += share * other.trained_s
        self.starting_s += share * other.starting_s
        self.restoring_s += share * other.restoring_s
        self.saving_s += share * other.saving_s
        self.redone_s += share * other.redone_s


class Save(msgspec.Struct, frozen=True, gc=False):
    """Size of a checkpoint, and the time to write it."""

    size_bytes: int
    took_s: float


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """What a trial reported on a smaller data fraction than its own, as it passed that during training."""

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
    """The data fraction it trains on."""
    status: JobStatus = "paused"
    """paused: added, not to run now · waiting: to run, without a machine · running · finished: all its steps done, or
    its code ended; in a bag only that · pruned: stopped early by the search · failed: its own code failed too often."""
    until_step: int = 0
    slots: int = 1
    offer: Offer | None = None
    """Pinned by the search; None leaves the choice to placement."""
    step: int = 0
    """The last step whose state still exists, in a checkpoint or on a machine."""
    checkpoints: list[CheckpointRef] = []
    """Complete and in the store, oldest first."""
    last_save: Save | None = None
    """Known also after that checkpoint was deleted."""
    saves_every_s: float | None = None
    """The interval at which its latest segment is to save by itself."""
    steps: array[int] = msgspec.field(default_factory=lambda: array("q"))
    values: array[float] = msgspec.field(default_factory=lambda: array("d"))
    """The learning curve of the run's metric: `values[i]` was reported at `steps[i]`."""
    latest: Metrics = {}
    best: float = float("nan")
    paces: dict[Where, Pace] = {}
    """How fast it went. What its open segment adds is in the segment: `RunView.paces` has both."""
    snapshots: dict[float, Snapshot] = {}
    """By fraction, each smaller than its own: observations of other sizes, not points of its learning curve."""
    failures: int = 0
    segment: SegmentId | None = None
    lost_steps: int = 0
    revocations: int = 0
    detail: str = ""
    """The last error, as a sentence."""
    rented: Offer | None = None
    """What its latest segment was started on."""
    seconds: float | None = None
    usd: float | None = None
    """Training time and its cost, as judged when it last settled."""
    feasible: bool | None = None
    """Does it satisfy all constraints? None: not judged, or there are none."""

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
        return self.status in ("finished", "pruned", "failed")

    @property
    def seconds_per_step(self) -> float | None:
        """The mean over all its training, lost work included; None if unknown."""
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
    billed_from: float | None = None
    """Earlier than the grant if it cost money before it could be used."""
    gone_at: float | None = None
    """Set by a notice: when the machine will be preempted."""
    releasing: bool = False
    segments: list[SegmentId] = []
    idle_since: float | None = None
    ran: bool = False
    """Has user code run on it?"""
    timers: list[str] = []
    """Names of timers that are void once this lease has ended."""
    time: MachineTime = msgspec.field(default_factory=MachineTime)
    """Of segments that have ended."""
    gang: LeaseId | None = None
    """The first of the leases that were rented together with this one, as one allocation."""
    lost: list[LeaseId] = []
    """Leases of that allocation whose machines were preempted or lost."""

    @property
    def usable(self) -> bool:
        """May work start on it?"""
        return self.granted_at is not None and self.gone_at is None and not self.releasing


class Segment(msgspec.Struct, kw_only=True):
    """One uninterrupted attempt of one job on one or more leases."""

    id: SegmentId
    job: JobId
    leases: tuple[LeaseId, ...]
    slots: int
    """On all leases together."""
    slots_on: tuple[int, ...]
    """On each of them."""
    machine: str
    """The machine type of the first of them."""
    until_step: int
    started_at: float
    running_since: float | None = None
    saved_at: float | None = None
    halting: bool = False
    first_step: int = 0
    """The step it started from."""
    resumed: bool = False
    """From a checkpoint, be it of step 0: a program may save and never say how far it is."""
    step: int = 0
    """The last step it reported, or started from."""
    step_at: float = 0.0
    """When it reported that."""
    trained_s: float = 0.0
    """Training time up to its latest save."""
    trains_from: float = float("inf")
    """Training time counts from here: its start, moved later by the duration of every save."""
    saving_s: float = 0.0
    """Duration of all its saves."""

    @property
    def pace(self) -> Pace:
        """Steps and seconds so far. Computed on demand: reports are many, and few of them need it."""
        if self.step == self.first_step or self.trains_from == float("inf"):
            return Pace()
        return Pace(self.step - self.first_step, max(self.trained_s, self.step_at - self.trains_from))

    def unsaved_s(self, now: float) -> float:
        """Seconds of training that would be lost if the machine were preempted now."""
        if self.running_since is None:
            return 0.0
        return max(0.0, now - max(self.running_since, self.saved_at or 0.0))

    def time(self, now: float, *, lost: bool) -> MachineTime:
        """How its time was used, by now. `lost`: it ends now, and what is not saved is lost."""
        running_since = now if self.running_since is None else self.running_since
        start_s, run_s = max(0.0, running_since - self.started_at), max(0.0, now - running_since)
        redone_s = min(run_s, self.unsaved_s(now)) if lost else 0.0
        saving_s = min(run_s - redone_s, self.saving_s)
        return MachineTime(
            trained_s=run_s - redone_s - saving_s,
            starting_s=0.0 if self.first_step else start_s,
            restoring_s=start_s if self.first_step else 0.0,
            saving_s=saving_s,
            redone_s=redone_s,
        )


class Settled(msgspec.Struct, frozen=True, gc=False):
    """A job that was to run settled: it reached its target step, was pruned, finished, failed or was paused."""

    job: JobId
    status: JobStatus
    step: int
    until_step: int
    """Its target step, whatever it gets later."""
    value: float | None
    """The last reported value of the metric; None if there is none."""


class Setback(msgspec.Struct, kw_only=True):
    """An offer that gave no machine to work on, in one round of requests or in several, one after the other.

    A round is all that was requested before the first of it was answered: ten denials at once are one setback.
    """

    why: Denial | Literal["preempted"]
    """preempted: granted, and gone before user code ran on it."""
    at: float
    """The latest."""
    round_at: float
    """The first of the latest round: what was requested later belongs to the next."""
    rounds: int = 1


class GivenBack(msgspec.Struct, kw_only=True):
    """Machines that were up, ran no user code and were released, or ended, while trials waited: since one last ran."""

    machines: int = 0
    rounds: int = 0
    """Rounds of requests, as of a `Setback`."""
    round_at: float = -math.inf


class Account(msgspec.Struct, kw_only=True):
    """What one offer has cost so far: finished leases only."""

    leases: int = 0
    unused: int = 0
    """Of those granted, how many ended before user code ran on them."""
    seconds: float = 0.0
    charged_usd: float = 0.0
    refunded_usd: float = 0.0
    on_demand_usd: float = 0.0
    """What the same seconds would have cost on demand."""
    revoked: int = 0
    at_limit: int = 0
    """Of those, how many had reached the provider's limit on lifetimes: not a risk, but known beforehand."""
    lifetimes_s: list[float] = msgspec.field(default_factory=list)
    """Of each lease, from its grant to its end, whatever ended it."""
    time: MachineTime = msgspec.field(default_factory=MachineTime)
    """How `seconds` were used; the rest was idle."""
