"""From a run to the terms of a SEER plan: which machine the budget is spent on, and at what price."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from shoestring.errors import SpecError
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.market.billing import price_at
from shoestring.policies.search.seer.bill import (
    SeerTerms,
    check_feasible,
    feasible,
    infeasible,
    least_budget_usd,
    least_deadline_s,
)
from shoestring.policies.search.seer.plan import Request


@dataclass(frozen=True)
class Parameters:
    """What a user may set. Widths count workers: with two slots per worker a trial takes at least `2 * p_min` slots."""

    eta: float = 4.0
    nu: float = 2.0
    p_min: int = 1
    p_max: float = math.inf
    t_min_s: float | None = None
    provision_s: float | None = None
    spot: bool = True
    """May spot machines be rented?"""

    def check(self) -> None:
        """A SpecError if no budget makes a plan with these feasible."""
        Request(deadline=1e9, budget=1e18, eta=self.eta, nu=self.nu, p_min=self.p_min, p_max=self.p_max)


def provision_s(spec: RunSpec, parameters: Parameters) -> float:
    """How long the plan allows for machines to come up: as set by the user, else what clouds usually need, two minutes,
    and at most a tenth of the deadline. Stages count from the first grant, so a wrong guess costs time and no money."""
    return min(120.0, spec.deadline_s / 10) if parameters.provision_s is None else parameters.provision_s


def t_min_s(spec: RunSpec, parameters: Parameters) -> float:
    """How long a trial is trained before it may be pruned, by default.

    The paper wants one or two epochs and sets one minute for deadlines of 15 to 60 minutes, 5 and 10 minutes for those
    of hours: about a thirtieth. At least one minute, which a job needs to start and report, unless that exceeds a
    quarter of the training time.
    """
    if parameters.t_min_s is not None:
        return parameters.t_min_s
    training_s = spec.deadline_s - provision_s(spec, parameters) - spec.wind_down_s
    return max(training_s / 30, min(60.0, training_s / 4))


def terms_for(spec: RunSpec, parameters: Parameters, listing: Listing, usd_per_hour: float) -> SeerTerms:
    return SeerTerms(
        deadline_s=spec.deadline_s,
        budget_usd=spec.budget_usd,
        slots=listing.slots // spec.slots,
        usd_per_hour=usd_per_hour,
        ceiling_usd_per_hour=listing.on_demand_usd_per_hour,
        billing=listing.billing,
        most_machines=spec.max_machines,
        provision_s=provision_s(spec, parameters),
        wind_down_s=spec.wind_down_s,
        t_min_s=t_min_s(spec, parameters),
        eta=parameters.eta,
        nu=parameters.nu,
        p_min=parameters.p_min,
        p_max=parameters.p_max,
    )


def check_feasible_spec(spec: RunSpec, parameters: Parameters) -> None:
    """A SpecError unless a single trial can be trained, naming a budget and a deadline that are feasible together.

    At on-demand prices: before a run begins no others are known, and no machine ever costs more.
    """
    terms = _at_list_price(spec, parameters)
    check_feasible(replace(terms, deadline_s=math.inf, budget_usd=math.inf))
    if feasible(terms):
        return
    later = _in_time(spec, parameters)
    at_any = [later] if later.deadline_s > spec.deadline_s else [later, terms]
    raise infeasible(terms, max(map(least_budget_usd, at_any)), later.deadline_s)


def _in_time(spec: RunSpec, parameters: Parameters) -> SeerTerms:
    """With the shortest deadline that leaves time for a trial. The time for machines to come up and to be released, and
    the least time of a trial, may depend on the deadline, so it is found by bisection."""

    def at(deadline_s: float) -> SeerTerms:
        wind_down_s = max(spec.wind_down_s, min(120.0, deadline_s / 20))
        return _at_list_price(replace(spec, deadline_s=deadline_s, wind_down_s=wind_down_s), parameters)

    low, high = 0.0, 60.0
    while at(high).deadline_s < least_deadline_s(at(high)):
        low, high = high, 2 * high
    while high - low > 1.0 and low > 0:
        middle = (low + high) / 2
        low, high = (low, middle) if middle >= least_deadline_s(at(middle)) else (middle, high)
    return at(math.ceil(high))


def _at_list_price(spec: RunSpec, parameters: Parameters) -> SeerTerms:
    listing = _cheapest_that_will_do(spec, parameters, lambda listing: listing.on_demand_usd_per_hour)
    return terms_for(spec, parameters, listing, listing.on_demand_usd_per_hour)


def terms_at_start(state: RunView, parameters: Parameters) -> SeerTerms:
    listing, usd_per_hour = chosen(state, parameters)
    return terms_for(state.spec, parameters, listing, usd_per_hour)


def chosen(state: RunView, parameters: Parameters) -> tuple[Listing, float]:
    """The machine whose slots were cheapest when the run began, and its price then, so that later calls return the
    same. A spot machine never counts as more expensive than an on-demand one."""

    def usd_per_hour(listing: Listing) -> float:
        if not listing.offer.spot:
            return listing.on_demand_usd_per_hour
        return min(price_at(state.history(listing.offer), state.started_at), listing.on_demand_usd_per_hour)

    listing = _cheapest_that_will_do(state.spec, parameters, usd_per_hour)
    return listing, usd_per_hour(listing)


def _cheapest_that_will_do(spec: RunSpec, parameters: Parameters, usd_per_hour: Callable[[Listing], float]) -> Listing:
    """By the price of a slot, among those on which the budget pays for a trial: one billed by the hour may be cheaper,
    and still too expensive for a few minutes."""

    def order(listing: Listing) -> tuple[bool, float, Offer]:
        usd = usd_per_hour(listing)
        return not feasible(terms_for(spec, parameters, listing, usd)), usd / listing.slots, listing.offer

    return min(_fitting(spec, parameters), key=order)


def _fitting(spec: RunSpec, parameters: Parameters) -> list[Listing]:
    """Machines that may be rented and fit a worker."""
    found = [x for x in spec.listings if x.slots >= spec.slots and (parameters.spot or not x.offer.spot)]
    if not found:
        kind = "machine" if parameters.spot else "on-demand machine"
        raise SpecError(
            f"no {kind} on offer has the {spec.slots} slots that one worker takes",
            hint="lower slots, or allow other machines",
        )
    return found
