"""Machines of a type, of a zone, launched at night or on a weekend, or one's own: each group a multiple of the pooled
hazard.

One mechanism for all of them. A group with as many deaths as the pooled model expected of it has the multiplier 1.
With little data the multiplier stays near 1: its prior is a Gamma distribution of mean 1, worth `strength` deaths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from scipy import optimize, special

from shoestring.errors import SpecError
from shoestring.kernel.records import Account, Lease
from shoestring.kernel.types import Fact, Offer
from shoestring.models.lifetimes.model import HOUR_S, Floats, LifetimeModel, positive
from shoestring.models.lifetimes.records import LifetimeRecords

Trait = Literal["machine", "zone", "time", "weekday"]
TRAITS: tuple[Trait, ...] = ("machine", "zone", "time", "weekday")
DAY, NIGHT = "day", "night"
WORKDAY, WEEKEND = "workday", "weekend"
DAY_HOURS = (8, 20)
"""Local hours of launch that are day; the paper's night is from 8 PM to 8 AM."""
UTC_OFFSET_H = {
    "us-central": -6.0,
    "us-east": -5.0,
    "us-west": -8.0,
    "us-south": -6.0,
    "northamerica": -5.0,
    "ca-": -5.0,
    "sa-": -3.0,
    "southamerica": -3.0,
    "europe": 1.0,
    "eu-": 1.0,
    "me-": 3.0,
    "asia": 8.0,
    "asia-south": 5.5,
    "asia-southeast": 8.0,
    "ap-": 9.0,
    "ap-south": 5.5,
    "ap-southeast": 9.0,
    "australia": 10.0,
    "af": 2.0,
}
"""Hours that clocks are ahead of UTC, by the prefix of a zone's name: good enough to tell day from night."""

OWN_STRENGTH = 10.0
"""The user's machines count as much as the published data once ten deaths of theirs were expected."""
_STRENGTHS = (1.0, 1e4)
_ROUNDS = 30
_MOST_EXPECTED = 20.0


class LifetimeGroup(Fact, frozen=True, kw_only=True):
    """What was observed of one group of machines."""

    deaths: float
    """Before the limit."""
    expected: float
    """Expected deaths: the cumulative hazard of all its machines."""

    def __post_init__(self) -> None:
        if not (self.deaths >= 0.0 and self.expected >= 0.0):
            raise SpecError(f"deaths={self.deaths!r}, expected={self.expected!r}: neither can be less than 0")


class LifetimeGroups(Fact, frozen=True, kw_only=True):
    """All groups of one trait."""

    trait: Trait
    strength: float
    kinds: dict[str, LifetimeGroup]

    def __post_init__(self) -> None:
        positive(strength=self.strength)

    def multiplier(self, name: str | None) -> float:
        """1 for a group without data."""
        group = None if name is None else self.kinds.get(name)
        return 1.0 if group is None else shrunk(group.deaths, group.expected, self.strength)


def shrunk(deaths: float, expected: float, strength: float) -> float:
    """(strength + deaths) / (strength + expected): posterior mean of the multiplier, with a Gamma prior of mean 1."""
    return (strength + deaths) / (strength + expected)


