"""The spot market for the slack programme, from what a run may know: prices, denials, its own preemptions."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING

from shoestring.kernel.records import Job
from shoestring.kernel.types import Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.facts import not_just_denied, per_slot
from shoestring.policies.placement.slack.dynamic_program import SlackMarket, SlackTable, solve
from shoestring.policies.placement.slack.guarantee import Switching
from shoestring.policies.placement.slack.per_trial import SETUP_S, SlackContext, TrialSlack
from shoestring.policies.placement.slack.zones import Quote, best_quote, horizon_h, usd_per_useful_hour

if TYPE_CHECKING:
    from shoestring.models.zone_survival import ZoneRecord

UNTIMED_WORK_S = 3600.0
"""The horizon while the amount of work is unknown."""
UNTRIED_AGE_S = 3600.0
"""A zone that has denied nothing is assumed to have had machines for an hour before the run."""
ELSEWHERE_SHARE = 0.5
"""Of the zones beside it that still have machines when one loses its own: losses are correlated."""
PROGRAMMES_KEPT = 16


@dataclass(frozen=True)
class SpotMarket:
    """Spot offers that are available now and suit a trial; a quote's zone is its index there."""

    offers: tuple[Offer, ...]
    quotes: tuple[Quote, ...]

    def ranked(self, switching: Switching) -> list[tuple[Offer, str]]:
        """Cheapest useful hour first."""
        order = sorted(self.quotes, key=lambda quote: (usd_per_useful_hour(quote, switching), quote.zone))
        return [
            (
                self.offers[quote.zone],
                f"${quote.usd_per_hour:.4f} for an hour of work, expected to last {quote.stay_h:.1f} h: "
                f"${usd_per_useful_hour(quote, switching):.4f} per useful hour",
            )
            for quote in order
        ]

    def place(self, offer: Offer) -> int:
        return self.offers.index(offer) if offer in self.offers else -1


def spot_market(context: SlackContext, job: Job, trial_slack: TrialSlack | None) -> SpotMarket:
    """Without offers above the on-demand price, those denied just now, and machines too slow to do the work in time.
    Prices are per hour of work, so that fast and slow machines compare."""
    from shoestring.models.zone_survival import expected_stay_h

    state = context.state
    known = context.speeds.known(job) if trial_slack is None else trial_slack.known
    horizon = horizon_h(UNTIMED_WORK_S if trial_slack is None else trial_slack.now.work_left_s)
    offers: list[Offer] = []
    quotes: list[Quote] = []
    unit_s = None if trial_slack is None else trial_slack.seconds_per_step
    for offer in _spot_offers(state):
        listing = state.listings[offer]
        if not _suits(state, job, listing):
            continue
        denied = state.denied_at.get(offer)
        if not not_just_denied(state, offer):
            continue
        usd_per_hour = state.usd_per_hour(offer)
        if usd_per_hour > listing.on_demand_usd_per_hour:
            continue
        step_s = context.speeds.seconds_per_step(known, listing, job.slots)
        unit_s = unit_s or step_s
        age_s = state.now - state.started_at + UNTRIED_AGE_S if denied is None else state.now - denied
        stay_h = expected_stay_h(horizon, age_s / 3600, _record(context, offer))
        if trial_slack is not None and not _fast_enough(step_s / unit_s, trial_slack, stay_h):
            continue
        quotes.append(Quote(len(offers), per_slot(usd_per_hour, listing) * step_s / unit_s, stay_h, spell_age_s=age_s))
        offers.append(offer)
    return SpotMarket(tuple(offers), tuple(quotes))


def spot_may_come(context: SlackContext, job: Job, trial_slack: TrialSlack) -> bool:
    """Is there a spot offer for this trial that may become available, and on which it would be in time?"""
    speeds, known = context.speeds, trial_slack.known
    suited = (
        x for x in map(context.state.listings.__getitem__, _spot_offers(context.state)) if _suits(context.state, job, x)
    )
    return any(
        _fast_enough(speeds.seconds_per_step(known, listing, job.slots) / trial_slack.seconds_per_step, trial_slack)
        for listing in suited
    )


