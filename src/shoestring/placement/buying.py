"""Rent what is missing, best offer first, going down the list when one is refused by the guard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Job
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.placement.matching import RETRY, request, slots_missing

RETRY_AFTER_S = 60.0
"""How long an offer that was denied is left alone."""


def rent_missing(state: RunView, rank: Callable[[RunView], Sequence[tuple[Offer, str]]]) -> Iterator[d.Decision]:
    """Request machines until waiting jobs are provided for. `rank` pairs each offer with why it is chosen; it looks at
    every price, so it is asked only when there is something to rent."""
    if not state.waiting:
        return
    room = state.spec.max_machines - state.in_hand
    if room <= 0:
        return
    missing = slots_missing(state, at_most=room * state.largest_slots)
    if missing <= 0:
        return
    first = state.jobs[next(iter(state.waiting))]  # whoever has waited longest must fit, or would wait for ever
    ranked = [pair for pair in rank(state) if _fits(state, first, pair[0])]
    candidates = [pair for pair in ranked if _not_just_denied(state, pair[0])]
    if not candidates and RETRY not in state.timers:
        why = "every offer was denied just now" if ranked else "nothing that fits is offered at a price worth paying"
        yield d.WakeAt(name=RETRY, at=state.now + RETRY_AFTER_S, why=f"{why}: try again")
    if state.leases:  # with nothing in hand, ask all the same: the guard's refusal ends the run with its reason
        free_usd = state.spec.budget_usd - state.spent_usd - state.reserved_usd
        candidates = [pair for pair in candidates if _first_minute_usd(state, pair[0]) <= free_usd]
    while missing > 0 and room > 0 and candidates:
        offer, why = candidates[0]
        refusals = state.refusals
        yield request(state, offer, why)
        if state.refusals > refusals:
            ceiling = _ceiling(state, offer)
            candidates = [pair for pair in candidates if _ceiling(state, pair[0]) < ceiling]
            continue
        missing -= state.listings[offer].slots
        room -= 1


def _fits(state: RunView, job: Job, offer: Offer) -> bool:
    return state.listings[offer].slots >= job.slots and job.offer in (None, offer)


def _ceiling(state: RunView, offer: Offer) -> float:
    return state.listings[offer].ceiling_usd_per_hour(None)


def _first_minute_usd(state: RunView, offer: Offer) -> float:
    """What must be free at the least: asking for less spares the guard, and the journal, a refusal at every turn."""
    return _ceiling(state, offer) / 60


def _not_just_denied(state: RunView, offer: Offer) -> bool:
    denied = state.denied_at.get(offer)
    return denied is None or denied + RETRY_AFTER_S <= state.now
