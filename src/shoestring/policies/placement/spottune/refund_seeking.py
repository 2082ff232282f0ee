"""Seeks machines that are preempted within their first hour, and are free of charge because of it.

The maximum price is a little above the market's, so that most rises of the price end the lease, and a trial never has a
machine for longer than its first hour. The chance of a preemption at such a maximum is how often the price rose that
much within an hour in the last three days. For markets where the price decides about preemptions (Amazon's until 2017),
or where capacity is scarce. Elsewhere moving every hour costs more than it saves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.models.revocation.bids import ABOVE_MARKET
from shoestring.policies.placement.cheapest_step import CheapestStep
from shoestring.policies.placement.renting.assign import release_idle, start_waiting_jobs
from shoestring.policies.placement.renting.consolidate import consolidate
from shoestring.policies.placement.renting.rent import rent_missing
from shoestring.policies.placement.revocation_risk import AssumedRate, FromPrices
from shoestring.policies.placement.spottune.rotation import HOUR_S, Stay, leave_in_time

if TYPE_CHECKING:
    from shoestring.models.offer_cost import OfferPrice
    from shoestring.models.step_cost import Overheads


@dataclass(frozen=True)
class RefundSeeking(CheapestStep):
    """Machines whose first hour is never refunded (Google's, on-demand ones) are compared too, rented without a maximum
    and not left after an hour: there is no refund to seek, and a low maximum would only lose them. The `why` of each
    request says which it is."""

    risk: AssumedRate | FromPrices = FromPrices()  # noqa: RUF009  # frozen
    stay: Stay = Stay()  # noqa: RUF009  # frozen

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        yield from leave_in_time(state, event, self.stay, lambda lease: _refunds(state.listings[lease.offer]))
        yield from start_waiting_jobs(state, widest_first=self.consolidates)
        yield from rent_missing(state, self._ranked, bid=a_little_above_the_market)
        if self.consolidates:
            yield from consolidate(state)
        yield from release_idle(state, self.idle_s)

    def _prices(self, state: RunView, seen: Overheads) -> Sequence[OfferPrice]:
        from shoestring.models.offer_cost import offer_prices

        return offer_prices(
            state,
            next(iter(state.waiting)),
            seen,
            self.risk,
            bid=a_little_above_the_market,
            longest_s=lambda listing: self.stay.longest_s if _refunds(listing) else math.inf,
        )

    def _remark(self, state: RunView, offer: Offer) -> str:
        most = a_little_above_the_market(state, offer)
        return (
            ", its first hour is never refunded"
            if most is None
            else f", free of charge if so: maximum price ${most:.6g}/h, {ABOVE_MARKET:.2%} above the market's"
        )


def a_little_above_the_market(state: RunView, offer: Offer) -> float | None:
    """The maximum price, where a preemption is refunded."""
    if not _refunds(state.listings[offer]):
        return None
    return state.usd_per_hour(offer) * (1.0 + ABOVE_MARKET) or None  # what is free has no maximum


def _refunds(listing: Listing) -> bool:
    from shoestring.models.offer_cost import refund_within_s

    return listing.offer.spot and refund_within_s(listing) >= HOUR_S
