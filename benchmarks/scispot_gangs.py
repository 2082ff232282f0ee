"""How many machines for a job, learned on the way: bags that may choose, against the same with each number fixed."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.scispot_bags import play_bag
from benchmarks.scispot_lives import Split

COUNTS = (1, 2, 4)
SCALINGS = (0.3, 0.95, 1.2)
"""Programs that gain little, nearly all, and, because their data then fit into the caches, more than in proportion."""
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
        """How much dearer than with the best number from the start."""
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
