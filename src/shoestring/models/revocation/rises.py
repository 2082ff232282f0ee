"""How often did the price rise so far recently? Nothing is fitted: the market's past is counted.

Which level a price is at changes from day to day, and how it moves hardly does. A lease whose maximum is just above the
present price is lost at the next rise, whatever level that begins at: so each past moment is asked about a maximum that
is as far above the price of that moment as the maximum in question is above the present one.
"""

from __future__ import annotations

import numpy as np

from shoestring.kernel.types import Fact
from shoestring.models.revocation.features import CHUNK
from shoestring.models.revocation.model import Queries, certain_above_maximum, stretched
from shoestring.models.revocation.price_arrays import DAY_S, Floats, Windows


class RelativeRises(Fact, frozen=True, kw_only=True, tag="relative_rises"):
    """chance = (ended + p * prior_s) / (begun + prior_s), p = 1 - (1 - q)^(within_s / 3600), q = prior_at_price / (1 +
    (factor - 1) / prior_rise), factor = maximum / present price.

    `begun`: seconds of the last `past_s` whose following `within_s` are over; `ended`: those within which the price
    rose by more than the factor. Where the maximum is far above the price, at the on-demand
    price for instance, `EmpiricalFrequency` is the better count: spikes end at a level.
    """

    past_s: float = 3 * DAY_S
    prior_at_price: float = 0.5
    """Of losing a machine within an hour whose maximum is the present price: in the auctions of 2016, on the average of
    49 markets in the weeks for choosing."""
    prior_rise: float = 0.02
    """So far above the price a maximum has half of that chance; the form fits from 0.05 % to three times the price."""
    prior_s: float = DAY_S
    """Weight of the prior, in seconds of past. Placement picks the lowest cost of many offers, and with it the highest
    errors of their counts: without a prior it would pay for them."""

    def chance(self, queries: Queries, /) -> Floats:
        parts = [self._chance(queries.pick(slice(begin, begin + CHUNK))) for begin in range(0, len(queries), CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _chance(self, queries: Queries) -> Floats:
        seen = queries.markets.windows(queries.market, queries.at - self.past_s, queries.at)
        within = queries.within_s[seen.owner]
        decided = np.minimum(seen.until, queries.at[seen.owner] - within)
        factor = queries.max_usd_per_hour / queries.price_now()
        rises_at = _rises_at(seen, factor[seen.owner], within)
        ended = seen.total(np.maximum(decided - np.maximum(seen.since, rises_at - within), 0.0))
        begun = seen.total(np.maximum(decided - seen.since, 0.0))
        within_an_hour = self.prior_at_price / (1.0 + np.maximum(factor - 1.0, 0.0) / self.prior_rise)
        prior = stretched(within_an_hour, queries.within_s)
        return certain_above_maximum(queries, (ended + prior * self.prior_s) / (begun + self.prior_s))


def _rises_at(seen: Windows, factor: Floats, within: Floats) -> Floats:
    """When the price of each record is first exceeded by more than `factor`, infinity if not in time to matter."""
    found = np.full(len(seen.price), np.inf)
    last = np.append(seen.heads[1:], len(seen.price))[seen.owner] - 1
    searching, ahead = np.arange(len(seen.price)), 0
    while len(searching):
        ahead += 1
        searching = searching[searching + ahead <= last[searching]]
        later = searching + ahead
        in_time = seen.since[later] < seen.until[searching] + within[searching]
        searching, later = searching[in_time], later[in_time]
        risen = seen.price[later] > factor[searching] * seen.price[searching]
        found[searching[risen]] = seen.since[later[risen]]
        searching = searching[~risen]
    return found
