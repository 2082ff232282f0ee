"""When machines are revoked: the causes of revocation a simulated provider can have, and `Earliest` to combine them.

Law: a lease's end depends on its id, its offer, its grant and its maximum alone, so it is the same however often and in
whatever order it is computed. Only spot offers are revoked. The time returned is when the machine is gone; the notice
is `Listing.notice_s` before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from shoestring.errors import SpecError
from shoestring.kernel.types import LeaseId, Listing, Offer
from shoestring.market.prices import PriceBook
from shoestring.market.simulated.lifetimes import HOUR_S, GooglePreemptible, Lifetime
from shoestring.market.simulated.random_streams import generator, uniform


class Revoker(Protocol):
    def revoked_at(self, lease: LeaseId, offer: Offer, granted_at: float, max_usd_per_hour: float | None, /) -> float:
        """When the provider revokes this machine; infinity for never."""
        ...


@dataclass(frozen=True, slots=True)
class Never:
    def revoked_at(self, *_: object) -> float:
        return math.inf


class PriceCrossing:
    """Revoked `notice_s` after the price first exceeds the maximum (the on-demand price when there is none).

    The notice is given at the crossing, not before it: a notice ahead of the crossing would reveal future prices.
    """

    def __init__(self, book: PriceBook, listings: Iterable[Listing]) -> None:
        self._book = book
        self._listings = {listing.offer: listing for listing in listings}

    def revoked_at(self, _lease: LeaseId, offer: Offer, granted_at: float, max_usd_per_hour: float | None, /) -> float:
        if not offer.spot:
            return math.inf
        listing = self._listings[offer]
        ceiling = listing.ceiling_usd_per_hour(max_usd_per_hour)
        return self._book.trace(offer).first_crossing(granted_at, ceiling) + listing.notice_s


@dataclass(frozen=True, slots=True)
class DrawnLifetimes:
    """Each machine has its own lifetime, sampled from a distribution."""

    lifetime: Lifetime
    seed: int = 0

    def revoked_at(self, lease: LeaseId, offer: Offer, granted_at: float, _: float | None, /) -> float:
        if not offer.spot:
            return math.inf
        return granted_at + max(0.0, self.lifetime.sample(generator(self.seed, "lifetime", lease)))


@dataclass(frozen=True, slots=True)
class PreemptibleOf2019:
    """The same, from the distribution of the machine's type and zone (`GooglePreemptible.of`)."""

    seed: int = 0

    def revoked_at(self, lease: LeaseId, offer: Offer, granted_at: float, most: float | None, /) -> float:
        lives = DrawnLifetimes(GooglePreemptible.of(offer.machine, offer.zone), self.seed)
        return lives.revoked_at(lease, offer, granted_at, most)


WINDOW_S = 86400.0
"""Shocks are drawn this much time at once."""


@dataclass(frozen=True, slots=True)
class ZoneShocks:
    """Correlated revocations: at a shock each machine in the zone is revoked with probability `share`.

    Shocks are a Poisson process per zone with rate `rate_per_hour`, drawn window by window, so that any time can be
    computed directly.
    """

    rate_per_hour: float
    share: float
    seed: int = 0
    horizon_s: float = 31 * 86400.0
    """How far after a grant shocks are drawn: longer than any lease lasts."""
    _windows: dict[tuple[str, int], tuple[float, ...]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.rate_per_hour >= 0:
            raise SpecError(f"rate_per_hour={self.rate_per_hour!r} of zone shocks must be zero or more")
        if not 0 <= self.share <= 1:
            raise SpecError(f"share={self.share!r} of machines hit by a zone shock must be between 0 and 1")

    def revoked_at(self, lease: LeaseId, offer: Offer, granted_at: float, _: float | None, /) -> float:
        if not offer.spot or self.rate_per_hour == 0 or self.share == 0:
            return math.inf
        zone = f"{offer.provider}/{offer.zone}"
        first = math.floor(granted_at / WINDOW_S)
        for window in range(first, first + math.ceil(self.horizon_s / WINDOW_S) + 1):
            for index, shock in enumerate(self._shocks(zone, window)):
                if shock > granted_at and uniform(self.seed, "hit", zone, window, index, lease) < self.share:
                    return shock
        return math.inf

    def _shocks(self, zone: str, window: int) -> tuple[float, ...]:
        known = self._windows.get((zone, window))
        if known is None:
            rng, at, shocks = generator(self.seed, "shocks", zone, window), window * WINDOW_S, []
            while (at := at + rng.expovariate(self.rate_per_hour / HOUR_S)) < (window + 1) * WINDOW_S:
                shocks.append(at)
            known = self._windows[zone, window] = tuple(shocks)
        return known


class Earliest:
    """Several causes at once: the earliest counts."""

    def __init__(self, *revokers: Revoker) -> None:
        self._revokers = revokers

    def revoked_at(self, lease: LeaseId, offer: Offer, granted_at: float, max_usd_per_hour: float | None, /) -> float:
        return min(
            (revoker.revoked_at(lease, offer, granted_at, max_usd_per_hour) for revoker in self._revokers),
            default=math.inf,
        )
