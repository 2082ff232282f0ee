"""OwnMarket: machines the user really has, at the prices they really cost. Nothing is drawn: a backend reports what it
sees of them, and prices are those that were observed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shoestring.kernel.types import BillingName, EndCause, Fact, LeaseId, Listing, Offer
from shoestring.market.billing import Bill
from shoestring.market.priced import PricedMarket
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.lifetimes import ExponentialLifetime, GooglePreemptible
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import DrawnLifetimes, Revoker

CLUSTER = "cluster"
"""The zone of machines whose zone is not given."""
CLUSTER_NOTICE_S = 30.0
"""Between the warning and the end of a node, where nothing else is known: Slurm's default `KillWait`."""
SIMULATED_LIFE_S = 50 * 3600.0
"""Mean life of a spot node without an age limit, in a simulation: 2 % are preempted an hour, as on a modern market."""


class NodeType(Fact, frozen=True, kw_only=True):
    """One kind of machine that the user has. Made by `specs.own_nodes`."""

    label: str
    """How the cluster knows these nodes: a feature or a partition of Slurm, a resource of Ray."""
    is_any: bool = False
    """All nodes are of this type, and have no label in the cluster."""
    machine: str
    provider: str
    zone: str
    spot: bool = False
    vcpus: float | None = None
    """None, as for `slots` and `count`: what the cluster has, filled in before the run starts."""
    memory_gb: float = 0.0
    gpus: int = 0
    slots: int | None = None
    count: int | None = None
    usd_per_hour: float | None = None
    price_file: str | None = None
    price_command: tuple[str, ...] | None = None
    list_usd_per_hour: float
    """The most an hour can cost, and what the same machine costs on demand."""
    billing: BillingName = "per_second"
    notice_s: float | None = None
    max_life_s: float | None = None
    launch: tuple[str, ...] | None = None
    """The command that launches a node for a lease, and the one that ends it."""
    end: tuple[str, ...] | None = None

    @property
    def offer(self) -> Offer:
        return Offer(provider=self.provider, zone=self.zone, machine=self.machine, spot=self.spot)

    @property
    def is_watched(self) -> bool:
        """Does its price have to be read while the run lasts?"""
        return self.usd_per_hour is None

    @property
    def listing(self) -> Listing:
        slots = self.slots or 1
        return Listing(
            offer=self.offer,
            vcpus=self.vcpus or slots,
            memory_gb=self.memory_gb,
            gpus=self.gpus,
            slots=slots,
            on_demand_usd_per_hour=self.list_usd_per_hour,
            billing=self.billing,
            notice_s=CLUSTER_NOTICE_S if self.notice_s is None else self.notice_s,
            max_life_s=self.max_life_s,
        )


class ObservedPrices(PriceBook):
    """Prices as they were observed. The latest is valid until the next is known, however long that takes."""

    def __init__(self, usd_per_hour: dict[Offer, float]) -> None:
        super().__init__({offer: PriceTrace(offer, (0.0,), (price,)) for offer, price in usd_per_hour.items()})

    def begin_with(self, offer: Offer, times: Sequence[float], usd_per_hour: Sequence[float]) -> None:
        """What is known of its past, up to the start of the run at least."""
        self._traces[offer] = PriceTrace(offer, times, usd_per_hour)

    def observe(self, offer: Offer, at: float, usd_per_hour: float) -> bool:
        """True if the price is another one than before."""
        known = self.trace(offer)
        if known.usd_per_hour[-1] == usd_per_hour or at <= known.times[-1]:
            return False
        self._traces[offer] = PriceTrace(offer, (*known.times, at), (*known.usd_per_hour, usd_per_hour))
        return True

    def span(self) -> tuple[float, float]:
        return 0.0, math.inf

    def require(self, offers: Iterable[Offer], start: float, until: float, *, beyond_s: float = math.inf) -> None:  # noqa: ARG002
        for offer in offers:
            self.trace(offer)


class OwnMarket(PricedMarket):
    """`usd_per_hour`: the price of each type now."""

    book: ObservedPrices

    def __init__(self, nodes: Iterable[NodeType], usd_per_hour: Sequence[float]) -> None:
        self.nodes = tuple(nodes)
        prices = {node.offer: price for node, price in zip(self.nodes, usd_per_hour, strict=True)}
        super().__init__([node.listing for node in self.nodes], ObservedPrices(prices))
        self.labels = {node.offer: node.label for node in self.nodes if not node.is_any}

    def bill(self, offer: Offer, max_usd_per_hour: float | None, started: float, ended: float, cause: EndCause) -> Bill:  # noqa: ARG002
        """Without refunds: that a machine is gone does not tell whether its provider took it, and a refund that was
        assumed and not given would be money over budget."""
        return super().bill(offer, max_usd_per_hour, started, ended, "released")

    def simulated(self, seed: int) -> SimulatedProvider:
        """The same machines in a simulation, which has to draw how long they last: Google's lifetimes of 2019 where
        there is an age limit, else `SIMULATED_LIFE_S`."""
        return SimulatedProvider(self.listings, self.book, _Lives(self.listings, seed), seed=seed)


class _Lives:
    def __init__(self, listings: Sequence[Listing], seed: int) -> None:
        limited: Revoker = DrawnLifetimes(GooglePreemptible(), seed)
        lasting: Revoker = DrawnLifetimes(ExponentialLifetime(SIMULATED_LIFE_S), seed)
        self._of = {x.offer: lasting if x.max_life_s is None else limited for x in listings}

    def revoked_at(self, lease: LeaseId, offer: Offer, granted_at: float, max_usd_per_hour: float | None, /) -> float:
        return self._of[offer].revoked_at(lease, offer, granted_at, max_usd_per_hour)
