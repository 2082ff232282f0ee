"""How often would a machine like this have been taken away lately? Nothing is fitted: the market's past answers."""

from __future__ import annotations

import numpy as np

from shoestring.kernel.types import Fact
from shoestring.models.revocation.features import CHUNK, ended_so
from shoestring.models.revocation.model import Questions, certain_above_maximum
from shoestring.models.revocation.price_arrays import DAY_S, HOUR_S, Floats


class EmpiricalFrequency(Fact, frozen=True, kw_only=True, tag="empirical_frequency"):
    """The share of the last days' moments from which a lease with this maximum was gone within the time asked about.

    Moments whose time is not over yet are not counted, and a little of a prior is mixed in: a market that was quiet for
    a week is not safe for ever.
    """

    past_s: float = 7 * DAY_S
    prior_chance: float = 0.02
    prior_s: float = 6 * HOUR_S
    """The prior counts as much as so much past."""

    def chance(self, asked: Questions, /) -> Floats:
        parts = [self._chance(asked.pick(slice(begin, begin + CHUNK))) for begin in range(0, len(asked), CHUNK)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _chance(self, asked: Questions) -> Floats:
        seen = asked.markets.windows(asked.market, asked.at - self.past_s, asked.at)
        ended, begun = ended_so(asked, seen)
        prior = 1.0 - (1.0 - self.prior_chance) ** (asked.within_s / HOUR_S)
        return certain_above_maximum(asked, (ended + prior * self.prior_s) / (begun + self.prior_s))
