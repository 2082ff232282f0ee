"""Every offer by what a step of a trial is expected to cost there: what `cheapest_step` ranks by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from shoestring.kernel.types import BillingName, JobId, Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import learned_speeds
from shoestring.models.step_cost import HOUR_S, Overheads, usd_per_useful_step

REFUND_WITHIN_S: dict[BillingName, float] = {"aws_spot": HOUR_S, "per_hour": HOUR_S, "gcp_preemptible": 60.0}
"""Whoever is taken away before that age pays nothing."""
PRIOR_H = 20.0
"""Machine-hours that what was assumed of interruptions counts for, beside what this run has seen."""
HURRY = 0.01
"""What an hour of waiting is worth, as a share of an hour on demand. Without it, machines that are refunded because
they die at once would be the best of all."""


class OfferPrice(NamedTuple):
    listing: Listing
    usd_per_step: float
    usd_per_hour: float
    step_s: float
    chance: float
    """Of being taken away within an hour."""


class Risk(Protocol):
    """Who says how likely machines are to be taken away."""

    def chances(self, view: RunView, listings: Sequence[Listing], maxima: Sequence[float | None], /) -> Sequence[float]:
        """Of each, asked for now with that maximum price: the chance of being taken away within an hour."""
        ...


def offer_prices(
    view: RunView,
    job_id: JobId,
    overheads: Overheads,
    risk: Risk,
    *,
    bid: Callable[[RunView, Offer], float | None] = lambda _view, _offer: None,
    longest_s: Callable[[Listing], float] = lambda _listing: math.inf,
) -> list[OfferPrice]:
    """All offers, cheapest step of this trial first. Spot above the on-demand price is nothing to bid on. Of a gang
    that no machine holds, the share that one machine has is compared.

    `bid`: the maximum price that would be asked for. `longest_s`: how long the trial would stay at the longest.
    """
    job = view.jobs[job_id]
    offers = [listing for listing in view.listings.values() if _worth_bidding(view, listing)]
    if not offers:
        return []
    speeds = learned_speeds(view)
    slots = [min(job.slots, listing.slots) for listing in offers]
    step_s = np.array([speeds.step_time(job_id, x, n).expected_s for x, n in zip(offers, slots, strict=True)])
    shares = np.array([n / listing.slots for listing, n in zip(offers, slots, strict=True)])
    usd_per_hour = np.array([_usd_per_hour(view, listing) for listing in offers])
    chance = np.array(risk.chances(view, offers, [bid(view, listing.offer) for listing in offers]))
    waiting_usd = HURRY * min(x.on_demand_usd_per_hour * share for x, share in zip(offers, shares, strict=True))
    price = usd_per_useful_step(
        step_s,
        max(1, job.until_step - job.step),
        chance,
        usd_per_hour * shares,
        refund_within_s=[refund_within_s(listing) for listing in offers],
        at_most_s=[longest_s(listing) for listing in offers],
        notice_s=[listing.notice_s for listing in offers],
        overheads=Overheads(overheads.provision_s, overheads.start_s, hour_usd=waiting_usd),
    )
    rows = zip(offers, price.tolist(), usd_per_hour.tolist(), step_s.tolist(), chance.tolist(), strict=True)
    return sorted((OfferPrice(*row) for row in rows), key=lambda row: (row.usd_per_step, row.listing.offer))


def refund_within_s(listing: Listing) -> float:
    """Before that age a machine that is taken away costs nothing."""
    return REFUND_WITHIN_S.get(listing.billing, 0.0)


def interruption_chance(view: RunView, listing: Listing, assumed_per_hour: float) -> float:
    """That of being taken away within an hour: what is assumed, corrected by the machines of this run."""
    offer = listing.offer
    if not offer.spot:
        return 0.0
    account = view.accounts.get(offer)
    taken, held_s = (account.revoked, account.seconds) if account is not None else (0, 0.0)
    for lease in view.leases.values():
        if lease.offer == offer and lease.granted_at is not None:
            held_s += view.now - lease.granted_at
            taken += lease.gone_at is not None
    per_hour = (assumed_per_hour * PRIOR_H + taken) / (PRIOR_H + held_s / HOUR_S)
    return -math.expm1(-per_hour)


def _worth_bidding(view: RunView, listing: Listing) -> bool:
    return not listing.offer.spot or view.usd_per_hour(listing.offer) <= listing.on_demand_usd_per_hour


def _usd_per_hour(view: RunView, listing: Listing) -> float:
    return view.usd_per_hour(listing.offer) if listing.offer.spot else listing.on_demand_usd_per_hour
