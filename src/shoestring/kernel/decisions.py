"""What is to be done. Imperative, frozen, each with its reason as a sentence.

`id` is stamped by `step()` as "entry.index"; it goes to the provider as its idempotency token and onto the machine
as a tag, so a decision carried out twice is carried out once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoestring.kernel.types import (
    CheckpointRef,
    Config,
    DecisionId,
    EndReason,
    Fact,
    JobId,
    LeaseId,
    Offer,
    SegmentId,
    Tags,
)


class Decision(Fact, frozen=True, kw_only=True, tag_field="type"):
    """Base of all decisions. `why` is shown to people and never empty."""

    why: str
    id: DecisionId = DecisionId("")


class AddJob(Decision, frozen=True, kw_only=True, tag="AddJob/1"):
    """Add a configuration as a job; nothing runs yet."""

    job: JobId
    config: Config
    tags: Tags = {}
    """What the search must remember about it: bracket, rung."""
    fraction: float = 1.0
    """The data fraction it trains on; it never changes."""


class TagJob(Decision, frozen=True, kw_only=True, tag="TagJob/1"):
    """Change what the search remembers about a job; keys not named stay."""

    job: JobId
    tags: Tags


class RunJob(Decision, frozen=True, kw_only=True, tag="RunJob/1"):
    """Have a job trained up to a step. Placement finds the machine, unless the search pins the offer.

    A job that runs on another number of slots saves, stops at its next step and resumes there on its new slots.
    """

    job: JobId
    until_step: int
    slots: int = 1
    """A multiple of the spec's `slots`, which one worker takes: more than that is a gang of workers."""
    offer: Offer | None = None


class PauseJob(Decision, frozen=True, kw_only=True, tag="PauseJob/1"):
    job: JobId


class DropJob(Decision, frozen=True, kw_only=True, tag="DropJob/1"):
    job: JobId


class JudgeJob(Decision, frozen=True, kw_only=True, tag="JudgeJob/1"):
    """Record the training time and cost of a settled job, and whether it satisfies the constraints of the run."""

    job: JobId
    seconds: float | None = None
    """Of training: no start-up, no restores, no saves, no lost work. None if unknown."""
    usd: float | None = None
    """What these seconds cost on its machines, at their prices now."""
    feasible: bool | None = None
    """None: not known, for there are no constraints or it trained on a data fraction only."""


class RequestLease(Decision, frozen=True, kw_only=True, tag="RequestLease/1"):
    """Rent a machine, prepaid: it ends by itself at `end_by`, with or without a controller.

    The guard cuts `end_by` down to what budget and deadline allow, and sets `reserve_usd` to the most it can cost.
    """

    lease: LeaseId
    offer: Offer
    max_usd_per_hour: float | None = None
    end_by: float
    reserve_usd: float = 0.0
    gang: LeaseId | msgspec.UnsetType = msgspec.UNSET
    """Rented together for programs that are launched once on all of these machines (`Code.launch`), as one allocation:
    the first lease of it. UNSET, and not written, in all other requests."""


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
    """A segment still running after this long is hung: the world kills it (SegmentEnded "overran")."""
    fraction: float = 1.0
    """The data fraction to train on."""
    fractions: tuple[float, ...] = ()
    """Smaller ones, ascending, at which it may report (SnapshotReported): those not reported yet."""
    seed: int = 0
    """The run's: it determines which samples make up a fraction, the same in every trial."""

    @property
    def slots_on(self) -> tuple[int, ...]:
        """Slots on each lease, in their order."""
        return self.shares or (self.slots,)


class PlanSaves(Decision, frozen=True, kw_only=True, tag="PlanSaves/1"):
    """Have the worker save by itself at this interval, with or without a controller."""

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
    """Run a slow, pure function as a background task; its result comes back as ThoughtReady(name)."""

    name: str
    question: str
    """Name of a registered pure function (`kernel.background`)."""
    given: Any
    """Plain JSON data, the function's only argument."""
    modelled_s: float = 0.0
    """How long it takes in virtual time: a simulation never charges measured time."""


class WindDown(Decision, frozen=True, kw_only=True, tag="WindDown/2"):
    """Start nothing more; save and halt what runs, release the machines, then conclude."""

    reason: EndReason
    """The status of the run from here on, for programs; `why` is for people."""


class WindDownV1(Decision, frozen=True, kw_only=True, tag="WindDown/1"):
    """As journals of version 0.1 record it, without a reason. Read, never written: `fold.old_endings` finds the
    reason."""


class Refused(Decision, frozen=True, kw_only=True, tag="Refused/1"):
    """Put by the guard in the place of a proposed decision that budget or deadline forbid."""

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
    | WindDownV1
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
