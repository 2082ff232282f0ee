"""The market of the elastic benchmark, and its cells: how much time and how much money there is.

Machines have four slots, are billed by the second (at least a minute) from 90 seconds after the request, and a slot
costs one cent a minute, so that a budget in slot-minutes is a budget in cents.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from shoestring.kernel.types import Listing, Offer
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.lifetimes import ExponentialLifetime
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import DrawnLifetimes

START = 1_700_000_000.0
MACHINE_SLOTS = 4
PROVISION_S = 90.0
USD_PER_SLOT_MINUTE = 0.01
SPOT_SHARE = 0.35
SPOT_REVOCATIONS_PER_HOUR = 0.5
"""Of one machine."""


@dataclass(frozen=True, order=True)
class Cell:
    """A deadline in minutes and a budget in slot-minutes."""

    minutes: int
    slot_minutes: int

    def __str__(self) -> str:
        return f"{self.minutes}:{self.slot_minutes}"

    @property
    def budget_usd(self) -> float:
        return self.slot_minutes * USD_PER_SLOT_MINUTE

    @property
    def fixed_machines(self) -> int:
        """How many machines the budget pays for from the first grant to the deadline."""
        return max(1, int(self.slot_minutes / (self.trained_minutes * MACHINE_SLOTS)))

    @property
    def trained_minutes(self) -> float:
        """How long a machine requested at the start is held."""
        return self.minutes - PROVISION_S / 60


CELLS = (Cell(15, 60), Cell(15, 240), Cell(30, 240), Cell(30, 480), Cell(30, 960), Cell(60, 960))


def market(seed: int = 0, *, spot: bool = False) -> SimulatedProvider:
    """On-demand machines, each provisioned in exactly the same time; with `spot` also the same ones at a third of the
    price, preempted at random after a notice of two minutes. Spot is billed by the second as well: under Amazon's rule,
    a first hour free of charge if preempted, a run of half an hour would profit from preemptions."""
    kept = Listing(
        offer=Offer(provider="aws", zone="us-east-1a", machine="four-slots", spot=False),
        vcpus=16.0,
        memory_gb=64.0,
        slots=MACHINE_SLOTS,
        on_demand_usd_per_hour=MACHINE_SLOTS * USD_PER_SLOT_MINUTE * 60,
    )
    revocable = replace(kept, offer=replace(kept.offer, spot=True))
    listings = (revocable, kept) if spot else (kept,)
    usd_per_hour = SPOT_SHARE * kept.on_demand_usd_per_hour
    prices = {revocable.offer: PriceTrace(revocable.offer, (START - 1.0,), (usd_per_hour,))} if spot else {}
    lifetimes = DrawnLifetimes(ExponentialLifetime(3600.0 / SPOT_REVOCATIONS_PER_HOUR), seed)
    return SimulatedProvider(
        listings, PriceBook(prices, listings), lifetimes, seed=seed, provision_s=PROVISION_S, provision_spread=0.0
    )
