"""What it costs to find the best machine type during a bag: bags that may choose among six, against the best one alone.

Nothing is known of the jobs: neither how long they take nor how they scale. Each is a program that reports nothing, an
hour on four CPUs, with a spread of a fifth between jobs; speed grows as a power of the CPUs, the price with the CPUs.
Constants were chosen on seeds 0 to 2, with the lifetimes that ship, at exponents 0.5, 0.9, 1.0 and 1.1 and with 60 and
200 jobs; other seeds, all exponents and held-out lifetimes are reported.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.scispot_bags import is_done, played
from benchmarks.scispot_lives import Split
from shoestring.kernel.types import Config, Listing
from shoestring.market.catalog import catalog
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.world.sim.workload import Workload

SIZES = (2, 4, 8, 16, 32, 64)
EXPONENTS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
JOBS = (60, 100, 200, 1000)
FEW = 100
"""Up to so many jobs, a first wave of eight is a large part of them."""
MACHINES, SPREAD = 8, 0.2
SEEDS = range(100, 106)
FEWER_SEEDS_FROM = 200
"""Jobs. Such bags take long: two seeds."""


@dataclass(frozen=True)
class TypeBag:
    exponent: float
    jobs: int
    seed: int
    usd: float
    hours: float
    alone_usd: dict[int, float]
    """By the CPUs of the only machine type that may be used; infinite where the bag was not done."""
    done: bool

    @property
    def cost(self) -> float:
        """As a multiple of the best single type."""
        return self.usd / min(self.alone_usd.values())

    @property
    def oracle(self) -> float:
        """The same for one that tries each type on one job, and then knows."""
        best = min(self.alone_usd.values())
        return (sum(self.alone_usd.values()) / self.jobs + (self.jobs - len(SIZES)) / self.jobs * best) / best


def type_bag(asked: tuple[Split, float, int, int]) -> TypeBag:
    split, exponent, jobs, seed = asked
    usd, hours, done = _played(split, SIZES, exponent, jobs, seed)
    alone = {}
    for size in SIZES:
        alone_usd, _, alone_done = _played(split, (size,), exponent, jobs, seed)
        alone[size] = alone_usd if alone_done else math.inf
    return TypeBag(exponent, jobs, seed, usd, hours, alone, done)


def _played(split: Split, sizes: Sequence[int], exponent: float, jobs: int, seed: int) -> tuple[float, float, bool]:
    def seconds(config: Config, listing: Listing, _: int) -> float:
        spread = math.exp(random.Random(f"{seed} {config['number']}").gauss(0.0, SPREAD))
        return HOUR_S * spread / (listing.vcpus / 4) ** exponent

    machines = [catalog.machine("gcp", f"n1-highcpu-{size}") for size in sizes]
    listings = [catalog.listing(x, "us-east1-b", spot=True, legacy_preemptible=True) for x in machines]
    workload = Workload(curve=lambda _: lambda step: {"done": step}, seconds_per_step=seconds, steps=lambda _: 1)
    state = played(split, listings, jobs, seed, max_steps=1, max_machines=MACHINES, options={}, workload=workload)
    return state.spent_usd, (state.now - state.started_at) / HOUR_S, is_done(state)
