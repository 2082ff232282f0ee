"""Saving and loading fitted lifetime models: JSON, read back strictly. No pickle: a stranger's model can do no harm."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from shoestring.errors import DataError
from shoestring.kernel.types import Fact
from shoestring.models.lifetimes.as_printed import PrintedBathtub
from shoestring.models.lifetimes.families import (
    Bathtub,
    Exponential,
    ExponentiatedWeibull,
    GompertzMakeham,
    TwoPhase,
    Uniform,
    Weibull,
)
from shoestring.models.lifetimes.fit import FAMILIES, Method, default_for, fit
from shoestring.models.lifetimes.groups import (
    OWN_STRENGTH,
    LifetimeGroup,
    LifetimeGroups,
    fit_groups,
    own_group,
    part_of_week,
    scaled,
    shrunk,
    time_of_day,
)
from shoestring.models.lifetimes.kaplan_meier import KaplanMeier
from shoestring.models.lifetimes.model import LifetimeModel, positive
from shoestring.models.lifetimes.records import LifetimeRecords

AnyLifetimeModel = (
    Exponential
    | Weibull
    | ExponentiatedWeibull
    | GompertzMakeham
    | Uniform
    | TwoPhase
    | Bathtub
    | PrintedBathtub
    | KaplanMeier
)


class SavedLifetimes(Fact, frozen=True, kw_only=True):
    """A pooled model, multipliers of groups of machines, and what they were fitted to."""

    format: Literal["shoestring lifetime model 1"] = "shoestring lifetime model 1"
    name: str
    by: Method
    machines: int
    taken: int
    pooled: AnyLifetimeModel
    kinds: tuple[LifetimeGroups, ...] = ()
    own: LifetimeGroup | None = None
    """The user's own machines, against all of the above."""

    def __post_init__(self) -> None:
        if self.pooled.limit_s is not None:
            positive(limit_s=self.pooled.limit_s)

    def multiplier(self, machine: str = "", zone: str = "", launched_at: float = math.nan) -> float:
        """The machine's hazard as a multiple of the pooled model's; an unknown group has 1."""
        names = {
            "machine": machine,
            "zone": zone,
            "time": time_of_day(launched_at, zone),
            "weekday": part_of_week(launched_at, zone),
        }
        product = self.own_multiplier
        for kinds in self.kinds:
            product *= kinds.multiplier(names[kinds.trait])
        return product

    @property
    def own_multiplier(self) -> float:
        return 1.0 if self.own is None else shrunk(self.own.deaths, self.own.expected, OWN_STRENGTH)

    def model_for(self, machine: str = "", zone: str = "", launched_at: float = math.nan) -> LifetimeModel:
        """The model of one machine, from what is known at its launch."""
        return scaled(self.pooled, self.multiplier(machine, zone, launched_at))


def fit_saved(seen: LifetimeRecords, name: str | None = None, by: Method | None = None) -> SavedLifetimes:
    """The pooled model of this name, and its groups."""
    chosen = name or default_for(seen)
    pooled = fit(chosen, seen, by)
    return SavedLifetimes(
        name=chosen,
        by=by or (FAMILIES[chosen].by if chosen in FAMILIES else "likelihood"),
        machines=len(seen),
        taken=int(seen.revoked.sum()),
        pooled=msgspec.convert(msgspec.to_builtins(pooled), AnyLifetimeModel),
        kinds=fit_groups(pooled, seen),
    )


def with_own(saved: SavedLifetimes, seen: LifetimeRecords) -> SavedLifetimes:
    """The same with the user's own machines added. A second call replaces the first."""
    before = msgspec.structs.replace(saved, own=None)
    rows = zip(seen.machine, seen.zone, seen.launched_at.tolist(), strict=True)
    return msgspec.structs.replace(saved, own=own_group([before.model_for(*row) for row in rows], seen))


def encoded(saved: SavedLifetimes) -> bytes:
    return msgspec.json.encode(saved)


def decoded(content: bytes, source: str = "this file") -> SavedLifetimes:
    """The model that `encoded` wrote; anything else is a DataError."""
    try:
        return msgspec.json.decode(content, type=SavedLifetimes)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise DataError(
            f"{source} is not a saved lifetime model: {error}", hint="make one with shoestring lifetimes fit"
        ) from error
