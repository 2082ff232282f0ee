"""The market as the slack programme wants it, from what a run may know: prices, denials, its own machines' fates."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING

from shoestring.kernel.records import Job
from shoestring.kernel.types import Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.facts import RETRY_AFTER_S, per_slot
from shoestring.policies.placement.slack.dynamic_program import SlackMarket, SlackTable, solve
from shoestring.policies.placement.slack.guarantee import Switching
from shoestring.policies.placement.slack.trial_slack import SETUP_S, SlackContext, TrialSlack
from shoestring.policies.placement.slack.zones import Quote, best_quote, horizon_h, usd_per_useful_hour

if TYPE_CHECKING:
    from shoestring.models.zone_survival import ZoneRecord

UNTIMED_WORK_S = 3600.0
"""How far ahead is looked while nobody knows how much work there is."""
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
                f"${quote.usd_per_hour:.4f} for an hour of work, expected to stay {quote.stay_h:.1f} h: "
                f"${usd_per_useful_hour(quote, switching):.4f} per useful hour",
            )
            for quote in order
        ]

    def place(self, offer: Offer) -> int:
        return self.offers.index(offer) if offer in self.offers else -1


def spot_market(turn: SlackContext, job: Job, net: TrialSlack | None) -> SpotMarket:
    """Offers above the on-demand price, and those denied a moment ago, are none; nor are machines so slow that the work
    would not be done in time on them. Prices are for an hour of work, in which fast and slow machines compare."""
    from shoestring.models.zone_survival import expected_stay_h

    state = turn.state
    known = turn.speeds.known(job)
    horizon = horizon_h(UNTIMED_WORK_S if net is None else net.now.work_left_s)
    offers: list[Offer] = []
    quotes: list[Quote] = []
    unit_s = None if net is None else net.seconds_per_step
    for offer in _spot_offers(state):
        listing = state.listings[offer]
        if not _suits(state, job, listing):
            continue
        denied = state.denied_at.get(offer)
        if denied is not None and state.now < denied + RETRY_AFTER_S:
            continue
        usd_per_hour = state.usd_per_hour(offer)
        if usd_per_hour > listing.on_demand_usd_per_hour:
            continue
        step_s = turn.speeds.seconds_per_step(known, listing, job.slots)
        unit_s = unit_s or step_s
        if net is not None and not _fast_enough(step_s / unit_s, net):
            continue
        age_s = state.now - state.started_at + UNTRIED_AGE_S if denied is None else state.now - denied
        stay_h = expected_stay_h(horizon, age_s / 3600, _record(turn, offer))
        quotes.append(Quote(len(offers), per_slot(usd_per_hour, listing) * step_s / unit_s, stay_h, spell_age_s=age_s))
        offers.append(offer)
    return SpotMarket(tuple(offers), tuple(quotes))


def spot_may_come(turn: SlackContext, job: Job, net: TrialSlack) -> bool:
    """Is there any spot machine for this trial that waiting could bring, and on which it would be in time?"""
    speeds, known = turn.speeds, turn.speeds.known(job)
    suited = (x for x in map(turn.state.listings.__getitem__, _spot_offers(turn.state)) if _suits(turn.state, job, x))
    return any(
        _fast_enough(speeds.seconds_per_step(known, listing, job.slots) / net.seconds_per_step, net)
        for listing in suited
    )


def no_move_pays(turn: SlackContext, job: Job, held: Offer, work_s: float) -> bool:
    """Told by prices alone, before a market is built: even in a zone that lasts to the end of the work, what is saved
    would not be twice what the move costs."""
    if job.offer is not None:
        return True
    least = min(turn.usd_per_step.values())
    saved = (turn.usd_per_step[held] - least) * horizon_h(work_s)
    return saved <= 2.0 * SETUP_S / 3600 * least


def programme_for(turn: SlackContext, market: SpotMarket, net: TrialSlack) -> SlackTable:
    """Solved for a little more work and slack than there is, so that it serves for a while, and for other trials."""
    terms, now = _terms(turn, market, net), net.now
    asked = (
        terms,
        _rounded_switching(net.switching),
        _rounded_up(now.work_left_s + now.unsaved_s),
        _rounded_up(max(0.0, now.slack_s)),
    )
    solved: dict[object, SlackTable] = turn.state.memo("slack programmes", dict)
    if asked not in solved:
        if len(solved) >= PROGRAMMES_KEPT:
            solved.clear()
        solved[asked] = solve(*asked)
    return solved[asked]


def _terms(turn: SlackContext, market: SpotMarket, net: TrialSlack) -> SlackMarket:
    from shoestring.models.zone_survival import ZoneRecord, losses_per_h, returns_per_h

    zones = {(offer.provider, offer.zone) for offer in _spot_offers(turn.state)}
    losses, spot_usd = losses_per_h(ZoneRecord()), net.kept_usd_per_hour
    if market.quotes:
        best = best_quote(market.quotes, net.switching)
        losses, spot_usd = losses_per_h(_record(turn, market.offers[best.zone])), best.usd_per_hour
    return SlackMarket(
        spot_usd_per_hour=_short(spot_usd),
        on_demand_usd_per_hour=_short(net.kept_usd_per_hour),
        young_losses_per_h=_short(2.0 * losses),
        old_losses_per_h=_short(losses),
        elsewhere=1.0 - ELSEWHERE_SHARE ** max(0, len(zones) - 1),
        returns_per_h=returns_per_h(ZoneRecord()),
        redo_s=net.switching.save_s,
    )


def _record(turn: SlackContext, offer: Offer) -> ZoneRecord:
    """What became of the machines rented there, those that are still held among them."""
    from shoestring.models.zone_survival import ZoneRecord

    account, held_s = turn.state.accounts.get(offer), turn.held_s.get(offer, 0.0)
    if account is None:
        return ZoneRecord(uptime_h=held_s / 3600)
    return ZoneRecord(losses=account.revoked, uptime_h=(account.seconds + held_s) / 3600)


def _spot_offers(state: RunView) -> list[Offer]:
    return state.memo("slack spot offers", lambda: sorted(offer for offer in state.listings if offer.spot))


def _suits(state: RunView, job: Job, listing: Listing) -> bool:
    return job.offer in (None, listing.offer) and listing.slots >= min(job.slots, state.largest_slots)


def _fast_enough(time_per_work: float, net: TrialSlack) -> bool:
    """A second of work takes so many there. As fast as the machine that work is reckoned by is always enough."""
    room_s = net.now.time_left_s - net.switching.line_s
    return time_per_work <= 1.0 + 1e-9 or time_per_work * net.now.work_left_s <= room_s


def _rounded_up(seconds: float) -> float:
    """To one of few sizes, each half as large again as the one before."""
    return 60.0 * 1.5 ** max(0, ceil(log(max(seconds, 60.0) / 60.0, 1.5)))


def _rounded_switching(switching: Switching) -> Switching:
    """Trials of nearly the same pace share a programme. The guarantee does not: it is asked with what is known."""
    return Switching(
        setup_s=_short(switching.setup_s),
        restore_s=_short(switching.restore_s),
        save_s=_short(switching.save_s),
        look_s=switching.look_s,
    )


def _short(value: float) -> float:
    return float(f"{value:.2g}")
