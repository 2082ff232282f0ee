"""What happened. Past tense, frozen, and each with a key that is the same however often it is delivered.

The key is derived from the content, never random: a world that reads its sources again after a crash produces the
same keys without having stored anything.
"""

from __future__ import annotations

from typing import Any, Literal

from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import (
    CheckpointRef,
    Denial,
    EndCause,
    Fact,
    JobId,
    LeaseId,
    Metrics,
    SegmentCause,
    SegmentId,
)

Wish = Literal["pause", "resume", "stop", "amend"]


class Event(Fact, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events. `at` is UTC seconds: when it happened, not when it was received."""

    at: float

    @property
    def key(self) -> str:
        """Same event, same key."""
        raise NotImplementedError


class RunStarted(Event, frozen=True, kw_only=True, tag="RunStarted/1"):
    spec: RunSpec
    seed: int
    wall_at: float = 0.0
    """Real time at the start; with a compressed market clock, the origin of `at`."""

    @property
    def key(self) -> str:
        return "started"


class LeaseGranted(Event, frozen=True, kw_only=True, tag="LeaseGranted/1", omit_defaults=True):
    lease: LeaseId
    billed_from: float | None = None
    """Since when it has cost money, if that was before it could be used: a node that had to be started."""

    @property
    def key(self) -> str:
        return f"granted:{self.lease}"


class LeaseDenied(Event, frozen=True, kw_only=True, tag="LeaseDenied/1", omit_defaults=True):
    lease: LeaseId
    reason: Denial
    detail: str = ""
    """What its source says, where it says more than the reason."""

    @property
    def key(self) -> str:
        return f"denied:{self.lease}"


class RevocationNoticed(Event, frozen=True, kw_only=True, tag="RevocationNoticed/1"):
    lease: LeaseId
    gone_at: float

    @property
    def key(self) -> str:
        return f"notice:{self.lease}"


class LeaseEnded(Event, frozen=True, kw_only=True, tag="LeaseEnded/1"):
    """The machine is gone and billed: `charged_usd` is final, after `refunded_usd` was subtracted."""

    lease: LeaseId
    cause: EndCause
    charged_usd: float
    refunded_usd: float = 0.0

    @property
    def key(self) -> str:
        return f"ended:{self.lease}"


class SegmentStarted(Event, frozen=True, kw_only=True, tag="SegmentStarted/1"):
    """User code is running: the machine is up, the checkpoint restored."""

    segment: SegmentId

    @property
    def key(self) -> str:
        return f"running:{self.segment}"


class JobReported(Event, frozen=True, kw_only=True, tag="JobReported/1"):
    segment: SegmentId
    job: JobId
    step: int
    metrics: Metrics
    """Values that are not finite are null in JSON and named in the turn's `not_finite`; see `codec`."""

    @property
    def key(self) -> str:
        return f"report:{self.segment}:{self.step}"


class SnapshotReported(Event, frozen=True, kw_only=True, tag="SnapshotReported/1"):
    """A trial reported its metrics on a smaller data fraction than its own, as it passed that during training.

    One for each fraction in a segment: code that trains it again after a restore reports it again.
    """

    segment: SegmentId
    job: JobId
    step: int
    fraction: float
    metrics: Metrics

    @property
    def key(self) -> str:
        return f"snapshot:{self.segment}:{self.fraction!r}"


class CheckpointSaved(Event, frozen=True, kw_only=True, tag="CheckpointSaved/1"):
    segment: SegmentId
    job: JobId
    step: int
    ref: CheckpointRef
    took_s: float

    @property
    def key(self) -> str:
        return f"saved:{self.ref.name}"


class CheckpointLost(Event, frozen=True, kw_only=True, tag="CheckpointLost/1"):
    """A checkpoint turned out to be missing or damaged when it was needed: the job resumes from the one before."""

    job: JobId
    ref: CheckpointRef
    detail: str

    @property
    def key(self) -> str:
        return f"unsaved:{self.ref.name}"


class SegmentEnded(Event, frozen=True, kw_only=True, tag="SegmentEnded/1"):
    segment: SegmentId
    step: int
    """The last step trained, saved or not."""
    cause: SegmentCause
    detail: str = ""
    """For people: the last line of the error, the exit code."""

    @property
    def key(self) -> str:
        return f"segment-ended:{self.segment}"


class TimerFired(Event, frozen=True, kw_only=True, tag="TimerFired/1"):
    name: str

    @property
    def key(self) -> str:
        return f"timer:{self.name}@{self.at!r}"


class ThoughtReady(Event, frozen=True, kw_only=True, tag="ThoughtReady/1"):
    name: str
    answer: Any
    """Plain JSON data."""

    @property
    def key(self) -> str:
        return f"thought:{self.name}"


class UserAsked(Event, frozen=True, kw_only=True, tag="UserAsked/1"):
    wish: Wish
    budget_usd: float | None = None
    deadline_s: float | None = None
    """New totals, with "amend"."""

    @property
    def key(self) -> str:
        return f"asked:{self.wish}@{self.at!r}"


class PolicyBroke(Event, frozen=True, kw_only=True, tag="PolicyBroke/1"):
    """A policy raised: recorded so that the reason is on file, and answered by the fixed `park` rule alone."""

    detail: str

    @property
    def key(self) -> str:
        return f"broke@{self.at!r}"


AnyEvent = (
    RunStarted
    | LeaseGranted
    | LeaseDenied
    | RevocationNoticed
    | LeaseEnded
    | SegmentStarted
    | JobReported
    | SnapshotReported
    | CheckpointSaved
    | CheckpointLost
    | SegmentEnded
    | TimerFired
    | ThoughtReady
    | UserAsked
    | PolicyBroke
)
