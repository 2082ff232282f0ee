"""RevocationModel: how likely is a machine to be revoked within a time? One interface for all predictors.

Law: a query has its own time, and its answer uses records up to that time alone. The tests scramble all later prices
and compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from shoestring.errors import SpecError
from shoestring.kernel.types import PriceHistory
from shoestring.models.revocation.price_arrays import HOUR_S, Floats, Ints, Markets


@dataclass(frozen=True, eq=False)
class Queries:
    """Many queries, each a row: will the machine of `market`, `age_s` old at `at`, be revoked within `within_s`?"""

    markets: Markets
    market: Ints
    at: Floats
    max_usd_per_hour: Floats
    within_s: Floats
    age_s: Floats

    def __len__(self) -> int:
        return len(self.at)

    @staticmethod
    def about(
        markets: Markets,
        market: Ints,
        at: Floats,
        max_usd_per_hour: Floats,
        within_s: float | Floats = HOUR_S,
        age_s: float | Floats = 0.0,
    ) -> Queries:
        """Arrays of one length, or single values that hold for all."""
        if not np.all(np.asarray(within_s) > 0):
            raise SpecError("a machine can be lost within more than 0 seconds only", hint="give a time of 1 s or more")
        shape = (len(at),)
        return Queries(
            markets=markets,
            market=np.asarray(market, dtype=np.int64),
            at=np.asarray(at, dtype=np.float64),
            max_usd_per_hour=np.asarray(max_usd_per_hour, dtype=np.float64),
            within_s=np.broadcast_to(np.asarray(within_s, dtype=np.float64), shape),
            age_s=np.broadcast_to(np.asarray(age_s, dtype=np.float64), shape),
        )

    def pick(self, which: Ints | slice) -> Queries:
        """Some of the queries."""
        return replace(
            self,
            market=self.market[which],
            at=self.at[which],
            max_usd_per_hour=self.max_usd_per_hour[which],
            within_s=self.within_s[which],
            age_s=self.age_s[which],
        )

    def price_now(self) -> Floats:
        return self.markets.price_at(self.market, self.at)


class RevocationModel(Protocol):
    def chance(self, queries: Queries, /) -> Floats:
        """P(revoked within within_s | offer, prices so far, age, max price) of each query, between 0 and 1."""
        ...


def chance_of(
    model: RevocationModel,
    history: PriceHistory,
    *,
    on_demand_usd_per_hour: float,
    max_usd_per_hour: float | None = None,
    within_s: float = HOUR_S,
    age_s: float = 0.0,
) -> float:
    """A single query, at the end of a history. Without a maximum the on-demand price is the ceiling."""
    queries = Queries.about(
        Markets.of([history], {history.offer: on_demand_usd_per_hour}),
        np.zeros(1, dtype=np.int64),
        np.array([history.until]),
        np.array([on_demand_usd_per_hour if max_usd_per_hour is None else max_usd_per_hour]),
        within_s,
        age_s,
    )
    return float(model.chance(queries)[0])


def certain_above_maximum(queries: Queries, chances: Floats) -> Floats:
    """1 where the price is above the maximum already."""
    return np.where(queries.price_now() > queries.max_usd_per_hour, 1.0, np.clip(chances, 0.0, 1.0))


def stretched(chance_in_an_hour: Floats, within_s: Floats) -> Floats:
    """1 - (1 - p)^(within_s / 3600): a chance for an hour as one for another time, at a constant rate."""
    survival: Floats = (1.0 - chance_in_an_hour) ** (within_s / HOUR_S)
    return 1.0 - survival


@dataclass(frozen=True)
class AnyCause:
    """chance = 1 - product over causes of (1 - chance_i): independent causes, e.g. prices and the provider's needs."""

    causes: tuple[RevocationModel, ...]

    def chance(self, queries: Queries, /) -> Floats:
        survival = np.ones(len(queries))
        for cause in self.causes:
            survival *= 1.0 - cause.chance(queries)
        return 1.0 - survival
