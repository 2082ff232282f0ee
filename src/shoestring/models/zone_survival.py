"""How long a zone goes on having spot machines: from its record of probes, and from how long it has had them so far.

Availability comes in spells, and old spells last: the longer a zone has had capacity, the longer it is likely to go on.
What happened to one machine tells little; what is counted here is whether the ZONE had machines to give.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

HAZARD = 0.85
"""How fast trust wears off. Fitted on recorded availability; a fitted logistic regression did no better."""
LEAST_AGE_H = 1 / 60
"""A spell just seen to begin is a minute old: an age of nothing would mean that it cannot last."""
YOUNG_H = 1.0
"""Spells younger than this end far more often."""


@dataclass(frozen=True)
class ZoneRecord:
    """What probes told of a zone lately. An empty record is a zone nobody has tried: the priors speak."""

    losses: float = 0.0
    uptime_h: float = 0.0
    returns: float = 0.0
    downtime_h: float = 0.0


@dataclass(frozen=True)
class LossRates:
    """Losses an hour, in the first hour of a spell and after it."""

    young_per_h: float
    old_per_h: float


def mean_spell_h(record: ZoneRecord) -> float:
    """How long its spells of availability last, with a weak prior: half a loss in eight hours."""
    return (record.uptime_h + 8.0) / (record.losses + 0.5)


def survival(ahead_h: float, age_h: float, record: ZoneRecord) -> float:
    """The chance that a zone which has had machines for `age_h` still has them, without a break, after `ahead_h`."""
    return 1.0 / (1.0 + HAZARD * ahead_h / _scale_h(age_h, record))


def expected_stay_h(horizon_h: float, age_h: float, record: ZoneRecord) -> float:
    """How long a machine taken now stays, on average, if it is wanted for `horizon_h`: the integral of `survival`."""
    scale = _scale_h(age_h, record)
    return scale / HAZARD * log(1.0 + HAZARD * horizon_h / scale)


def losses_per_h(record: ZoneRecord) -> float:
    return (record.losses + 0.5) / (record.uptime_h + 6.0)


def returns_per_h(record: ZoneRecord) -> float:
    """How soon machines come back once there are none."""
    return (record.returns + 0.75) / (record.downtime_h + 1.5)


def loss_rates(record: ZoneRecord, young: ZoneRecord) -> LossRates:
    """`young` is the part of the record from spells younger than an hour; each part leans on the whole as its prior."""
    overall = losses_per_h(record)
    old_losses, old_uptime_h = record.losses - young.losses, record.uptime_h - young.uptime_h
    return LossRates(
        young_per_h=(young.losses + 2.0 * overall) / (young.uptime_h + 2.0),
        old_per_h=(old_losses + 4.0 * overall) / (old_uptime_h + 4.0),
    )


def _scale_h(age_h: float, record: ZoneRecord) -> float:
    return sqrt(max(age_h, LEAST_AGE_H) * mean_spell_h(record))
