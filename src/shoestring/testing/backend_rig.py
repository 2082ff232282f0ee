"""What backends are tested with: a scripted provider, and a record of every event of the backend."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from shoestring.backends.site import Site
from shoestring.kernel.decisions import RequestLease, StartSegment
from shoestring.kernel.events import Event, JobReported, LeaseGranted, SegmentEnded
from shoestring.kernel.spec import Code
from shoestring.kernel.types import (
    CheckpointRef,
    Denial,
    EndCause,
    Fact,
    JobId,
    LeaseId,
    Metrics,
    Offer,
    SegmentId,
    Value,
)
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing import user_code
from shoestring.testing.slowness import PATIENCE_S
from shoestring.world.live.clock import RunClock
from shoestring.world.protocol import Backend

OFFER = Offer(provider="test", zone="here", machine="small", spot=True)
SPEEDUP = 100.0
"""On a computer with nothing else to do; elsewhere the clock is as much slower as everything is."""
START = 1_000_000.0
L0, L1, J0 = LeaseId("l0"), LeaseId("l1"), JobId("j0")
S0, S1, S2, S3 = SegmentId("s0"), SegmentId("s1"), SegmentId("s2"), SegmentId("s3")
E = TypeVar("E", bound=Event)


class ScriptedGrant(Fact, frozen=True, kw_only=True):
    at: float


class ScriptedBill(Fact, frozen=True, kw_only=True):
    charged_usd: float
    refunded_usd: float = 0.0


@dataclass
class ScriptedProvider:
    """A provider that follows the test: a dollar a second, granted at once."""

    denied: dict[str, Denial] = field(default_factory=dict)
    revoked: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Lease -> seconds from its grant to the notice, and to its end."""
    denial_s: float = 0.0

    def grant(self, request: RequestLease, now: float) -> ScriptedGrant | Denial:
        return self.denied.get(request.lease) or ScriptedGrant(at=now)

    def revocation(
        self,
        lease: LeaseId,
        offer: Offer,  # noqa: ARG002
        granted_at: float,
        max_usd_per_hour: float | None,  # noqa: ARG002
    ) -> tuple[float, float] | None:
        if lease not in self.revoked:
            return None
        notice_s, gone_s = self.revoked[lease]
        return granted_at + notice_s, granted_at + gone_s

    def bill(
        self,
        offer: Offer,  # noqa: ARG002
        max_usd_per_hour: float | None,  # noqa: ARG002
        started: float,
        ended: float,
        cause: EndCause,  # noqa: ARG002
    ) -> ScriptedBill:
        return ScriptedBill(charged_usd=ended - started)


@dataclass
class Rig:
    """What a backend under test is made from."""

    run_dir: Path
    function: str
    provider: ScriptedProvider
    clock: RunClock
    deadman_s: float = 60.0
    bag: bool = False
    """Jobs of a bag without `max_steps`."""
    command: tuple[str, ...] = ()
    """To be launched once, instead of the function."""

    @property
    def code(self) -> Code:
        if self.command:
            return Code(command=self.command, launch="once")
        return Code(function=f"{user_code.__file__}:{self.function}")

    @property
    def store(self) -> DirectoryStore:
        return DirectoryStore(self.run_dir / "checkpoints")

    @property
    def site(self) -> Site:
        """What a backend is opened with."""
        return Site(
            run_dir=self.run_dir.resolve(),
            code=self.code,
            folder=Path.cwd(),
            store=self.store,
            clock=self.clock,
            metric="loss",
            until_exit=self.bag,
            open_ended=self.bag,
            deadman_s=self.deadman_s,
        )


class ObservedEvents:
    """A backend under test, and all its events so far."""

    def __init__(self, backend: Backend, rig: Rig) -> None:
        self.backend = backend
        self.rig = rig
        self.events: list[Event] = []

    def rent(self, lease: LeaseId = L0, *, for_s: float = 6000.0) -> None:
        end_by = self.rig.clock.now() + for_s
        self.backend.acquire(RequestLease(lease=lease, offer=OFFER, end_by=end_by, why="test"))
        self.wait_for(LeaseGranted, lambda event: event.lease == lease)

    def rent_together(self, *leases: LeaseId, for_s: float = 6000.0) -> None:
        """As one allocation."""
        end_by = self.rig.clock.now() + for_s
        for lease in leases:
            self.backend.acquire(RequestLease(lease=lease, offer=OFFER, end_by=end_by, gang=leases[0], why="test"))
        for lease in leases:
            self.wait_for(LeaseGranted, lambda event, lease=lease: event.lease == lease)  # type: ignore[misc]

    def start(
        self,
        segment: SegmentId = S0,
        *,
        until_step: int = 3,
        resume_from: CheckpointRef | None = None,
        time_limit_s: float | None = None,
        lease: LeaseId = L0,
        slots: int = 1,
        shares: dict[LeaseId, int] | None = None,
        fraction: float = 1.0,
        fractions: tuple[float, ...] = (),
        seed: int = 0,
        **config: Value,
    ) -> StartSegment:
        """On `slots` of one lease, or on the `shares` (slots) of several."""
        order = StartSegment(
            segment=segment,
            job=J0,
            leases=(lease,) if shares is None else tuple(shares),
            slots=slots if shares is None else sum(shares.values()),
            shares=() if shares is None else tuple(shares.values()),
            config=config,
            until_step=until_step,
            resume_from=resume_from,
            time_limit_s=time_limit_s,
            fraction=fraction,
            fractions=fractions,
            seed=seed,
            why="test",
        )
        self.backend.start(order)
        return order

    def poll(self) -> None:
        self.events.extend(self.backend.poll())

    def wait_for(self, kind: type[E], when: Callable[[E], bool] = lambda _: True) -> E:
        until = time.monotonic() + PATIENCE_S
        while True:
            for event in self.seen(kind):
                if when(event):
                    return event
            if time.monotonic() > until:
                raise AssertionError(f"no {kind.__name__}; the events were {self.events}")
            self.poll()
            time.sleep(0.002)

    def end_of(self, segment: SegmentId) -> SegmentEnded:
        return self.wait_for(SegmentEnded, lambda event: event.segment == segment)

    def seen(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def steps(self, segment: SegmentId = S0) -> list[int]:
        return [event.step for event in self.seen(JobReported) if event.segment == segment]

    def metrics(self, segment: SegmentId) -> list[Metrics]:
        return [event.metrics for event in self.seen(JobReported) if event.segment == segment]

    def settle(self) -> None:
        """Release all leases."""
        for lease in self.backend.inventory():
            self.backend.release(lease)
        self.poll()