def no_move_pays(context: SlackContext, job: Job, held: Offer, work_s: float) -> bool:
    """By prices alone, before a market is built: even on a machine that lasts to the end of the work, the savings would
    not be twice the cost of the move."""
    if job.offer is not None:
        return True
    least = min(context.usd_per_step.values())
    saved = (context.usd_per_step[held] - least) * horizon_h(work_s)
    return saved <= 2.0 * SETUP_S / 3600 * least


def programme_for(context: SlackContext, market: SpotMarket, trial_slack: TrialSlack) -> SlackTable:
    """Solved for a little more work and slack than there is, so that later looks and other trials can reuse it."""
    terms, now = _terms(context, market, trial_slack), trial_slack.now
    key = (
        terms,
        _rounded_switching(trial_slack.switching),
        _rounded_up(now.work_left_s + now.unsaved_s),
        _rounded_up(max(0.0, now.slack_s)),
    )
    solved: dict[object, SlackTable] = context.state.memo("slack programmes", dict)
    if key not in solved:
        if len(solved) >= PROGRAMMES_KEPT:
            solved.clear()
        solved[key] = solve(*key)
    return solved[key]


def _terms(context: SlackContext, market: SpotMarket, trial_slack: TrialSlack) -> SlackMarket:
    from shoestring.models.zone_survival import ZoneRecord, losses_per_h, returns_per_h

    zones = {(offer.provider, offer.zone) for offer in _spot_offers(context.state)}
    losses, spot_usd = losses_per_h(ZoneRecord()), trial_slack.on_demand_usd_per_hour
    if market.quotes:
        best = best_quote(market.quotes, trial_slack.switching)
        losses, spot_usd = losses_per_h(_record(context, market.offers[best.zone])), best.usd_per_hour
    return SlackMarket(
        spot_usd_per_hour=_short(spot_usd),
        on_demand_usd_per_hour=_short(trial_slack.on_demand_usd_per_hour),
        young_losses_per_h=_short(2.0 * losses),
        old_losses_per_h=_short(losses),
        elsewhere=1.0 - ELSEWHERE_SHARE ** max(0, len(zones) - 1),
        returns_per_h=returns_per_h(ZoneRecord()),
        redo_s=trial_slack.switching.save_s,
    )


def _record(context: SlackContext, offer: Offer) -> ZoneRecord:
    """Preemptions and uptime of the machines rented there, including those still held."""
    from shoestring.models.zone_survival import ZoneRecord

    account, held_s = context.state.accounts.get(offer), context.held_s.get(offer, 0.0)
    if account is None:
        return ZoneRecord(uptime_h=held_s / 3600)
    return ZoneRecord(losses=account.revoked, uptime_h=(account.seconds + held_s) / 3600)


def _spot_offers(state: RunView) -> list[Offer]:
    return state.memo("slack spot offers", lambda: sorted(offer for offer in state.listings if offer.spot))


def _suits(state: RunView, job: Job, listing: Listing) -> bool:
    return job.offer in (None, listing.offer) and listing.slots >= min(job.slots, state.largest_slots)


def _fast_enough(time_per_work: float, trial_slack: TrialSlack, stay_h: float | None = None) -> bool:
    """`time_per_work`: seconds there for a second of work. As fast as the on-demand fallback is always enough. A whole
    queue is likely to see as many preemptions as expected: each costs it a set-up."""
    room_s = trial_slack.now.time_left_s - trial_slack.switching.line_s
    work_s = time_per_work * trial_slack.now.work_left_s
    if trial_slack.behind.starts and stay_h is not None:
        work_s *= 1.0 + trial_slack.switching.setup_s / 3600 / stay_h
    return time_per_work <= 1.0 + 1e-9 or work_s <= room_s


def _rounded_up(seconds: float) -> float:
    """To one of few sizes, each 1.5 times the one before."""
    return 60.0 * 1.5 ** max(0, ceil(log(max(seconds, 60.0) / 60.0, 1.5)))


def _rounded_switching(switching: Switching) -> Switching:
    """Trials of nearly the same pace share a programme. The guarantee uses exact values."""
    return Switching(
        setup_s=_short(switching.setup_s),
        restore_s=_short(switching.restore_s),
        save_s=_short(switching.save_s),
        look_s=switching.look_s,
    )


def _short(value: float) -> float:
    return float(f"{value:.2g}")
