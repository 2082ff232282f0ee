"""SimulatedProvider: how a cloud responds, in the simulator and under the local backend alike.

It is stateless: every response follows from its seed and the lease's id, so a restarted world gets the same ones.
Times are seconds of the run's clock.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol, TypedDict, Unpack

from shoestring.errors import DataError, SpecError
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import THIS_MACHINE, Denial, Fact, LeaseId, Listing, Offer
from shoestring.market.catalog import catalog
from shoestring.market.price_files import MAX_GAP_S, read_prices_once
from shoestring.market.priced import PricedMarket
from shoestring.market.prices import PriceBook
from shoestring.market.simulated import synthetic_prices as synthetic
from shoestring.market.simulated.lifetimes import HOUR_S, ExponentialLifetime, Lifetime
from shoestring.market.simulated.random_streams import uniform
from shoestring.market.simulated.revocation import (
    DrawnLifetimes,
    Earliest,
    Never,
    PreemptibleOf2019,
    PriceCrossing,
    Revoker,
    ZoneShocks,
)

PREEMPTIBLE_PRICE_SHARE = 0.47
"""Of the on-demand price: Google's price of n1 machines in 2025. In 2019 it was 0.21."""


class Grant(Fact, frozen=True, kw_only=True):
    """The machine is leased, and billed, from `at` on."""

    at: float


class Revocation(NamedTuple):
    notice_at: float
    gone_at: float


class Stock(Protocol):
    """Whether a machine is available; `availability.Availability` is one."""

    def available(self, offer: Offer, at: float) -> bool: ...


class ProviderSettings(TypedDict, total=False):
    """Latencies of a provider: the settings of SimulatedProvider that every market takes."""

    denial_s: float
    provision_s: float
    provision_spread: float


