"""Rank offers by the expected cost of a training step: used by `cheapest_step`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from shoestring.kernel.types import BillingName, JobId, Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import learned_speeds
from shoestring.models.speed.progress import steps_left
from shoestring.models.step_cost import HOUR_S, Overheads, usd_per_useful_step

REFUND_WITHIN_S: dict[BillingName, float] = {"aws_spot": HOUR_S, "per_hour": HOUR_S, "gcp_preemptible": 60.0}
"""A machine that is preempted before this age is free of charge."""
PRIOR_H = 20.0
"""Weight of the assumed interruption rate, in machine-hours, against what this run has observed."""
HURRY = 0.01
"""What an hour of waiting is worth, as a share of an on-demand hour. Without it, machines that are preempted at once,
and refunded, would rank best."""


class OfferPrice(NamedTuple):
    listing: Listing
    usd_per_step: float
    usd_per_hour: float
    step_s: float
    chance: float
    """Of preemption within an hour."""


class Risk(Protocol):
    """How likely machines are to be preempted."""

    def chances(self, view: RunView, listings: Sequence[Listing], maxima: Sequence[float | None], /) -> Sequence[float]:
        """For each listing, requested now with that maximum price: the chance of preemption within an hour."""
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
    """All offers, cheapest step of this trial first. Spot offers above the on-demand price are left out. For a gang
    larger than a machine, the share that fits on one machine is compared.

    `bid`: the maximum price of the request. `longest_s`: how long the trial would stay at most.
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
        max(1, steps_left(view, job, job.step)),
        chance,
        usd_per_hour * shares,
        refund_within_s=[refund_within_s(listing) for listing in offers],
        at_most_s=[longest_s(listing) for listing in offers],
        notice_s=[listing.notice_s for listing in offers],
        overheads=replace(overheads, hour_usd=waiting_usd),
    )
    rows = zip(offers, price.tolist(), usd_per_hour.tolist(), step_s.tolist(), chance.tolist(), strict=True)
    return sorted((OfferPrice(*row) for row in rows), key=lambda row: (row.usd_per_step, row.listing.offer))


def refund_within_s(listing: Listing) -> float:
    """Before this age a preempted machine is free of charge."""
    return REFUND_WITHIN_S.get(listing.billing, 0.0)


def interruption_chance(view: RunView, listing: Listing, assumed_per_hour: float) -> float:
    """Of preemption within an hour: the assumed rate, corrected by the machines of this run."""
    offer = listing.offer
    if not offer.spot:
        return 0.0
    account = view.accounts.get(offer)
    revoked, held_s = (account.revoked, account.seconds) if account is not None else (0, 0.0)
    for lease in view.leases.values():
        if lease.offer == offer and lease.granted_at is not None:
            held_s += view.now - lease.granted_at
            revoked += lease.gone_at is not None
    per_hour = (assumed_per_hour * PRIOR_H + revoked) / (PRIOR_H + held_s / HOUR_S)
    return -math.expm1(-per_hour)


def _worth_bidding(view: RunView, listing: Listing) -> bool:
    return not listing.offer.spot or view.usd_per_hour(listing.offer) <= listing.on_demand_usd_per_hour


def _usd_per_hour(view: RunView, listing: Listing) -> float:
    return view.usd_per_hour(listing.offer) if listing.offer.spot else listing.on_demand_usd_per_hour
