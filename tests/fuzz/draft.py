"""A study as a user would request it, and the world it is played in: plain values, to be shown and shrunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from shoestring.kernel.decisions import StartSegment
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Config, Listing
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.specs import request
from shoestring.specs.market import Market
from shoestring.world.sim.workload import Latencies, SublinearSpeed, Workload
from shoestring.world.sim.world import SimWorld
from tests.studies import START, Case, loss_of

NO_SPEC = RunSpec(name="fuzz", metric="loss")


@dataclass(frozen=True)
class World(Case):
    """A market and a workload; `spec` is filled in when the study has been accepted."""

    fixed_s: float = 0.0
    """Of a whole run, whatever its data fraction: loading, compiling."""
    spread: float = 0.0
    """The slowest configuration takes 1 + spread times as long as the fastest."""
    start_s: float = 20.0

    def latencies(self) -> Latencies:
        return Latencies(start_s=self.start_s)

    def world(self) -> SimWorld:
        world = PromptWorkers(self.provider(), self.workload(), self.latencies(), start=START)
        # The simulator of version 0.1 had a number of its own, which is how it hid what real workers did.
        world.lead_s = getattr(world.latencies, "lead_s", self.spec.wind_down_s)
        return world

    def workload(self, fraction: float = 1.0) -> Workload:
        per_step = SublinearSpeed(1.0)
        fixed_s = self.fixed_s / self.spec.max_steps

        def seconds_per_step(config: Config, listing: Listing, slots: int) -> float:
            alone_s = fixed_s + self.base_step_s * (1 + self.spread * float(config["x"] or 0.0)) * fraction
            return alone_s * per_step(config, listing, slots)

        return replace(
            super().workload(), curve=loss_of, seconds_per_step=seconds_per_step, on_fraction=lambda s: self.workload(s)
        )

    def longest_run_s(self, listings: tuple[Listing, ...], max_steps: int) -> float:
        """The whole training of any configuration, on any machine, takes at most so long."""
        alone_s = self.fixed_s + max_steps * self.base_step_s * (1 + self.spread)
        return alone_s * max(SublinearSpeed(1.0)({}, listing, 1) for listing in listings)


class PromptWorkers(SimWorld):
    """Workers that stop as real ones do, also if the time to leave has passed when they start."""

    lead_s = 0.0
    """So long before the prepaid time of its machine ends, a worker saves and stops by itself."""

    def _start(self, order: StartSegment) -> None:
        super()._start(order)
        segment = self._segments.get(order.segment)
        if segment is not None and min(self._leases[lease].end_by for lease in order.leases) - self.lead_s <= self.now:
            segment.halt()


class OnSale(Market, frozen=True, kw_only=True):
    """A market with offers of its own instead of the catalogue's."""

    provider: Any = None

    def open(self, deadline_s: float = 0.0) -> SimulatedProvider:  # noqa: ARG002
        return self.provider


@dataclass(frozen=True)
class Draft:
    fields: dict[str, Any]
    """As in a spec file."""
    listings: tuple[Listing, ...]
    world: World
    all_feasible: bool = False
    """Does every configuration satisfy every constraint?"""

    def accepted(self) -> World:
        """The study as it would run. A SpecError is a refusal: with what a user would read."""
        market = OnSale(kind="modern", seed=1, provider=self.world.selling(self.listings))
        with patch.object(request, "make_market", lambda requested, **_: requested):
            resolved = request.RunRequest.resolve(
                None,
                {**self.fields, "market": market},
                kind=self.fields["kind"],
                source="fuzz",
                runs_code=False,
            )
        return replace(self.world, spec=resolved.spec)

    def lines(self) -> Iterator[str]:
        """For people: what was requested, what is for sale, what happens."""
        yield from (f"  {name}: {_short(value)}" for name, value in self.fields.items())
        prices = {offer: prices for offer, _, prices in self.world.traces}
        for listing in self.listings:
            spot = prices.get(listing.offer)
            yield (
                f"  for sale: {listing.offer}, {listing.slots} slots, {listing.vcpus:g} vCPUs, on-demand "
                f"${listing.on_demand_usd_per_hour:g}/h, {listing.billing}, notice {listing.notice_s:g} s, "
                f"max_life_s {listing.max_life_s}"
                + (f", spot ${min(spot):g} to ${max(spot):g}" if spot is not None else "")
            )
        shown = vars(self.world).items()
        yield "  world: " + ", ".join(f"{name}={_short(v)}" for name, v in shown if name not in ("spec", "traces"))


def _short(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) < 200 else f"{text[:200]}... "
