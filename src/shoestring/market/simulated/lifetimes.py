"""Lifetime distributions to sample from, for revocations without a modelled cause."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Protocol

from shoestring.errors import SpecError
from shoestring.market import preemptible_2019

HOUR_S = 3600.0


class Lifetime(Protocol):
    def sample(self, rng: Random) -> float:
        """Seconds from grant to revocation."""
        ...


def _positive(**fields: float) -> None:
    for name, value in fields.items():
        if not value > 0:
            raise SpecError(f"{name}={value!r} of a lifetime distribution must be positive")


@dataclass(frozen=True, slots=True)
class ExponentialLifetime:
    """S(t) = exp(-t / mean_s). No memory: revocation is as likely in the tenth hour as in the first."""

    mean_s: float

    def __post_init__(self) -> None:
        _positive(mean_s=self.mean_s)

    def sample(self, rng: Random) -> float:
        return rng.expovariate(1.0 / self.mean_s)


@dataclass(frozen=True, slots=True)
class WeibullLifetime:
    """S(t) = exp(-(t / scale_s)^shape). A shape below 1: young machines are revoked first; above 1: old ones."""

    scale_s: float
    shape: float

    def __post_init__(self) -> None:
        _positive(scale_s=self.scale_s, shape=self.shape)

    def sample(self, rng: Random) -> float:
        return rng.weibullvariate(self.scale_s, self.shape)


@dataclass(frozen=True, slots=True)
class UniformLifetime:
    """S(t) = (high_s - t) / (high_s - low_s) for low_s <= t <= high_s: every age in between is equally likely."""

    low_s: float
    high_s: float

    def __post_init__(self) -> None:
        if not 0 <= self.low_s <= self.high_s:
            raise SpecError(f"low_s={self.low_s!r}, high_s={self.high_s!r}: lifetimes need 0 <= low_s <= high_s")

    def sample(self, rng: Random) -> float:
        return rng.uniform(self.low_s, self.high_s)


@dataclass(frozen=True, slots=True)
class GooglePreemptible:
    """S(t) = exp(-(t / scale_s)^shape) for t < wall_s, then 0.

    Google's preemptible machines of 2019: many are preempted in the first hours, few later, all the rest at 24 h. The
    parameters are those of all machine types and zones together; `of` has one type and zone.
    """

    scale_s: float = preemptible_2019.SCALE_S
    shape: float = preemptible_2019.SHAPE
    wall_s: float = preemptible_2019.LIMIT_S

    @staticmethod
    def of(machine: str, zone: str) -> GooglePreemptible:
        """m times the hazard: scale_s * m^(-1 / shape)."""
        hazard = preemptible_2019.hazard(machine, zone)
        return GooglePreemptible(scale_s=preemptible_2019.SCALE_S * hazard ** (-1.0 / preemptible_2019.SHAPE))

    def sample(self, rng: Random) -> float:
        return min(self.wall_s, rng.weibullvariate(self.scale_s, self.shape))
