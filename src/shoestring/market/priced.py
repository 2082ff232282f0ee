"""PricedMarket: what is for sale, its prices, and the bills of leases: all that a live run needs of a market."""

from __future__ import annotations

from collections.abc import Iterable

from shoestring.errors import SpecError
from shoestring.kernel.policy import PriceFeed
from shoestring.kernel.types import THIS_MACHINE, EndCause, Listing, Offer
from shoestring.market.billing import Bill, billing_rule
from shoestring.market.catalog import catalog
from shoestring.market.prices import PriceBook


class PricedMarket:
    def __init__(self, listings: Iterable[Listing], book: PriceBook, start: float | None = None) -> None:
        self.listings = tuple(listings)
        known_from, self.end = book.span()
        """Until when prices are known."""
        self.start = known_from if start is None else start
        """When runs begin. Earlier prices are history: what a policy may know from the first moment on."""
        self.book = book
        """The whole market, future included: for the world and for tests, never for a policy."""
        self.labels: dict[Offer, str] = {}
        """How a cluster knows the nodes of an offer, where the user has said so."""
        self._by_offer = {listing.offer: listing for listing in self.listings}

    @classmethod
    def own(cls, slots: int = 1, machine: str = THIS_MACHINE) -> PricedMarket:
        """The user's own machines, this one or several of one kind: they have no price, and nothing is drawn."""
        listings = (catalog.free_listing(slots, machine),)
        return cls(listings, PriceBook({}, listings))

    @property
    def feed(self) -> PriceFeed:
        return self.book

    def listing(self, offer: Offer) -> Listing:
        try:
            return self._by_offer[offer]
        except KeyError:
            raise SpecError(f"{offer} is not for sale in this market", hint="choose among its listings") from None

    def bill(self, offer: Offer, max_usd_per_hour: float | None, started: float, ended: float, cause: EndCause) -> Bill:
        """The invoice of a lease that is over."""
        listing = self.listing(offer)
        return billing_rule(listing.billing).charge(
            started,
            ended,
            self.book.trace(offer),
            cause,
            ceiling_usd_per_hour=listing.ceiling_usd_per_hour(max_usd_per_hour),
        )
