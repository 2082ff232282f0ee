"""Which zone: dollars per hour of work that a machine there is expected to do, and whether moving to it pays.

Survival alone is a bad rule (it pays five times the price for a machine that lasts a little longer), and so is price
alone where machines last no longer than their set-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoestring.policies.placement.slack.guarantee import Switching

LEAST_HORIZON_H, MOST_HORIZON_H = 0.25, 12.0


@dataclass(frozen=True, slots=True)
class Quote:
    """A zone that has machines now."""

    zone: int
    usd_per_hour: float
    stay_h: float
    """Expected lifetime of a machine rented now (`models.zone_survival.expected_stay_h`)."""
    spell_age_s: float
    """How long the zone has had machines."""
    egress_usd: float = 0.0
    """Cost of transferring the checkpoint there."""


def horizon_h(work_left_s: float) -> float:
    """How far ahead it matters whether a zone lasts: as long as there is work, but not days."""
    return min(MOST_HORIZON_H, max(LEAST_HORIZON_H, work_left_s / 3600))


def usd_per_useful_hour(quote: Quote, switching: Switching) -> float:
    setup_h = switching.setup_s / 3600
    return (quote.usd_per_hour * (quote.stay_h + setup_h) + quote.egress_usd) / quote.stay_h


def best_quote(quotes: Sequence[Quote], switching: Switching) -> Quote:
    return min(quotes, key=lambda quote: (usd_per_useful_hour(quote, switching), quote.zone))


def moving_pays(usd_per_hour_here: float, there: Quote, switching: Switching, slack_usd: float) -> bool:
    """Are the expected savings there more than twice the cost of the move, plus the slack that it uses up?"""
    saved = (usd_per_hour_here - there.usd_per_hour) * there.stay_h
    move = switching.setup_s / 3600 * there.usd_per_hour + there.egress_usd
    return saved > 2.0 * move + slack_usd