class ScaledHazard(LifetimeModel, frozen=True, kw_only=True, tag="scaled"):
    """S(t) = S_base(t)^multiplier: proportional hazards, `multiplier` times that of `base`. The limit is unchanged."""

    base: LifetimeModel
    multiplier: float

    def __post_init__(self) -> None:
        positive(multiplier=self.multiplier)

    def _survival(self, t: Floats) -> Floats:
        return np.power(self.base._survival(t), self.multiplier)

    def _density(self, t: Floats) -> Floats:
        alive, dying = self.base._survival(t), self.base._density(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            faster = self.multiplier * np.power(alive, self.multiplier - 1.0) * dying
        return np.where(alive > 0.0, faster, 0.0)

    def _age_when(self, alive: Floats) -> Floats:
        return self.base._age_when(np.power(alive, 1.0 / self.multiplier))


def scaled(model: LifetimeModel, multiplier: float) -> LifetimeModel:
    return model if multiplier == 1.0 else ScaledHazard(base=model, multiplier=multiplier, limit_s=model.limit_s)


# -- learning ----------------------------------------------------------------------------------------------------------
def fit_groups(
    model: LifetimeModel, seen: LifetimeRecords, traits: Sequence[Trait] = TRAITS, rounds: int = _ROUNDS
) -> tuple[LifetimeGroups, ...]:
    """Multipliers of machine types, zones and times of launch: each trait is fitted given the others, in turns, so
    that a zone full of large machines is not blamed for their size.

    For each trait all groups together have as many deaths as are expected of them. Otherwise two traits could drift
    apart, one up and the other down, and a group without data, which has 1, would be out of line.
    """
    exposure, died = _exposure(model, _before_limit(seen)), seen.by_chance.astype(np.float64)
    names = {trait: trait_names(seen, trait) for trait in traits}
    found = {trait: LifetimeGroups(trait=trait, strength=_STRENGTHS[1], kinds={}) for trait in traits}
    for _ in range(rounds):
        for trait in traits:
            others = np.ones(len(seen))
            for other in traits:
                if other != trait:
                    others *= [found[other].multiplier(name) for name in names[other]]
            expected = exposure * others
            fair = died.sum() / expected.sum() if expected.sum() > 0.0 else 1.0
            found[trait] = _groups(trait, names[trait], died, expected * fair)
    return tuple(found[trait] for trait in traits)


def _before_limit(seen: LifetimeRecords) -> Floats:
    return seen.seconds if seen.limit_s is None else np.minimum(seen.seconds, seen.limit_s)


def _exposure(model: LifetimeModel, ages: Floats) -> Floats:
    """Expected deaths of machines of these ages. A model may call such an age impossible: a machine counts for at most
    twenty deaths."""
    return np.minimum(model.cumulative_hazard(ages), _MOST_EXPECTED)


def _groups(trait: Trait, names: Sequence[str | None], died: Floats, expected: Floats) -> LifetimeGroups:
    known = sorted({name for name in names if name})
    rows = {name: np.array([one == name for one in names]) for name in known}
    kinds = {
        name: LifetimeGroup(deaths=float(died[r].sum()), expected=float(expected[r].sum())) for name, r in rows.items()
    }
    return LifetimeGroups(trait=trait, strength=fitted_strength(list(kinds.values())), kinds=kinds)


def fitted_strength(kinds: Sequence[LifetimeGroup]) -> float:
    """How alike the groups are: the strength of maximum likelihood, given their deaths.

    Given a strength, the deaths of a group are negative binomial. Groups that differ no more than by chance get the
    largest strength.
    """
    if len(kinds) < 2:
        return _STRENGTHS[1]
    d, e = np.array([kind.deaths for kind in kinds]), np.array([kind.expected for kind in kinds])

    def loss(log_strength: float) -> float:
        a = math.exp(log_strength)
        each = special.gammaln(a + d) - special.gammaln(a) + a * math.log(a) - (a + d) * np.log(a + e)
        return -float(np.sum(each))

    low, high = (math.log(strength) for strength in _STRENGTHS)
    found = optimize.minimize_scalar(loss, bounds=(low, high), method="bounded")
    return math.exp(float(found.x))


def trait_names(seen: LifetimeRecords, trait: Trait) -> list[str | None]:
    """The group of each machine; None where it is not known."""
    if trait in ("time", "weekday"):
        group = time_of_day if trait == "time" else part_of_week
        return [group(at, zone) for at, zone in zip(seen.launched_at.tolist(), seen.zone, strict=True)]
    return [name or None for name in (seen.machine if trait == "machine" else seen.zone)]


def time_of_day(launched_at: float, zone: str) -> str | None:
    """Day or night, in local time, at the launch. Unknown zones count as UTC."""
    if math.isnan(launched_at):
        return None
    return DAY if DAY_HOURS[0] <= _local_h(launched_at, zone) % 24 < DAY_HOURS[1] else NIGHT


def part_of_week(launched_at: float, zone: str) -> str | None:
    """A workday or the weekend, likewise."""
    if math.isnan(launched_at):
        return None
    days = math.floor(_local_h(launched_at, zone) / 24)  # the first of 1970 was a Thursday
    return WEEKEND if (days + 3) % 7 >= 5 else WORKDAY


def _local_h(at: float, zone: str) -> float:
    longest = max((start for start in UTC_OFFSET_H if zone.startswith(start)), key=len, default="")
    return at / HOUR_S + UTC_OFFSET_H.get(longest, 0.0)


# -- the user's machines -----------------------------------------------------------------------------------------------
def own_group(expected_of: Sequence[LifetimeModel], seen: LifetimeRecords) -> LifetimeGroup:
    """Deaths of the user's own machines, against those that the model of each would have expected."""
    if len(expected_of) != len(seen):
        raise SpecError(f"{len(expected_of)} models for {len(seen)} machines", hint="give one for each")
    ages = zip(expected_of, _before_limit(seen).tolist(), strict=True)
    expected = sum(float(_exposure(model, np.array(age))) for model, age in ages)
    return LifetimeGroup(deaths=float(seen.by_chance.sum()), expected=expected)


def seen_in_run(
    model: LifetimeModel, offer: Offer, leases: Iterable[Lease], account: Account | None, now: float
) -> LifetimeGroup:
    """Deaths before the limit of one offer's machines in a run so far, and those that the model expected at their ages:
    of ended ones from the account, of those still held from their leases (`view.leases.values()`)."""
    ages = [now - lease.granted_at for lease in leases if lease.offer == offer and lease.granted_at is not None]
    deaths = 0.0
    if account is not None:
        ages += account.lifetimes_s
        deaths = float(account.revoked - account.at_limit)
    return LifetimeGroup(deaths=deaths, expected=float(_exposure(model, np.array(ages)).sum()) if ages else 0.0)


def multiplier_in_run(groups: Mapping[Offer, LifetimeGroup], offer: Offer, strength: float = OWN_STRENGTH) -> float:
    """r * (a + d) / (a + r * e), with r = (a + D) / (a + E): the hazard of an offer's machines in a run so far as a
    multiple of its model's. D and E are deaths and expected deaths of all spot machines of the run, d and e those of
    this machine type in this zone, a the strength of the prior. So an offer without data has the run's multiplier.
    """
    run = shrunk(sum(x.deaths for x in groups.values()), sum(x.expected for x in groups.values()), strength)
    own = groups.get(offer)
    return run if own is None else run * shrunk(own.deaths, run * own.expected, strength)
