"""Random simulated studies, whole: market, budget, deadline, recipe, workload. Shared by property and crash tests."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from msgspec.structs import replace as spec_with

from shoestring import recipes
from shoestring.controller import run
from shoestring.errors import SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Config, Listing, Offer, Value
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.lifetimes import ExponentialLifetime
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import DrawnLifetimes, Earliest, Never, PriceCrossing, ZoneShocks
from shoestring.space.space import Float, Space
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Curve, Latencies, SublinearSpeed, Workload
from shoestring.world.sim.world import SimWorld

START = 1_700_000_000.0
MODEL_BASED = ("tpe", "asha_tpe", "bohb")
ELASTIC = ("seer", "seer_as_printed", "hypersched", "elastic_hyperband", "elastic_grid", "elastic_successive_halving")
CLASSIC = ("random", "grid", "successive_halving", "asha", "hyperband")
PLACEMENTS = (
    "cheapest",
    "cheapest",
    "cheapest_step",
    "refund_seeking",
    "spottune_as_printed",
    "slack",
    "greedy",
    "uniform_progress",
    "on_demand",
)
PREDICTING = ("cheapest_step", "refund_seeking", "spottune_as_printed")
SAVING = ("on_notice", "periodic", "on_notice", "periodic", "programme", "young_daly", "none")
RECIPES = (
    *CLASSIC,
    *("flex", "theta", "theta_adaptive", "spottune", "spottune_as_printed", "scispot"),
    "trimtuner",  # as printed it is the same policies, with longer background tasks
    *MODEL_BASED,
    *ELASTIC,
)


@dataclass(frozen=True)
class Case:
    """Everything that decides a simulated study."""

    spec: RunSpec
    seed: int
    traces: tuple[tuple[Offer, tuple[float, ...], tuple[float, ...]], ...]
    revoked_per_hour: float
    shocks_per_hour: float
    denial_share: float
    provision_s: float
    base_step_s: float
    checkpoint_gb: float | None
    trouble_share: float

    def provider(self) -> SimulatedProvider:
        return self.selling(self.spec.listings)

    def selling(self, listings: tuple[Listing, ...]) -> SimulatedProvider:
        """The market, with these for sale."""
        book = PriceBook({offer: PriceTrace(offer, times, prices) for offer, times, prices in self.traces}, listings)
        mean_life = ExponentialLifetime(3600 / self.revoked_per_hour) if self.revoked_per_hour else None
        lifetimes = DrawnLifetimes(mean_life, self.seed) if mean_life else Never()
        shocks = ZoneShocks(self.shocks_per_hour, 0.7, self.seed) if self.shocks_per_hour else Never()
        return SimulatedProvider(
            listings,
            book,
            Earliest(PriceCrossing(book, listings), lifetimes, shocks),
            seed=self.seed,
            denial_share=self.denial_share,
            provision_s=self.provision_s,
        )

    def world(self) -> SimWorld:
        return SimWorld(self.provider(), self.workload(), Latencies(), start=START)

    def workload(self) -> Workload:
        return Workload(
            curve=loss_of,
            seconds_per_step=SublinearSpeed(self.base_step_s),
            checkpoint_gb=self.checkpoint_gb,
            trouble=self._trouble if self.trouble_share else None,
        )

    def _trouble(self, _: object, segment: str, step: int) -> str | None:
        rng = random.Random(f"{self.seed}/{segment}/{step}")
        if rng.random() >= self.trouble_share:
            return None
        return "hang" if self.spec.time_limit_s is not None and rng.random() < 0.3 else "fail"

    def opening(self) -> RunStarted:
        return RunStarted(at=START, spec=self.spec, seed=self.spec.seed)


def loss_of(config: Config) -> Curve:
    """A curve that falls towards the distance of `x` from the optimum."""
    level = abs(float(config["x"] or 0.0) - 0.3)
    return lambda step: {"loss": level + 1 / step}


def random_case(rng: random.Random) -> Case:
    listings = []
    traces = []
    for index in range(rng.randint(1, 4)):
        list_price = 10 ** rng.uniform(-2, 1)
        spot = rng.random() < 0.75
        offer = Offer(provider="aws", zone=f"z{rng.randint(0, 1)}", machine=f"m{index}", spot=spot)
        listings.append(
            Listing(
                offer=offer,
                vcpus=2.0 ** rng.randint(0, 4),
                memory_gb=8,
                slots=rng.choice((1, 1, 2, 4)),
                on_demand_usd_per_hour=list_price,
                billing=rng.choice(("per_second", "per_hour", "aws_spot", "gcp_preemptible")) if spot else "per_second",
                notice_s=rng.choice((0.0, 30.0, 120.0)),
                max_life_s=rng.choice((None, None, 3600.0)) if spot else None,
            )
        )
        if spot:
            moves = sorted(rng.uniform(0, 48 * 3600) for _ in range(rng.randint(0, 20)))
            highest = rng.choice((0.6, 0.9, 3.0))
            times = (START - 3600.0, *(START + move for move in moves))
            traces.append((offer, times, tuple(list_price * rng.uniform(0.1, highest) for _ in times)))
    deadline_s = 10 ** rng.uniform(3.0, 5.0)
    spec = RunSpec(
        name="random",
        metric="loss",
        space=Space(params={"x": Float(low=0.0, high=1.0)}),
        trials=rng.randint(1, 8),
        max_steps=rng.randint(1, 9),
        budget_usd=10 ** rng.uniform(-2.5, 1.5),
        deadline_s=deadline_s,
        wind_down_s=min(120.0, deadline_s / 20),
        recipe=(recipe := rng.choice(RECIPES)),
        options={
            **({} if recipe == "scispot" else _placing(rng)),  # it has its own placement
            "checkpointing": rng.choice(SAVING),
            **({"startup": 1} if recipe in MODEL_BASED else {}),
            **({"t_min_s": deadline_s / 12} if recipe in ELASTIC else {}),  # a stage or two, and not hundreds of trials
        },
        seed=rng.randrange(1000),
        listings=tuple(listings),
        max_machines=rng.randint(1, 4),
        max_failures=rng.randint(0, 2),
        time_limit_s=rng.choice((None, 600.0)),
        slice_s=rng.choice((300.0, 900.0, 3600.0)),
    )
    case = Case(
        spec=_possible(spec),
        seed=rng.randrange(1000),
        traces=tuple(traces),
        revoked_per_hour=rng.choice((0.0, 0.3, 3.0)),
        shocks_per_hour=rng.choice((0.0, 1.0)),
        denial_share=rng.choice((0.0, 0.3)),
        provision_s=rng.choice((0.0, 40.0, 300.0)),
        base_step_s=10 ** rng.uniform(0, 3),
        checkpoint_gb=rng.choice((None, 0.05, 20.0)),
        trouble_share=rng.choice((0.0, 0.0, 0.05)),
    )
    if case.spec.slice_s < 2 * case.provision_s:  # no machine would start in time: refused before a run starts
        return replace(case, spec=spec_with(case.spec, slice_s=900.0))
    return case


def _placing(rng: random.Random) -> dict[str, Value]:
    placement = rng.choice(PLACEMENTS)
    return {
        "placement": placement,
        **({"rotate": "20m"} if placement.startswith("cheapest") and rng.random() < 0.3 else {}),
        **({"revocations": rng.choice(("assumed", "frequency", "rises"))} if placement in PREDICTING else {}),
    }


def _possible(spec: RunSpec) -> RunSpec:
    """Elastic recipes reject a budget or deadline that allows no trial; the others try."""
    try:
        recipes.build(spec)
    except SpecError:
        options = {name: value for name, value in spec.options.items() if name != "t_min_s"}
        return spec_with(spec, recipe="asha", options=options)
    return spec


def play(case: Case, journal: MemoryJournal | None = None) -> tuple[RunState, MemoryJournal]:
    """Simulate a case from the beginning, or from where a journal ends."""
    journal = journal if journal is not None else MemoryJournal()
    fresh = not list(journal.read())
    state = run(
        case.world(),
        journal,
        recipes.build(case.spec),
        BudgetAndDeadline(),
        first=[case.opening()] if fresh else [],
    )
    return state, journal


def with_scrambled_prices(case: Case, after: float, rng: random.Random) -> Case:
    """The same market up to a moment, and another future. Lifetimes and shocks are left as they are."""
    on_demand = {listing.offer: listing.on_demand_usd_per_hour for listing in case.spec.listings}
    traces = []
    for offer, times, prices in case.traces:
        past = [(t, p) for t, p in zip(times, prices, strict=True) if t <= after]
        future = [(after + rng.uniform(1.0, 20 * 3600), on_demand[offer] * rng.uniform(0.1, 3)) for _ in range(10)]
        points = past + sorted(future)
        traces.append((offer, tuple(t for t, _ in points), tuple(p for _, p in points)))
    return replace(case, traces=tuple(traces))
