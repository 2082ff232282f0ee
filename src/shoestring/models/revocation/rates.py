"""Constant rates, from the provider's figures or from recorded availability: chances that do not depend on prices.

On today's markets the price does not predict revocation: machines are preempted when their capacity is needed.
"""

from __future__ import annotations

import math

import numpy as np

from shoestring.errors import SpecError
from shoestring.kernel.types import Fact, Offer
from shoestring.market.simulated.availability import Run
from shoestring.models.revocation.model import Queries
from shoestring.models.revocation.price_arrays import HOUR_S, Floats
from shoestring.values import did_you_mean

MONTH_H = 30 * 24.0
BANDS = {"<5%": 0.025, "5-10%": 0.075, "10-15%": 0.125, "15-20%": 0.175, ">20%": 0.25}
"""The bands in which Amazon publishes how often machines of a type were interrupted in a month, and the share assumed
for each: its middle; for the open one a guess."""


def per_hour_of(band: str) -> float:
    """-ln(1 - share) / 720: a published band as a rate per hour, read as the share of machines lost in a month."""
    if band not in BANDS:
        raise SpecError(f"interruption band {band!r} is unknown", hint=did_you_mean(band, BANDS))
    return -math.log(1.0 - BANDS[band]) / MONTH_H


class InterruptionPrior(Fact, frozen=True, kw_only=True, tag="interruption_prior"):
    """chance = 1 - exp(-rate * within_h): a constant rate per machine type or family, whatever the price or age."""

    per_hour: dict[str, float] = {}
    """By machine type ("m5.large") or family ("m5", "n1-standard"); the longer name counts."""
    otherwise_per_hour: float = 0.02
    """An assumption, that of the synthetic market: the middle of what people report."""

    def __post_init__(self) -> None:
        for name, rate in {**self.per_hour, "otherwise_per_hour": self.otherwise_per_hour}.items():
            if not 0 <= rate < math.inf:
                raise SpecError(f"interruptions of {name}: {rate!r} an hour is not a rate", hint="give 0 or more")

    @staticmethod
    def from_bands(bands: dict[str, str], otherwise: str = "5-10%") -> InterruptionPrior:
        """Rates from published bands: `InterruptionPrior.from_bands({"m5": "<5%", "p3": ">20%"})`."""
        rates = {name: per_hour_of(band) for name, band in bands.items()}
        return InterruptionPrior(per_hour=rates, otherwise_per_hour=per_hour_of(otherwise))

    def rate_of(self, offer: Offer) -> float:
        """Interruptions per hour; 0 for on-demand machines."""
        if not offer.spot:
            return 0.0
        family = offer.machine.partition(".")[0] if "." in offer.machine else offer.machine.rpartition("-")[0]
        return self.per_hour.get(offer.machine, self.per_hour.get(family, self.otherwise_per_hour))

    def chance(self, queries: Queries, /) -> Floats:
        rates = np.array([self.rate_of(offer) for offer in queries.markets.offers])[queries.market]
        gone: Floats = -np.expm1(-rates * queries.within_s / HOUR_S)
        return gone


class AvailabilityFrequency(Fact, frozen=True, kw_only=True, tag="availability_frequency"):
    """chance = 1 - exp(-rate * within_h), rate = (losses + prior_per_hour * prior_h) / (machine-hours + prior_h).

    A rate per offer from recorded availability up to the time of the query. Traces are as
    `market.simulated.availability.read_availability` returns them. The prior is there because a short quiet trace is
    no proof of safety.
    """

    runs: tuple[tuple[Offer, tuple[Run, ...]], ...]
    prior_per_hour: float = 0.1
    prior_h: float = 10.0

    def chance(self, queries: Queries, /) -> Floats:
        traces = dict(self.runs)
        rates = np.empty(len(queries))
        for market, offer in enumerate(queries.markets.offers):
            mine = np.flatnonzero(queries.market == market)
            rates[mine] = self._rates(traces.get(offer, ()), queries.at[mine])
        gone: Floats = -np.expm1(-rates * queries.within_s / HOUR_S)
        return gone

    def _rates(self, runs: tuple[Run, ...], at: Floats) -> Floats:
        """Losses per machine-hour before each time. A loss is known once the run after it has begun."""
        starts, ends, counts = (
            np.array(column, dtype=np.float64) for column in (zip(*runs, strict=True) if runs else ((), (), ()))
        )
        held = np.clip(at[:, None] - starts, 0.0, ends - starts) * counts / HOUR_S
        lost = np.maximum(counts[:-1] - counts[1:], 0.0) * (at[:, None] >= ends[:-1])
        rates: Floats = (lost.sum(axis=1) + self.prior_per_hour * self.prior_h) / (held.sum(axis=1) + self.prior_h)
        return rates
