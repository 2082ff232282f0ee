"""What we want done. Imperative, frozen, each with the reason in words.

`id` is stamped by `step()` as "entry.index"; it goes to the provider as its idempotency token and onto the machine
as a tag, so a decision carried out twice is carried out once.
"""

from __future__ import annotations

from typing import Any

from shoestring.kernel.types import CheckpointRef, Config, DecisionId, Fact, JobId, LeaseId, Offer, SegmentId, Tags


class Decision(Fact, frozen=True, kw_only=True, tag_field="type"):
    """Base of all decisions. `why` is shown to people and never empty."""

    why: str
    id: DecisionId = DecisionId("")


class AddJob(Decision, frozen=True, kw_only=True, tag="AddJob/1"):
    """Put a configuration on the books; nothing runs yet."""

    job: JobId
    config: Config
    tags: Tags = {}
    """What the search must remember of it: bracket, rung."""
    fraction: float = 1.0
    """The share of the training data it uses, all its life."""


class TagJob(Decision, frozen=True, kw_only=True, tag="TagJob/1"):
    """Change what the search remembers of a job; keys not named stay."""

    job: JobId
    tags: Tags


class RunJob(Decision, frozen=True, kw_only=True, tag="RunJob/1"):
    """Have a job trained up to a step. Placement finds the machine, unless the search pins the offer.

    A job that runs on other slots than these saves, stops at its next step and goes on from there on its new slots.
    """

    job: JobId
    until_step: int
    slots: int = 1
    """A multiple of the spec's, which is what one worker takes: more than that is a gang of workers."""
    offer: Offer | None = None


class PauseJob(Decision, frozen=True, kw_only=True, tag="PauseJob/1"):
    job: JobId


class DropJob(Decision, frozen=True, kw_only=True, tag="DropJob/1"):
    job: JobId


class JudgeJob(Decision, frozen=True, kw_only=True, tag="JudgeJob/1"):
    """Put on record what a job at rest has taken, and whether it keeps the limits of the run."""

    job: JobId
    seconds: float | None = None
    """Of training: no start-up, no restores, no saves, no lost work. None if nothing is known of it."""
    usd: float | None = None
    """What these seconds cost on its machines, at their prices now."""
    feasible: bool | None = None
    """None: it says nothing about limits, for there are none or it saw only a part of the data."""


class RequestLease(Decision, frozen=True, kw_only=True, tag="RequestLease/1"):
    """Rent a machine, prepaid: it ends by itself at `end_by`, whoever is alive then.

    The guard fills `end_by` down to what budget and deadline allow and `reserve_usd` with the most the lease can cost.
    """

    lease: LeaseId
    offer: Offer
    max_usd_per_hour: float | None = None
    end_by: float
    reserve_usd: float = 0.0


class ExtendLease(Decision, frozen=True, kw_only=True, tag="ExtendLease/1"):
    """Prepay a lease for longer. A refused extension changes nothing: the lease ends when it was to end."""

    lease: LeaseId
    end_by: float
    reserve_usd: float = 0.0


class StartSegment(Decision, frozen=True, kw_only=True, tag="StartSegment/1"):
    """Run a job on leases, from a checkpoint, up to a step."""

    segment: SegmentId
    job: JobId
    leases: tuple[LeaseId, ...]
    config: Config
    until_step: int
    slots: int = 1
    """On all leases together."""
    shares: tuple[int, ...] = ()
    """Slots on each lease, for a gang that spans several; empty where there is only one."""
    resume_from: CheckpointRef | None = None
    time_limit_s: float | None = None
    """A segment still running after so long is hung: the world kills it (SegmentEnded "overran")."""
    fraction: float = 1.0
    """The share of the training data to use."""
    fractions: tuple[float, ...] = ()
    """Smaller ones, ascending, of which it may tell on its way (SnapshotReported): those not heard of yet."""
    seed: int = 0
    """The run's: which samples make up a fraction follows from it, the same in every trial."""

    @property
    def slots_on(self) -> tuple[int, ...]:
        """Slots on each lease, in their order."""
        return self.shares or (self.slots,)


class PlanSaves(Decision, frozen=True, kw_only=True, tag="PlanSaves/1"):
    """Have the worker save by itself every so often, whether or not anybody listens."""

    segment: SegmentId
    every_s: float


class SaveCheckpoint(Decision, frozen=True, kw_only=True, tag="SaveCheckpoint/1"):
    segment: SegmentId


class HaltSegment(Decision, frozen=True, kw_only=True, tag="HaltSegment/1"):
    """Save and stop. What has not stopped after `grace_s` is killed."""

    segment: SegmentId
    grace_s: float


class ReleaseLease(Decision, frozen=True, kw_only=True, tag="ReleaseLease/1"):
    lease: LeaseId


class DropCheckpoint(Decision, frozen=True, kw_only=True, tag="DropCheckpoint/1"):
    ref: CheckpointRef


class WakeAt(Decision, frozen=True, kw_only=True, tag="WakeAt/1"):
    """Deliver TimerFired(name) at that time. Setting a name again moves it."""

    name: str
    at: float
    about: LeaseId | None = None
    """The timer is void once this lease has ended."""


class Think(Decision, frozen=True, kw_only=True, tag="Think/1"):
    """Answer a slow, pure question elsewhere; the answer comes back as ThoughtReady(name)."""

    name: str
    question: str
    """Name of a registered pure function (`kernel.thinking`)."""
    given: Any
    """Plain JSON data, the function's only argument."""
    modelled_s: float = 0.0
    """How long it takes in virtual time: a simulation never charges measured time."""


class WindDown(Decision, frozen=True, kw_only=True, tag="WindDown/1"):
    """Start nothing more; save and halt what runs, give machines back, then conclude."""


class Refused(Decision, frozen=True, kw_only=True, tag="Refused/1"):
    """Put by the guard in the place of a wish that budget or deadline forbid."""

    wish: RequestLease | ExtendLease | StartSegment


class Conclude(Decision, frozen=True, kw_only=True, tag="Conclude/1"):
    best: JobId | None


AnyDecision = (
    AddJob
    | TagJob
    | RunJob
    | PauseJob
    | DropJob
    | JudgeJob
    | RequestLease
    | ExtendLease
    | StartSegment
    | PlanSaves
    | SaveCheckpoint
    | HaltSegment
    | ReleaseLease
    | DropCheckpoint
    | WakeAt
    | Think
    | WindDown
    | Refused
    | Conclude
)

ACTS_ON_THE_WORLD = frozenset(
    {
        RequestLease,
        ExtendLease,
        StartSegment,
        PlanSaves,
        SaveCheckpoint,
        HaltSegment,
        ReleaseLease,
        DropCheckpoint,
        Think,
        Conclude,
    }
)
"""Decisions that must be durable before they are carried out. The others change only the fold (a timer is re-armed
from the journal after a crash), so their entries may wait for the next group commit."""
