"""Which machine type for a gang of 64 CPUs, and what the wrong one costs: the paper's Figures 10 and 11.

Applications have the lengths and the scaling that the paper reports: Nanoconfinement 14 minutes on four machines of 16
CPUs and 40 % slower at worst than at best, Shapes 9 minutes wherever it runs, LULESH 12.5 minutes on eight of 8. In
between, time is assumed to grow by the same step with every doubling of the machines. Longer runs of each stand for
larger problems. `choices` knows these lengths and not the lifetimes; `explored` are whole bags of the product, which
knows neither, and pays for finding out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log2

import numpy as np

from benchmarks.scispot_bags import is_done, played
from benchmarks.scispot_lives import Split
from benchmarks.scispot_portfolio import shares
from shoestring.market.catalog import catalog
from shoestring.market.simulated.provider import PREEMPTIBLE_PRICE_SHARE
from shoestring.models.lifetimes.job_cost import job_usd, printed_job_usd
from shoestring.world.sim.workload import Workload

CPUS = 64
SIZES = (2, 4, 8, 16, 32)
RESTART_S = 120.0
LONGER = (1, 4, 16)
JOBS, EXPLORED_LONGER = 100, (1, 4)
"""Of a whole bag."""


@dataclass(frozen=True)
class Application:
    name: str
    minutes: float
    """On `size`."""
    size: int
    step: float
    """How much longer with every doubling of the machines."""

    def work_s(self, size: int) -> float:
        def slower(cpus: int) -> float:
            return 1.0 + self.step * log2(CPUS / cpus)

        return 60.0 * self.minutes * slower(size) / slower(self.size)


APPLICATIONS = (
    Application("Nanoconfinement", 14.0, 16, 0.2),
    Application("Shapes", 9.0, 16, 0.0),
    Application("LULESH", 12.5, 8, 0.15),
)
"""From 2 machines of 32 to 32 of 2, a step of 0.2 makes the best 40 % faster than the worst."""


@dataclass(frozen=True)
class Chosen:
    application: str
    longer: int
    usd: dict[str, float]
    """What a job costs on the machines each rule chooses, by held-out lifetimes; "best" knew them, "on demand" is the
    cheapest on-demand machine."""
    by_size: dict[int, tuple[float, float]]
    """Seconds of work, and dollars, for each size."""


def usd_per_hour(size: int) -> float:
    return catalog.machine("gcp", f"n1-highcpu-{size}").on_demand_usd_per_hour * PREEMPTIBLE_PRICE_SHARE


def _portfolio() -> int:
    """All sizes cost the same per CPU and prices are constant: there is no difference, and the middle one is chosen."""
    returns = np.full((10, len(SIZES)), 1.0 - PREEMPTIBLE_PRICE_SHARE)
    weights = shares(returns)
    alike = [size for size, weight in zip(SIZES, weights, strict=True) if weight >= weights.max() - 1e-9]
    return alike[len(alike) // 2]


def choices(split: Split, sizes: Sequence[int] = SIZES) -> list[Chosen]:
    """Types with too few held-out machines are left out."""
    enough = [size for size in sizes if split.held_out.machine.count(f"n1-highcpu-{size}") >= 10]
    found = []
    for app in APPLICATIONS:
        for longer in LONGER:
            work = {size: app.work_s(size) * longer for size in enough}
            really, foreseen, printed = {}, {}, {}
            for size in enough:
                name, count, price = f"n1-highcpu-{size}", CPUS // size, usd_per_hour(size)
                really[size] = job_usd(count, price, work[size], split.truth_of(name), restart_s=RESTART_S)
                foreseen[size] = job_usd(count, price, work[size], split.model_of(name), restart_s=RESTART_S)
                printed[size] = printed_job_usd(count, price, work[size], split.printed)
            kept_usd = min(CPUS / s * usd_per_hour(s) / PREEMPTIBLE_PRICE_SHARE * work[s] / 3600 for s in enough)
            middle = min(enough, key=lambda size: abs(size - _portfolio()))
            usd = {
                "ours": really[min(enough, key=foreseen.__getitem__)],
                "Eq. 11 as printed": really[min(enough, key=printed.__getitem__)],
                "portfolio": really[middle],
                "cheapest per CPU": really[enough[0]],
                "best": min(really.values()),
                "on demand": kept_usd,
            }
            found.append(Chosen(app.name, longer, usd, {size: (work[size], really[size]) for size in enough}))
    return found


@dataclass(frozen=True)
class Explored:
    application: str
    longer: int
    usd: float
    alone_usd: dict[int, float]
    """By the only machine size allowed; infinite where the bag was not done."""
    done: bool

    @property
    def regret(self) -> float:
        return self.usd / min(self.alone_usd.values()) - 1


def explored(asked: tuple[Split, int]) -> list[Explored]:
    """Bags of jobs of 64 CPUs each (`cpus_per_job`), on the lifetimes of all held-out machines."""
    split, seed = asked
    found = []
    for app in APPLICATIONS:
        for longer in EXPLORED_LONGER:
            usd, done = _bag_usd(split, seed, app, longer, SIZES)
            alone = {size: _bag_usd(split, seed, app, longer, (size,)) for size in SIZES}
            least = {size: each_usd if each_done else inf for size, (each_usd, each_done) in alone.items()}
            found.append(Explored(app.name, longer, usd, least, done))
    return found


def _bag_usd(split: Split, seed: int, app: Application, longer: int, sizes: Sequence[int]) -> tuple[float, bool]:
    machines = [catalog.machine("gcp", f"n1-highcpu-{size}") for size in sizes]
    listings = [catalog.listing(x, "us-east1-b", spot=True, legacy_preemptible=True) for x in machines]
    workload = Workload(
        curve=lambda _: lambda step: {"done": step},
        seconds_per_step=lambda _, listing, __: longer * app.work_s(round(listing.vcpus)),
        steps=lambda _: 1,
    )
    options = {"cpus_per_job": CPUS}
    state = played(split, listings, JOBS, seed, max_steps=1, max_machines=CPUS, options=options, workload=workload)
    return state.spent_usd, is_done(state)


def regret(found: Sequence[Chosen], name: str) -> float:
    """The mean relative cost above the best choice."""
    return float(np.mean([chosen.usd[name] / chosen.usd["best"] - 1 for chosen in found]))
