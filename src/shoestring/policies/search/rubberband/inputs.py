"""The inputs of a plan: from a spec alone, or from the state of a run that has measured something."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from shoestring.errors import SpecError
from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.market.billing import HOUR_S
from shoestring.models.speed.latencies import learned_latencies, slowest_latencies
from shoestring.policies.search.rubberband.greedy import cheapest, fastest
from shoestring.policies.search.rubberband.plan import CostModel, RubberbandPlan, Schedule
from shoestring.policies.search.rubberband.speed import GUESS, Guess, Speed, guessed, learned
from shoestring.units import parse_duration_s, show_duration, show_usd


@dataclass(frozen=True)
class PlanInputs:
    guess: Guess = GUESS
    """Of speed, until it is measured."""
    provision_s: float = 60.0
    """From request to grant, until it is measured."""
    start_s: float = 25.0
    """Overhead of every start of a trial: its program, its checkpoint, saving at the end; likewise."""
    p_max: int = 16
    """The most slots of a trial."""
    margin: float = 0.05
    """The share of the time kept in reserve: forecasts are not promises."""
    spot: bool = False
    """Are spot machines rented? Before the start their price is assumed to be the on-demand one."""

    def at_start(self, spec: RunSpec) -> CostModel:
        listing = self.listing(spec, lambda listing: listing.on_demand_usd_per_hour)
        most = spec.max_machines if (usd := _slice_usd(spec, listing)) == 0 else math.floor(spec.budget_usd / usd)
        return self._cost_model(spec, listing, listing.on_demand_usd_per_hour, guessed(self.guess), most)

    def now(self, state: RunView, promoted: Collection[Job]) -> CostModel:
        """With the speed measured so far, above all of the promoted trials."""
        spec = state.spec
        listing = self.listing(spec, lambda listing: state.usd_per_hour(listing.offer))
        speed = learned(state, promoted, listing, self.guess)
        free_usd = spec.budget_usd - state.spent_usd - state.reserved_usd
        most = spec.max_machines
        if (usd := _slice_usd(spec, listing)) > 0:
            most = state.in_hand + max(0, math.floor(free_usd / usd))
        usd_per_hour = state.usd_per_hour(listing.offer)
        cost_model = self._cost_model(spec, listing, usd_per_hour, speed, most)
        if state.timings["provision"].count:  # a stage waits for the slowest of its machines
            cost_model = replace(cost_model, provision_s=slowest_latencies(state).provision_s)
        if state.timings["start"].count:
            latencies = learned_latencies(state)
            cost_model = replace(cost_model, start_s=latencies.restore_s + latencies.save_s)
        return cost_model

    def listing(self, spec: RunSpec, usd_per_hour: Callable[[Listing], float]) -> Listing:
        """The machine a plan is made for: the one with the cheapest slot, as placement chooses."""
        fitting = [listing for listing in spec.listings if listing.slots >= spec.slots]
        if not fitting:
            raise SpecError(
                f"no machine on offer has the slots={spec.slots} that one worker takes",
                hint="lower slots, or allow other machines",
            )
        wanted = [listing for listing in fitting if listing.offer.spot == self.spot]
        return min(wanted or fitting, key=lambda x: (usd_per_hour(x) / x.slots, x.offer))

    def _cost_model(self, spec: RunSpec, listing: Listing, usd_per_hour: float, speed: Speed, most: int) -> CostModel:
        # a trial too wide for this machine would be placed on a larger one, if there is any: plan for none
        largest = max(other.slots for other in spec.listings)
        return CostModel(
            slots=listing.slots,
            usd_per_hour=usd_per_hour,
            billing=listing.billing,
            max_machines=max(1, min(spec.max_machines, most)),
            step_s=speed.step_s,
            speedup=lambda slots: speed.on(slots // spec.slots),
            spread=speed.spread,
            slowest=speed.slowest,
            worker_slots=spec.slots,
            most_slots=self.p_max if listing.slots == largest else min(self.p_max, listing.slots),
            provision_s=self.provision_s,
            start_s=self.start_s,
        )

    def left_s(self, state: RunView) -> float:
        """The time available to the plan."""
        return (state.deadline_at - state.spec.wind_down_s - state.now) * (1 - self.margin)

    def opening_plan(self, spec: RunSpec, schedule: Schedule) -> RubberbandPlan:
        """The plan a run begins with, or a SpecError that names the minimum."""
        cost_model = self.at_start(spec)
        plan = cheapest(schedule, cost_model, (spec.deadline_s - spec.wind_down_s) * (1 - self.margin))
        if plan is None:
            least_s = self._least_deadline_s(spec, fastest(schedule, cost_model).latest_s)
            raise SpecError(
                f"deadline {show_duration(spec.deadline_s)} is too short for {show_schedule(schedule)} "
                f"at {cost_model.step_s:g} s a step on {cost_model.max_machines} machines",
                hint=f"the minimum is a deadline of {_in_round_time(least_s)}; more machines "
                "(max_machines, and a budget to prepay them) or fewer trials make it shorter",
            )
        if plan.usd > spec.budget_usd and not self.spot:  # what spot machines will cost is not known yet
            raise SpecError(
                f"budget {show_usd(spec.budget_usd)} is too small for {show_schedule(schedule)} "
                f"within {show_duration(spec.deadline_s)}: the cheapest plan costs {show_usd(plan.usd)}",
                hint=f"the minimum is a budget of {show_usd(plan.usd * 1.01 + 0.01)}, or fewer trials",
            )
        return plan

    def _least_deadline_s(self, spec: RunSpec, needed_s: float) -> float:
        """Including the reserve and the wind-down, which grows with the deadline up to two minutes."""
        needed_s /= 1 - self.margin
        return needed_s + max(spec.wind_down_s, min(120.0, needed_s / 19))


UNKNOWN = PlanInputs()
"""Defaults, before anything is measured."""


def show_schedule(schedule: Schedule) -> str:
    return ", ".join(f"{round_.trials}x{round_.steps}" for round_ in schedule)


def _slice_usd(spec: RunSpec, listing: Listing) -> float:
    """What the guard reserves per machine: no plan may need more machines at once than the budget can reserve."""
    return 0.0 if listing.billing == "free" else listing.on_demand_usd_per_hour * spec.slice_s / HOUR_S


def _in_round_time(seconds: float) -> str:
    """Rounded for display, never below what is needed."""
    for unit in (1, 60, 3600):
        shown = show_duration(math.ceil(seconds / unit) * unit)
        if parse_duration_s(shown) >= seconds:
            return shown
    return f"{math.ceil(seconds)}s"
