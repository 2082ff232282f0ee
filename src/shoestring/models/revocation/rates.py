"""What does the provider say, or a record of availability? Chances that do not rest on prices.

On markets of today the price says nothing about revocation: machines go when their capacity is wanted back.
"""

from __future__ import annotations

import math

import numpy as np

from shoestring.errors import SpecError
from shoestring.kernel.types import Fact, Offer
from shoestring.market.simulated.availability import Run
from shoestring.models.revocation.model import Questions
from shoestring.models.revocation.price_arrays import HOUR_S, Floats
from shoestring.values import did_you_mean

MONTH_H = 30 * 24.0
BANDS = {"<5%": 0.025, "5-10%": 0.075, "10-15%": 0.125, "15-20%": 0.175, ">20%": 0.25}
"""The bands in which Amazon publishes how often machines of a type were interrupted in a month, and the share that each
is taken for: its middle; for the open one a guess."""


def per_hour_of(band: str) -> float:
    """A published band as a rate per hour, read as the share of machines that do not live through a month."""
    if band not in BANDS:
        raise SpecError(f"interruption band {band!r} is unknown", hint=did_you_mean(band, BANDS))
    return -math.log(1.0 - BANDS[band]) / MONTH_H


class InterruptionPrior(Fact, frozen=True, kw_only=True, tag="interruption_prior"):
    """A constant rate for each machine type or family, whatever the price and the age."""

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
        """Interruptions per hour; none of machines that nobody takes away."""
        if not offer.spot:
            return 0.0
        family = offer.machine.partition(".")[0] if "." in offer.machine else offer.machine.rpartition("-")[0]
        return self.per_hour.get(offer.machine, self.per_hour.get(family, self.otherwise_per_hour))

    def chance(self, asked: Questions, /) -> Floats:
        rates = np.array([self.rate_of(offer) for offer in asked.markets.offers])[asked.market]
        gone: Floats = -np.expm1(-rates * asked.within_s / HOUR_S)
        return gone


class AvailabilityFrequency(Fact, frozen=True, kw_only=True, tag="availability_frequency"):
    """A rate per offer from recorded availability up to the moment asked about: losses per hour of having a machine.

    Traces are as `market.simulated.availability.read_availability` gives them. `prior_h` hours at `prior_per_hour` are
    added to each, so that a short quiet trace does not promise safety.
    """

    runs: tuple[tuple[Offer, tuple[Run, ...]], ...]
    prior_per_hour: float = 0.1
    prior_h: float = 10.0

    def chance(self, asked: Questions, /) -> Floats:
        traces = dict(self.runs)
        rates = np.empty(len(asked))
        for market, offer in enumerate(asked.markets.offers):
            mine = np.flatnonzero(asked.market == market)
            rates[mine] = self._rates(traces.get(offer, ()), asked.at[mine])
        gone: Floats = -np.expm1(-rates * asked.within_s / HOUR_S)
        return gone

    def _rates(self, runs: tuple[Run, ...], at: Floats) -> Floats:
        """Losses per machine-hour before each moment. A loss is known once the run after it has begun."""
        starts, ends, counts = (
            np.array(column, dtype=np.float64) for column in (zip(*runs, strict=True) if runs else ((), (), ()))
        )
        held = np.clip(at[:, None] - starts, 0.0, ends - starts) * counts / HOUR_S
        lost = np.maximum(counts[:-1] - counts[1:], 0.0) * (at[:, None] >= ends[:-1])
        rates: Floats = (lost.sum(axis=1) + self.prior_per_hour * self.prior_h) / (held.sum(axis=1) + self.prior_h)
        return rates
