"""Tests of policies as event sequences: this happened, so this was decided. Nothing is mocked but the market.

    run = story(OnNotice(), lease="l0", job="j0", running_since=0.0)
    assert run.tell(RevocationNoticed(at=50.0, lease="l0", gone_at=170.0)) == [HaltSegment(segment="s0", ...)]

Decisions come back without their ids, so that whole decisions can be compared; `unittest.mock.ANY` stands for a why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import Guard, Policy, Waker
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.step import PolicyChain, replay, step
from shoestring.kernel.types import (
    CheckpointRef,
    DecisionId,
    JobId,
    LeaseId,
    Listing,
    Offer,
    PriceHistory,
    SegmentCause,
    SegmentId,
)
from shoestring.kernel.view import RunView
from shoestring.space.space import Float, Space

SPOT = Offer(provider="aws", zone="a", machine="small", spot=True)
ON_DEMAND_OFFER = Offer(provider="aws", zone="a", machine="small", spot=False)
SPOT_USD_PER_HOUR = 0.3
ON_DEMAND_USD_PER_HOUR = 1.0
SPEC = RunSpec(
    name="story",
    space=Space(params={"x": Float(low=0.0, high=1.0)}),
    metric="loss",
    trials=9,
    max_steps=9,
    budget_usd=100.0,
    deadline_s=6 * 3600.0,
    listings=tuple(
        Listing(offer=offer, vcpus=2, memory_gb=8, on_demand_usd_per_hour=ON_DEMAND_USD_PER_HOUR)
        for offer in (SPOT, ON_DEMAND_OFFER)
    ),
    max_machines=4,
)


class ConstantPrices:
    """A market with constant prices."""

    def __init__(self, usd_per_hour: Mapping[Offer, float]) -> None:
        self._usd_per_hour = usd_per_hour

    def usd_per_hour(self, offer: Offer, at: float) -> float:  # noqa: ARG002
        return self._usd_per_hour[offer]

    def history(self, offer: Offer, until: float) -> PriceHistory:
        return PriceHistory(offer=offer, times=(0.0,), usd_per_hour=(self._usd_per_hour[offer],), until=until)


def usual_prices(listings: Sequence[Listing]) -> ConstantPrices:
    """Spot machines at 30 % of the on-demand price."""
    share = SPOT_USD_PER_HOUR / ON_DEMAND_USD_PER_HOUR
    return ConstantPrices({x.offer: x.on_demand_usd_per_hour * (share if x.offer.spot else 1.0) for x in listings})


class Story:
    """Events and decisions through the real step(), recorded as a journal that can be replayed."""

    def __init__(self, *policies: Policy, spec: RunSpec = SPEC, guard: Guard | None = None) -> None:
        self.spec = spec
        self.feed = usual_prices(spec.listings)
        self.state = RunState(self.feed)
        self.entries: list[Entry] = []
        self._chain = PolicyChain(policies)
        self._guard = guard or BudgetAndDeadline()

    @property
    def view(self) -> RunView:
        return RunView(self.state)

    def begin(self) -> list[d.Decision]:
        """The run starts: what do the policies decide?"""
        return self.tell(e.RunStarted(at=0.0, spec=self.spec, seed=self.spec.seed))

    def tell(self, event: e.Event) -> list[d.Decision]:
        """This happened: what do the policies decide?"""
        return self._turn(event, self._chain)

    def happened(self, *events: e.Event) -> None:
        """These happened; the policies do not get them."""
        for event in events:
            self._turn(event, PolicyChain([]))

    def order(self, *decisions: d.Decision) -> list[d.Decision]:
        """The test decides, through the guard; the policies do not."""
        return self._turn(e.TimerFired(at=max(0.0, self.state.now), name="story"), PolicyChain([_Scripted(decisions)]))

    def replayed(self) -> RunState:
        """The state as a new controller would find it in the journal."""
        state = RunState(self.feed)
        for entry in self.entries:
            replay(state, entry)
        return state

    # -- set-up ----------------------------------------------------------------------------------------------------
    def add(
        self, job: str, *, until_step: int | None = None, slots: int = 1, fraction: float = 1.0, **tags: int
    ) -> None:
        """Add a job, waiting if it has a target step."""
        self.order(d.AddJob(job=JobId(job), config={"x": 0.5}, tags=dict(tags), fraction=fraction, why="the story"))
        if until_step is not None:
            self.order(d.RunJob(job=JobId(job), until_step=until_step, slots=slots, why="the story"))

    def rent(self, lease: str, *, offer: Offer = SPOT, end_by: float | None = None) -> None:
        """A machine is requested and granted at once."""
        until = self.state.now + self.spec.slice_s if end_by is None else end_by
        self.order(d.RequestLease(lease=LeaseId(lease), offer=offer, end_by=until, why="the story"))
        self.happened(e.LeaseGranted(at=self.state.now, lease=LeaseId(lease)))

    def start(self, segment: str, job: str, lease: str, *, running_since: float | None = None) -> None:
        """A waiting job is put on a machine, and its code runs."""
        wanted = self.state.jobs[JobId(job)]
        self.order(
            d.StartSegment(
                segment=SegmentId(segment),
                job=JobId(job),
                leases=(LeaseId(lease),),
                config=wanted.config,
                until_step=wanted.until_step,
                slots=wanted.slots,
                resume_from=wanted.checkpoint,
                fraction=wanted.fraction,
                why="the story",
            )
        )
        since = self.state.now if running_since is None else running_since
        self.happened(e.SegmentStarted(at=since, segment=SegmentId(segment)))

    def report(self, job: str, step: int, value: float) -> e.JobReported:
        """A report of a running job, to pass to `tell`."""
        running = self.state.jobs[JobId(job)]
        assert running.segment is not None, f"{job} is not running"
        metrics = {self.spec.metric or "loss": value}
        return e.JobReported(at=self.state.now, segment=running.segment, job=running.id, step=step, metrics=metrics)

    def snapshot(self, job: str, fraction: float, value: float, *, step: int = 0) -> e.SnapshotReported:
        """A snapshot of a running job on a smaller data fraction, to pass to `tell`."""
        running = self.state.jobs[JobId(job)]
        assert running.segment is not None, f"{job} is not running"
        return e.SnapshotReported(
            at=self.state.now,
            segment=running.segment,
            job=running.id,
            step=step,
            fraction=fraction,
            metrics={self.spec.metric or "loss": value},
        )

    def save(self, job: str, step: int) -> e.CheckpointSaved:
        """A checkpoint of a running job, to pass to `tell`."""
        running = self.state.jobs[JobId(job)]
        assert running.segment is not None, f"{job} is not running"
        ref = checkpoint(job, step, name=f"{job}/{running.segment}-{step}")
        return e.CheckpointSaved(
            at=self.state.now, segment=running.segment, job=running.id, step=step, ref=ref, took_s=1.0
        )

    def end(self, job: str, cause: SegmentCause = "reached", *, step: int | None = None) -> list[d.Decision]:
        """A running job's code ends: what do the policies decide?"""
        running = self.state.jobs[JobId(job)]
        assert running.segment is not None, f"{job} is not running"
        reached = running.until_step if step is None else step
        return self.tell(e.SegmentEnded(at=self.state.now, segment=running.segment, step=reached, cause=cause))

    def _turn(self, event: e.Event, chain: PolicyChain) -> list[d.Decision]:
        decisions = step(self.state, event, chain, self._guard)
        self.entries.append(Entry(seq=self.state.seq, event=event, decisions=decisions))
        return [replace(decision, id=DecisionId("")) for decision in decisions]


def story(
    *policies: Policy,
    spec: RunSpec = SPEC,
    guard: Guard | None = None,
    lease: str | None = None,
    job: str | None = None,
    running_since: float | None = None,
    offer: Offer = SPOT,
) -> Story:
    """A started run, optionally with a lease, a job, and (with `running_since`) the job running on the lease."""
    run = Story(*policies, spec=spec, guard=guard)
    run.happened(e.RunStarted(at=0.0, spec=spec, seed=spec.seed))
    if lease is not None:
        run.rent(lease, offer=offer)
    if job is not None:
        run.add(job, until_step=spec.max_steps)
    if running_since is not None:
        assert lease is not None, "a job runs on a lease"
        assert job is not None, "a lease runs a job"
        run.start("s0", job, lease, running_since=running_since)
    return run


def checkpoint(job: str, step: int, *, name: str = "") -> CheckpointRef:
    return CheckpointRef(job=JobId(job), step=step, name=name or f"{job}-{step}", size_bytes=1, digest="")


@dataclass(frozen=True)
class _Scripted:
    """A policy with the decisions of the test."""

    decisions: tuple[d.Decision, ...]
    wants: ClassVar[frozenset[Waker]] = frozenset({e.TimerFired})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        yield from self.decisions
