"""The contestants of the SpotTune benchmark: recipes and options by name, and policies that only a benchmark may
use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from benchmarks.spottune_market import Market
from benchmarks.spottune_oracle import Oracle
from benchmarks.spottune_workloads import Task
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Policy
from shoestring.kernel.types import Offer, Value
from shoestring.kernel.view import RunView
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.world.sim.workload import SecondsPerStep

DEFAULT, AS_PRINTED, PLAIN, ORACLE = "spottune", "as_printed", "plain", "oracle"
"""The default seeks refunds; `plain` is the cheapest step without."""
TOLD_SPEEDS, BY_LEVEL = "plain_told_speeds", "by_level"
"""`by_level` is the default as it was before: its risk is how often the absolute level of a maximum was exceeded."""
CHEAPEST_SPOT, FASTEST_SPOT = "cheapest_spot", "fastest_spot"
CHEAPEST_ON_DEMAND, FASTEST_ON_DEMAND = "cheapest_on_demand", "fastest_on_demand"
BOTH, SPOT, ON_DEMAND = (True, False), (True,), (False,)
SO_MUCH_IS_NEVER_ASKED = 100.0
"""Times the on-demand price: the maximum price of contestants that are never outbid."""


@dataclass(frozen=True)
class Contestant:
    """All use the search theta; they differ in placement."""

    name: str
    recipe: str = "spottune"
    options: dict[str, Value] = field(default_factory=dict)
    kinds: tuple[bool, ...] = BOTH
    """Spot machines, on-demand ones, or both."""
    only: Callable[[Market], str] | None = None
    """The one machine type it may use."""
    placement: Callable[[SimulatedProvider, Task], Policy] | None = None
    """They replace the recipe's, for what only a benchmark may do."""


@dataclass(frozen=True)
class AtAnyPrice(Cheapest):
    """Spot machines wherever their type is cheapest now, with a maximum that no price reaches."""

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        for order in super().decide(state, event):
            if isinstance(order, d.RequestLease):
                on_demand = state.listings[order.offer].on_demand_usd_per_hour
                yield replace(order, max_usd_per_hour=SO_MUCH_IS_NEVER_ASKED * on_demand)
            else:
                yield order

    def _ranked(self, state: RunView) -> list[tuple[Offer, str]]:
        return sorted(((offer, "the one type it may use") for offer in state.listings), key=lambda x: _usd(state, x[0]))


@dataclass(frozen=True)
class ToldSpeeds(Cheapest):
    """The least dollars a step at the current price, with known step times: the difference to `plain` is the cost of
    learning them."""

    step_s: SecondsPerStep = field(kw_only=True)

    def _spot_and_on_demand(self, state: RunView) -> list[tuple[Offer, str]]:
        job = state.jobs[next(iter(state.waiting))]
        usd = {x.offer: state.usd_per_hour(x.offer) * self.step_s(job.config, x, 1) for x in state.listings.values()}
        return [(offer, "it was told") for offer in sorted(usd, key=lambda offer: (usd[offer], offer))]


def _usd(state: RunView, offer: Offer) -> tuple[float, Offer]:
    return state.usd_per_hour(offer), offer


def _never_outbid(_provider: SimulatedProvider, _task: Task) -> Policy:
    return AtAnyPrice()


def _oracle(provider: SimulatedProvider, task: Task) -> Policy:
    return Oracle(provider, task.step_s)


def _told_speeds(_provider: SimulatedProvider, task: Task) -> Policy:
    return ToldSpeeds(step_s=task.step_s)


def _cheapest(market: Market) -> str:
    return market.cheapest


def _fastest(market: Market) -> str:
    return market.fastest


CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant(DEFAULT),
        Contestant(AS_PRINTED, recipe="spottune_as_printed"),
        Contestant(BY_LEVEL, options={"revocations": "frequency"}),
        Contestant(PLAIN, options={"placement": "cheapest_step"}),
        Contestant(TOLD_SPEEDS, placement=_told_speeds),
        Contestant(ORACLE, placement=_oracle),
        Contestant(CHEAPEST_SPOT, kinds=SPOT, only=_cheapest, placement=_never_outbid),
        Contestant(FASTEST_SPOT, kinds=SPOT, only=_fastest, placement=_never_outbid),
        Contestant(CHEAPEST_ON_DEMAND, options={"placement": "on_demand"}, kinds=ON_DEMAND, only=_cheapest),
        Contestant(FASTEST_ON_DEMAND, options={"placement": "on_demand"}, kinds=ON_DEMAND, only=_fastest),
    )
}
PROPOSED = {
    contestant.name: contestant
    for contestant in (
        Contestant(DEFAULT),
        Contestant(PLAIN, options={"placement": "cheapest_step"}),
        Contestant("plain_frequency", options={"placement": "cheapest_step", "revocations": "frequency"}),
        Contestant("plain_hourly", options={"placement": "cheapest_step", "rotate": "1h"}),
        Contestant("slack", options={"placement": "slack"}),
        Contestant("cheapest", options={"placement": "cheapest"}),
        Contestant(BY_LEVEL, options={"revocations": "frequency"}),
        Contestant("seeking_assumed", options={"revocations": "assumed"}),
    )
}
"""Candidates for the default: compared by `--choosing`, at start times that are not reported."""