class SimulatedProvider(PricedMarket):
    """A market that also draws grants, denials and revocations."""

    def __init__(
        self,
        listings: Iterable[Listing],
        book: PriceBook,
        revoker: Revoker,
        *,
        seed: int = 0,
        start: float | None = None,
        stock: Stock | None = None,
        denial_share: float = 0.0,
        denial_s: float = 5.0,
        provision_s: float = 40.0,
        provision_spread: float = 0.25,
    ) -> None:
        """Runs begin at `start`, else at the first time from which all prices are known.

        `denial_share` of spot requests are denied at random, on top of what `stock` denies.

        A machine takes `provision_s` to start, plus or minus `provision_spread` of it.
        """
        for name, share in {"denial_share": denial_share, "provision_spread": provision_spread}.items():
            if not 0 <= share <= 1:
                raise SpecError(f"{name}={share!r} must be between 0 and 1")
        for name, latency in {"denial_s": denial_s, "provision_s": provision_s}.items():
            if not (latency >= 0 and math.isfinite(latency)):
                raise SpecError(f"{name}={latency!r} must be zero or a positive number of seconds")
        super().__init__(listings, book, start)
        self.denial_s = denial_s
        """Seconds from a request to its denial."""
        self._revoker = revoker
        self._stock = stock
        self._seed = seed
        self._denial_share = denial_share
        self._provision_s = provision_s
        self._provision_spread = provision_spread

    @property
    def longest_start_s(self) -> float:
        """From a request to its grant, at the most."""
        return self._provision_s * (1.0 + self._provision_spread)

    def grant(self, request: RequestLease, now: float) -> Grant | Denial:
        """The response to a request that arrives at `now`. A denial arrives after `denial_s`."""
        reason = self._denial(request, now)
        if reason is not None:
            return reason
        spread = self._provision_spread * (2.0 * uniform(self._seed, "provision", request.lease) - 1.0)
        at = now + self._provision_s * (1.0 + spread)
        return Grant(at=at) if at < request.end_by else "too_late"

    def _denial(self, request: RequestLease, now: float) -> Denial | None:
        listing = self.listing(request.offer)
        if not request.offer.spot:
            return None
        if self.book.usd_per_hour(request.offer, now) > listing.ceiling_usd_per_hour(request.max_usd_per_hour):
            return "price"
        if self._stock is not None and not self._stock.available(request.offer, now):
            return "no_capacity"
        if uniform(self._seed, "denial", request.lease) < self._denial_share:
            return "no_capacity"
        return None

    def revocation(
        self, lease: LeaseId, offer: Offer, granted_at: float, max_usd_per_hour: float | None
    ) -> Revocation | None:
        """When this lease gets its notice and is revoked, if it is not released before; None if never."""
        if not offer.spot:
            return None
        listing = self.listing(offer)
        gone_at = self._revoker.revoked_at(lease, offer, granted_at, max_usd_per_hour)
        if listing.max_life_s is not None:
            gone_at = min(gone_at, granted_at + listing.max_life_s)
        if gone_at == math.inf:
            return None
        return Revocation(notice_at=max(granted_at, gone_at - listing.notice_s), gone_at=max(granted_at, gone_at))

    @classmethod
    def auction(
        cls,
        listings: Iterable[Listing] | None = None,
        *,
        seed: int = 0,
        start: float = synthetic.DEFAULT_START,
        days: float = 14.0,
        denial_share: float = 0.0,
        **service: Unpack[ProviderSettings],
    ) -> SimulatedProvider:
        """A market of the auction years: machines are revoked when the price exceeds the maximum."""
        listings = catalog.default_listings() if listings is None else tuple(listings)
        book = synthetic.auction(listings, seed=seed, start=start, days=days)
        revoker = PriceCrossing(book, listings)
        return cls(listings, book, revoker, seed=seed, denial_share=denial_share, **service)

    @classmethod
    def modern(
        cls,
        listings: Iterable[Listing] | None = None,
        *,
        seed: int = 0,
        start: float = synthetic.DEFAULT_START,
        days: float = 31.0,
        interruptions_per_hour: float = 0.02,
        shocks_per_hour: float = 0.01,
        shock_share: float = 0.5,
        denial_share: float = 0.02,
        **service: Unpack[ProviderSettings],
    ) -> SimulatedProvider:
        """A market of today: smooth prices, machines are preempted one by one and, at zone shocks, together."""
        listings = catalog.default_listings() if listings is None else tuple(listings)
        book = synthetic.modern(listings, seed=seed, start=start, days=days)
        revoker = Earliest(
            PriceCrossing(book, listings),
            _interruptions(interruptions_per_hour, seed),
            ZoneShocks(shocks_per_hour, shock_share, seed),
        )
        return cls(listings, book, revoker, seed=seed, denial_share=denial_share, **service)

    @classmethod
    def preemptible(
        cls,
        listings: Iterable[Listing],
        lifetime: Lifetime | None = None,
        /,
        *,
        seed: int = 0,
        start: float = synthetic.DEFAULT_START,
        days: float = 31.0,
        price_share: float = PREEMPTIBLE_PRICE_SHARE,
        denial_share: float = 0.0,
        **service: Unpack[ProviderSettings],
    ) -> SimulatedProvider:
        """A market with one price, a share of the on-demand price, and lifetimes sampled from `lifetime` (default:
        Google's of 2019, by machine type and zone): most preemptions are early or at the limit of 24 h."""
        if not 0 < price_share <= 1:
            raise SpecError(f"price_share={price_share!r} of the on-demand price must be above 0 and at most 1")
        listings = tuple(listings)
        book = synthetic.flat(listings, price_share, start=start, days=days)
        revoker = PreemptibleOf2019(seed) if lifetime is None else DrawnLifetimes(lifetime, seed)
        return cls(listings, book, revoker, seed=seed, denial_share=denial_share, **service)

    @classmethod
    def from_prices(
        cls,
        path: str | Path,
        *,
        machines: Collection[str] | None = None,
        zones: Collection[str] | None = None,
        slots: int | None = None,
        seed: int = 0,
        interruptions_per_hour: float = 0.0,
        denial_share: float = 0.0,
        max_gap_s: float = MAX_GAP_S,
        start: float | None = None,
        **service: Unpack[ProviderSettings],
    ) -> SimulatedProvider:
        """A market replayed from a price file: each series of a known machine type, and its on-demand offer.

        Runs begin at `start` (UTC seconds) with the earlier prices as history, else where all series are known. Price
        crossings revoke; for files of recent years, whose prices never cross, add `interruptions_per_hour`.
        """
        read = read_prices_once(path, machines=machines, zones=zones, max_gap_s=max_gap_s)
        known = {found.name: found for found in catalog.machines("aws")}
        listings = tuple(
            catalog.listing(known[offer.machine], offer.zone, spot=spot, slots=slots)
            for offer in read
            if offer.machine in known and offer.zone in known[offer.machine].zones
            for spot in (True, False)
        )
        if not listings:
            raise DataError(
                f"{path}: none of its machine types and zones is in the catalogue",
                hint="the catalogue has Amazon's common types in us-east-1; build a SimulatedProvider from listings",
            )
        book = PriceBook({item.offer: read.trace(item.offer) for item in listings if item.offer.spot}, listings)
        revoker = Earliest(PriceCrossing(book, listings), _interruptions(interruptions_per_hour, seed))
        return cls(listings, book, revoker, seed=seed, start=start, denial_share=denial_share, **service)

    @classmethod
    def free(cls, slots: int = 1, machine: str = THIS_MACHINE) -> SimulatedProvider:
        """The user's own machines, this one or several of one kind: no price, no delay, no revocation."""
        listings = (catalog.free_listing(slots, machine),)
        return cls(listings, PriceBook({}, listings), Never(), provision_s=0.0)


def _interruptions(per_hour: float, seed: int) -> Revoker:
    if not (per_hour >= 0 and math.isfinite(per_hour)):
        raise SpecError(f"interruptions_per_hour={per_hour!r} must be zero or a positive number")
    return DrawnLifetimes(ExponentialLifetime(HOUR_S / per_hour), seed) if per_hour else Never()
