"""How often would such a machine have been revoked recently? Nothing is fitted: the market's past is counted."""

from __future__ import annotations

import numpy as np

from shoestring.kernel.types import Fact
from shoestring.models.revocation.features import CHUNK, ended_so
from shoestring.models.revocation.model import Queries, certain_above_maximum
from shoestring.models.revocation.price_arrays import DAY_S, HOUR_S, Floats


class EmpiricalFrequency(Fact, frozen=True, kw_only=True, tag="empirical_frequency"):
    """chance = (ended + p * prior_s) / (begun + prior_s), p = 1 - (1 - prior_chance)^(within_s / 3600).

    `begun`: seconds of the last `past_s` at which a lease with this maximum could have begun; `ended`: those from
    which it was revoked within `within_s`. Times whose horizon is not over yet are not counted. The prior is there
    because a market that was quiet for a week is not safe for ever.
    """

    past_s: float = 7 * DAY_S
    prior_chance: float = 0.02
    prior_s: float = 6 * HOUR_S
    """Weight of the prior, in seconds of past."""

    def chance(self, queries: Queries, /) -> Floats:
        parts = [self._chance(queries.pick(slice(begin, begin + CHUNK))) for begin in range(0, len(queries), CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _chance(self, queries: Queries) -> Floats:
        seen = queries.markets.windows(queries.market, queries.at - self.past_s, queries.at)
        ended, begun = ended_so(queries, seen)
        prior = 1.0 - (1.0 - self.prior_chance) ** (queries.within_s / HOUR_S)
        return certain_above_maximum(queries, (ended + prior * self.prior_s) / (begun + self.prior_s))
