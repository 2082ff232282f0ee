"""A simulated world without a controller: a test gives the orders and compares whole events.

The numbers are easy to add up by hand. Everything starts at 0; a machine is granted at 40; its code runs at 60,
one step takes 10 s, a save of half a gigabyte 6 s (1 + 0.5 / 0.1), its restoring 3.5 s (1 + 0.5 / 0.2).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import CheckpointRef, Listing, Offer
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.lifetimes import UniformLifetime
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import DrawnLifetimes, Never
from shoestring.world.sim.workload import Latencies, Workload
from shoestring.world.sim.world import SimWorld

SPOT = Offer(provider="aws", zone="a", machine="small", spot=True)
ON_DEMAND_OFFER = Offer(provider="aws", zone="a", machine="small", spot=False)
SPOT_USD_PER_HOUR = 0.36
NOTICE_S = 120.0
GRANTED_AT = 40.0
RUNNING_AT = 60.0
HOUR_S = 3600.0


def listing(offer: Offer, **facts) -> Listing:
    standard = {"vcpus": 4, "memory_gb": 8, "on_demand_usd_per_hour": 1.0, "notice_s": NOTICE_S}
    return Listing(offer=offer, **{**standard, **facts})


def market(revoker=None, *, listings: Iterable[Listing] = (), prices=((0.0,), (SPOT_USD_PER_HOUR,)), **service):
    """A provider that takes 40 s to grant and 5 s to deny, with the same prices for everything on spot."""
    listings = tuple(listings) or (listing(SPOT), listing(ON_DEMAND_OFFER))
    book = PriceBook({x.offer: PriceTrace(x.offer, *prices) for x in listings if x.offer.spot}, listings)
    return SimulatedProvider(listings, book, revoker or Never(), **{"provision_spread": 0.0, **service})


def dies_at_age(age_s: float) -> DrawnLifetimes:
    return DrawnLifetimes(UniformLifetime(age_s, age_s))


def loss_by_step(_config):
    return lambda step: {"loss": 1 / step}


def workload(**fields) -> Workload:
    standard = {"curve": loss_by_step, "seconds_per_step": lambda *_: 10.0, "checkpoint_gb": 0.5}
    return Workload(**{**standard, **fields})


class Scene:
    """Orders in, events out."""

    def __init__(self, provider=None, latencies: Latencies | None = None, **of_workload) -> None:
        self.world = SimWorld(provider or market(), workload(**of_workload), latencies, start=0.0)

    # -- orders ----------------------------------------------------------------------------------------------------
    def order(self, *orders: d.Decision) -> None:
        for order in orders:
            self.world.carry_out(order)

    def rent(self, lease="l0", offer=SPOT, *, end_by=10 * HOUR_S, maximum=None) -> None:
        self.order(d.RequestLease(lease=lease, offer=offer, end_by=end_by, max_usd_per_hour=maximum, why="a test"))

    def start(self, segment="s0", *, job="j0", leases=("l0",), until_step=3, **fields) -> None:
        self.order(
            d.StartSegment(
                segment=segment, job=job, leases=leases, config={}, until_step=until_step, why="a test", **fields
            )
        )

    def train(self, *, until_step=3, end_by=10 * HOUR_S, **fields) -> None:
        """Rent l0 and start s0 on it when it is granted."""
        self.rent(end_by=end_by)
        assert self.next() == e.LeaseGranted(at=GRANTED_AT, lease="l0")
        self.start(until_step=until_step, **fields)

    def plan_saves(self, every_s: float) -> None:
        self.order(d.PlanSaves(segment="s0", every_s=every_s, why="a test"))

    def save(self) -> None:
        self.order(d.SaveCheckpoint(segment="s0", why="a test"))

    def halt(self, grace_s: float) -> None:
        self.order(d.HaltSegment(segment="s0", grace_s=grace_s, why="a test"))

    def release(self, lease="l0") -> None:
        self.order(d.ReleaseLease(lease=lease, why="a test"))

    # -- events ----------------------------------------------------------------------------------------------------
    def next(self) -> e.Event:
        return self.world.next_event()

    def until(self, kind: type[e.Event]) -> list[e.Event]:
        """Everything up to the first event of a kind, that one included."""
        events = [self.next()]
        while not isinstance(events[-1], kind):
            events.append(self.next())
        return events

    def first(self, kind: type[e.Event]) -> e.Event:
        return self.until(kind)[-1]


# -- events of the one segment, briefly --------------------------------------------------------------------------------
def started(at: float) -> e.SegmentStarted:
    return e.SegmentStarted(at=at, segment="s0")


def reported(at: float, step: int) -> e.JobReported:
    return e.JobReported(at=at, segment="s0", job="j0", step=step, metrics={"loss": 1 / step})


def saved(at: float, step: int, took_s: float = 6.0) -> e.CheckpointSaved:
    return e.CheckpointSaved(at=at, segment="s0", job="j0", step=step, ref=checkpoint(step), took_s=took_s)


def ended(at: float, step: int, cause: str) -> e.SegmentEnded:
    return e.SegmentEnded(at=at, segment="s0", step=step, cause=cause)


def checkpoint(step: int, gb: float = 0.5) -> CheckpointRef:
    return CheckpointRef(job="j0", step=step, name=f"j0/{step:06d}-s0", size_bytes=int(gb * 1e9), digest="simulated")


def gone(at: float, cause: str, lease="l0", usd: float = 0.0, refunded: float = 0.0) -> e.LeaseEnded:
    return e.LeaseEnded(at=at, lease=lease, cause=cause, charged_usd=usd, refunded_usd=refunded)


def without_bill(event: e.LeaseEnded) -> e.LeaseEnded:
    return replace(event, charged_usd=0.0, refunded_usd=0.0)
