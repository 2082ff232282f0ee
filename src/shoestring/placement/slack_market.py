"""The market as the slack programme wants it, from what a run may know: prices, denials, its own machines' fates."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING

from shoestring.kernel.records import Job
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.placement.buying import RETRY_AFTER_S
from shoestring.placement.pricing import per_slot
from shoestring.placement.slack_guarantee import Switching
from shoestring.placement.slack_programme import Programme, Terms, solve
from shoestring.placement.slack_zones import Quote, best_quote, horizon_h, usd_per_useful_hour

if TYPE_CHECKING:
    from shoestring.models.zone_survival import ZoneRecord

UNTRIED_AGE_S = 3600.0
"""A zone that has not refused anything is taken to have had machines for an hour before the run."""
ELSEWHERE_SHARE = 0.5
"""Of the zones beside it that still have machines when one loses its own: losses are correlated."""
PROGRAMMES_KEPT = 16


@dataclass(frozen=True)
class SpotMarket:
    """Spot offers that can be had now and suit a trial, in one order; a quote's zone is its place there."""

    offers: tuple[Offer, ...]
    quotes: tuple[Quote, ...]

    def ranked(self, switching: Switching) -> list[tuple[Offer, str]]:
        """Cheapest useful hour first."""
        order = sorted(self.quotes, key=lambda quote: (usd_per_useful_hour(quote, switching), quote.zone))
        return [
            (
                self.offers[quote.zone],
                f"${quote.usd_per_hour:.4f}/h for a slot, expected to stay {quote.stay_h:.1f} h: "
                f"${usd_per_useful_hour(quote, switching):.4f} per useful hour",
            )
            for quote in order
        ]

    def place(self, offer: Offer) -> int:
        return self.offers.index(offer) if offer in self.offers else -1


def spot_market(state: RunView, job: Job, work_left_s: float) -> SpotMarket:
    """Offers above the on-demand price, and those denied a moment ago, are none."""
    from shoestring.models.zone_survival import expected_stay_h

    offers: list[Offer] = []
    quotes: list[Quote] = []
    for offer in sorted(state.listings):
        listing = state.listings[offer]
        if not offer.spot or job.offer not in (None, offer) or listing.slots < min(job.slots, state.largest_slots):
            continue
        usd_per_hour = state.usd_per_hour(offer)
        denied = state.denied_at.get(offer)
        if usd_per_hour > listing.on_demand_usd_per_hour or (denied is not None and state.now < denied + RETRY_AFTER_S):
            continue
        age_s = state.now - state.started_at + UNTRIED_AGE_S if denied is None else state.now - denied
        stay_h = expected_stay_h(horizon_h(work_left_s), age_s / 3600, _record(state, offer))
        quotes.append(Quote(len(offers), per_slot(usd_per_hour, listing), stay_h, spell_age_s=age_s))
        offers.append(offer)
    return SpotMarket(tuple(offers), tuple(quotes))


def programme_for(
    state: RunView, market: SpotMarket, switching: Switching, kept_usd_per_hour: float, work_s: float, slack_s: float
) -> Programme:
    """Solved for a little more work and slack than there is, so that it serves for a while."""
    terms = _terms(state, market, switching, kept_usd_per_hour)
    asked = (terms, switching, _rounded_up(work_s), _rounded_up(slack_s))
    solved: dict[object, Programme] = state.memo("slack programmes", dict)
    if asked not in solved:
        if len(solved) >= PROGRAMMES_KEPT:
            solved.clear()
        solved[asked] = solve(*asked)
    return solved[asked]


def _terms(state: RunView, market: SpotMarket, switching: Switching, kept_usd_per_hour: float) -> Terms:
    from shoestring.models.zone_survival import ZoneRecord, losses_per_h, returns_per_h

    zones = {(offer.provider, offer.zone) for offer in state.listings if offer.spot}
    losses, spot_usd = losses_per_h(ZoneRecord()), kept_usd_per_hour
    if market.quotes:
        best = best_quote(market.quotes, switching)
        losses, spot_usd = losses_per_h(_record(state, market.offers[best.zone])), best.usd_per_hour
    return Terms(
        spot_usd_per_hour=_short(spot_usd),
        on_demand_usd_per_hour=_short(kept_usd_per_hour),
        young_losses_per_h=_short(2.0 * losses),
        old_losses_per_h=_short(losses),
        elsewhere=1.0 - ELSEWHERE_SHARE ** max(0, len(zones) - 1),
        returns_per_h=returns_per_h(ZoneRecord()),
        redo_s=switching.save_s,
    )


def _record(state: RunView, offer: Offer) -> ZoneRecord:
    """What became of the machines rented there, those that are still held among them."""
    from shoestring.models.zone_survival import ZoneRecord

    account = state.accounts.get(offer)
    held_s = sum(
        state.now - lease.granted_at
        for lease in state.leases.values()
        if lease.offer == offer and lease.granted_at is not None
    )
    if account is None:
        return ZoneRecord(uptime_h=held_s / 3600)
    return ZoneRecord(losses=account.revoked, uptime_h=(account.seconds + held_s) / 3600)


def _rounded_up(seconds: float) -> float:
    """To one of few sizes, each a quarter above the one before."""
    return 60.0 * 1.25 ** max(0, ceil(log(max(seconds, 60.0) / 60.0, 1.25)))


def _short(value: float) -> float:
    return float(f"{value:.2g}")
