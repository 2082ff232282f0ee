"""RevocationModel: how likely is it that a machine is taken away within a time? One interface for all predictors.

Law: a question carries its own moment, and an answer rests on records up to that moment alone. The tests scramble all
later prices and compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from shoestring.errors import SpecError
from shoestring.kernel.types import PriceHistory
from shoestring.models.revocation.price_arrays import HOUR_S, Floats, Ints, Markets


@dataclass(frozen=True, eq=False)
class Questions:
    """Many questions, each a row: will the machine of `market`, `age_s` old at `at`, be gone within `within_s`?"""

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
    ) -> Questions:
        """Arrays of one length, or single values that hold for all."""
        if not np.all(np.asarray(within_s) > 0):
            raise SpecError("a machine can be lost within more than 0 seconds only", hint="give a time of 1 s or more")
        shape = (len(at),)
        return Questions(
            markets=markets,
            market=np.asarray(market, dtype=np.int64),
            at=np.asarray(at, dtype=np.float64),
            max_usd_per_hour=np.asarray(max_usd_per_hour, dtype=np.float64),
            within_s=np.broadcast_to(np.asarray(within_s, dtype=np.float64), shape),
            age_s=np.broadcast_to(np.asarray(age_s, dtype=np.float64), shape),
        )

    def pick(self, which: Ints | slice) -> Questions:
        """Some of the questions."""
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
    def chance(self, asked: Questions, /) -> Floats:
        """P(revoked within h | offer, prices so far, age, max price) of each question, between 0 and 1."""
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
    """One question, asked at the end of a history. Without a maximum the on-demand price is the ceiling."""
    asked = Questions.about(
        Markets.of([history], {history.offer: on_demand_usd_per_hour}),
        np.zeros(1, dtype=np.int64),
        np.array([history.until]),
        np.array([on_demand_usd_per_hour if max_usd_per_hour is None else max_usd_per_hour]),
        within_s,
        age_s,
    )
    return float(model.chance(asked)[0])


def certain_above_maximum(asked: Questions, chances: Floats) -> Floats:
    """Where the price is above the maximum already, the machine is as good as gone."""
    return np.where(asked.price_now() > asked.max_usd_per_hour, 1.0, np.clip(chances, 0.0, 1.0))


def stretched(chance_in_an_hour: Floats, within_s: Floats) -> Floats:
    """A chance for an hour as one for another time, at a constant rate: for models that know hours only."""
    survival: Floats = (1.0 - chance_in_an_hour) ** (within_s / HOUR_S)
    return 1.0 - survival


@dataclass(frozen=True)
class AnyCause:
    """Several causes that know nothing of each other, such as prices and a provider's own needs: any may strike."""

    causes: tuple[RevocationModel, ...]

    def chance(self, asked: Questions, /) -> Floats:
        survival = np.ones(len(asked))
        for cause in self.causes:
            survival *= 1.0 - cause.chance(asked)
        return 1.0 - survival
