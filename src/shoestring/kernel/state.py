"""RunState: everything known about a run, as the fold of its journal. Holds indexes, so that no policy has to scan.

The state never reads a clock: `now` is the latest time any event carried.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import Any, get_args

from shoestring.kernel.decisions import Decision, Refused
from shoestring.kernel.policy import PriceFeed
from shoestring.kernel.records import (
    Account,
    GivenBack,
    Job,
    Latency,
    Lease,
    Phase,
    Segment,
    Setback,
    Settled,
    Timing,
)
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import EndReason, JobId, LeaseId, Listing, Offer, SegmentId


class RunState:
    """Written by `evolve` alone; read through `RunView`."""

    def __init__(self, feed: PriceFeed | None = None) -> None:
        self.feed = feed
        self.seq = 0
        self.now = -math.inf
        self.started_at = 0.0
        self.seed = 0
        self.spec: RunSpec | None = None
        self.phase: Phase = "running"
        self.ending = ""
        """Why the run winds down, pauses or parks, for people."""
        self.end_reason: EndReason | None = None
        """Why it winds down or is over, for programs; None while it is not."""
        self.decided: list[Decision] = []
        """The decisions of the current turn so far."""

        self.jobs: dict[JobId, Job] = {}
        self.waiting: dict[JobId, None] = {}
        self.draining: dict[SegmentId, None] = {}
        """Open segments whose job is paused, pruned or to run on other slots, and not yet halted."""
        self.by_status: Counter[str] = Counter()
        self.best: JobId | None = None
        self.settled: list[Settled] = []
        """Only ever appended to, so a reader of the first n need not read them again."""
        self.memos: dict[Hashable, Any] = {}
        """Caches of what policies derived from this state. Never journaled."""

        self.leases: dict[LeaseId, Lease] = {}
        """Open ones: requested or granted, and not yet billed."""
        self.with_free_slots: dict[LeaseId, None] = {}
        """Usable leases with a free slot."""
        self.idle: dict[LeaseId, None] = {}
        """Usable leases with nothing on them."""
        self.pending: dict[LeaseId, None] = {}
        """Leases requested and not yet granted."""
        self.on_notice: dict[LeaseId, None] = {}
        """Open leases that are on notice or being released."""
        self.segments: dict[SegmentId, Segment] = {}
        """Open ones."""
        self.timings: dict[Latency, Timing] = {kind: Timing() for kind in get_args(Latency)}
        self.leases_made = 0
        self.segments_made = 0

        self.listings: dict[Offer, Listing] = {}
        self.largest_slots = 1
        self.accounts: dict[Offer, Account] = {}
        self.spent_usd = 0.0
        self.timers: dict[str, float] = {}
        self.timer_whys: dict[str, str] = {}
        """What each timer is for, as a sentence."""
        self.background_tasks: dict[str, None] = {}
        self.refused: Refused | None = None
        """The latest refusal, and how many there were: policies may react, people see it in the report."""
        self.refusals = 0
        self.denials = 0
        self.denied_at: dict[Offer, float] = {}
        """When each offer was last denied."""
        self.setbacks: dict[Offer, Setback] = {}
        """Offers whose latest requests gave no machine to work on."""
        self.given_back = GivenBack()
        self.last_lease_at = -math.inf
        """When a lease was last requested, granted, denied or ended."""
        self.revocations = 0
        self.lost_s = 0.0
        self.lost_steps = 0

    @property
    def concluded(self) -> bool:
        return self.phase == "concluded"

    @property
    def unfinished(self) -> bool:
        """Did budget or deadline end it, with work left? A larger one resumes it then; a stop is final."""
        return bool(self.waiting) and self.end_reason != "cancelled"

    @property
    def active(self) -> bool:
        """Are there events to wait for? A pause is complete once every machine is released."""
        return self.phase in ("running", "winding_down") or (self.phase != "concluded" and bool(self.leases))

    @property
    def the_spec(self) -> RunSpec:
        if self.spec is None:
            raise RuntimeError("no RunStarted yet: the run has no spec")
        return self.spec

    @property
    def deadline_at(self) -> float:
        return self.started_at + self.the_spec.deadline_s

    @property
    def reserved_usd(self) -> float:
        """The most the open leases can still be billed, together."""
        return math.fsum([lease.reserve_usd for lease in self.leases.values()])  # a list: half the time of a generator
