"""A revocation model's chances for machines that a policy could request now, from the prices so far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from shoestring.kernel.types import Listing, PriceHistory
from shoestring.kernel.view import RunView
from shoestring.models.revocation.model import Queries, RevocationModel
from shoestring.models.revocation.price_arrays import DAY_S, Markets

PAST_S = 8 * DAY_S
"""No model looks back further than a week. Months of older records would only be copied."""


def chances_now(
    model: RevocationModel, view: RunView, listings: Sequence[Listing], maxima: Sequence[float | None]
) -> list[float]:
    """Of preemption within an hour, each with its maximum price (the on-demand price where it has none). On-demand
    machines are never preempted."""
    spot = [index for index, listing in enumerate(listings) if listing.offer.spot]
    chances = [0.0] * len(listings)
    if not spot:
        return chances
    queries = Queries.about(
        Markets.of(
            [_lately(view.history(listings[index].offer)) for index in spot],
            {listings[index].offer: listings[index].on_demand_usd_per_hour for index in spot},
        ),
        np.arange(len(spot)),
        np.full(len(spot), view.now),
        np.array([listings[index].ceiling_usd_per_hour(maxima[index]) for index in spot]),
    )
    for index, chance in zip(spot, model.chance(queries).tolist(), strict=True):
        chances[index] = chance
    return chances


def _lately(history: PriceHistory) -> PriceHistory:
    """The records of the last days, with the one in force when they began."""
    first = max(0, bisect_right(history.times, history.until - PAST_S) - 1)
    if first == 0:
        return history
    return PriceHistory(
        offer=history.offer,
        times=history.times[first:],
        usd_per_hour=history.usd_per_hour[first:],
        until=history.until,
    )
