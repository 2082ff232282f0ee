"""How many machines for a job, learned during the bag: bags that may choose, against each fixed number."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.scispot_bags import play_bag
from benchmarks.scispot_lives import Split

COUNTS = (1, 2, 4)
SCALINGS = (0.3, 0.95, 1.2)
"""Exponents of speedup: poor, nearly linear, and superlinear, because the data then fit into the caches."""
JOBS, HOURS = 120, 1.0


@dataclass(frozen=True)
class GangBag:
    scaling: float
    usd: float
    fixed_usd: dict[int, float]
    """By machines a job."""
    done: bool

    @property
    def regret(self) -> float:
        """The relative cost above the best fixed number."""
        return self.usd / min(self.fixed_usd.values()) - 1.0


def gang_bags(asked: tuple[Split, int]) -> list[GangBag]:
    split, seed = asked
    return [_gang_bag(split, seed, scaling) for scaling in SCALINGS]


def _gang_bag(split: Split, seed: int, scaling: float) -> GangBag:
    def played(gangs: str) -> tuple[float, bool]:
        bag = play_bag(split, HOURS, JOBS, seed, saves=True, gangs=gangs, scaling=scaling)
        return bag.usd, bag.done

    usd, done = played(",".join(map(str, COUNTS)))
    return GangBag(scaling, usd, {count: played(str(count))[0] for count in COUNTS}, done)
