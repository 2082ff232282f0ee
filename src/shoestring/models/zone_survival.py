"""How long a zone will keep offering spot machines: from its record of probes, and from how long it has had them.

Availability comes in spells, and old spells last: the longer a zone has had capacity, the longer it is likely to keep
it. The fate of one machine is little evidence; what is counted here is whether the ZONE had machines available.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

HAZARD = 0.85
"""How fast survival falls. Fitted to recorded availability; a fitted logistic regression did no better."""
LEAST_AGE_H = 1 / 60
"""A spell that has just begun counts as a minute old: with age 0 it could not last."""


@dataclass(frozen=True)
class ZoneRecord:
    """Recent probes of a zone. An empty record is a zone that was never tried: only the priors count."""

    losses: float = 0.0
    uptime_h: float = 0.0
    returns: float = 0.0
    downtime_h: float = 0.0


def mean_spell_h(record: ZoneRecord) -> float:
    """(uptime_h + 8) / (losses + 0.5): mean spell of availability, with a weak prior of half a loss in eight hours."""
    return (record.uptime_h + 8.0) / (record.losses + 0.5)


def survival(ahead_h: float, age_h: float, record: ZoneRecord) -> float:
    """S(ahead | age) = 1 / (1 + HAZARD * ahead_h / sqrt(age_h * mean_spell_h)): a Lomax tail.

    The chance that a zone which has had machines for `age_h` still has them, without a break, after `ahead_h`.
    """
    return 1.0 / (1.0 + HAZARD * ahead_h / _scale_h(age_h, record))


def expected_stay_h(horizon_h: float, age_h: float, record: ZoneRecord) -> float:
    """Expected stay of a machine leased now for `horizon_h`: the integral of `survival`."""
    scale = _scale_h(age_h, record)
    return scale / HAZARD * log(1.0 + HAZARD * horizon_h / scale)


def losses_per_h(record: ZoneRecord) -> float:
    return (record.losses + 0.5) / (record.uptime_h + 6.0)


def returns_per_h(record: ZoneRecord) -> float:
    """How soon machines are available again once there are none."""
    return (record.returns + 0.75) / (record.downtime_h + 1.5)


def _scale_h(age_h: float, record: ZoneRecord) -> float:
    return sqrt(max(age_h, LEAST_AGE_H) * mean_spell_h(record))
