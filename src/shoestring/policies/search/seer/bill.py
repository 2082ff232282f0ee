"""SEER's plan in dollars: what the cloud bills for a plan, and the largest plan that a budget and a deadline allow.

The paper counts slots times minutes. A cloud bills whole machines, from the grant of each until its release, with a
minimum charge; it needs time to bring machines up, and trials need time to save and leave them. The plan here is the
paper's for the slot-time that, billed this way, costs no more than the budget. Times count in seconds from the first
grant: what comes before is `provision_s`, and is not billed.

Differs from the paper: a stage uses all slots of the machines it pays for (more trials are promoted, or wider ones),
and the money left when no further machine can be paid buys time: the first elimination that frees machines comes later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from shoestring.errors import SpecError
from shoestring.kernel.types import BillingName, Fact
from shoestring.market.billing import HOUR_S, new_lease_usd
from shoestring.policies.search.seer.plan import Bracket, Request, SeerPlan, Stage, plan
from shoestring.policies.search.seer.slots import allocate, widths_up_to
from shoestring.units import parse_duration_s, parse_usd, show_duration, show_usd

SEATED, RENEWED = 1.5, 2.0
"""For how many wind-downs a machine must be prepaid at least: when it comes up, or no trial is placed on it any more;
and while it is in use, or it is not renewed in time."""
LEAST_LEASE_S = 60.0
"""The guard refuses to rent for less, and clouds charge it anyway."""


class SeerTerms(Fact, frozen=True, kw_only=True):
    """Inputs of a billed plan: budget, deadline, and the machine the budget is spent on."""

    deadline_s: float
    budget_usd: float
    slots: int
    """Of one machine."""
    usd_per_hour: float
    ceiling_usd_per_hour: float = 0.0
    """What the guard reserves for an hour, where the price may rise; it never counts as less than the price."""
    billing: BillingName = "per_second"
    most_machines: int
    provision_s: float = 0.0
    """From the request to the first grant."""
    wind_down_s: float = 0.0
    """From the end of a stage until the last of its machines is released."""
    t_min_s: float
    eta: float = 4.0
    nu: float = 2.0
    p_min: int = 1
    p_max: float = math.inf

    @property
    def training_s(self) -> float:
        """Time for training: from the first grant until the machines must be released."""
        return self.deadline_s - self.provision_s - self.wind_down_s

    def lease_usd(self, held_s: float) -> float:
        """The bill of one machine that is released after so long."""
        return new_lease_usd(self.billing, held_s, self.usd_per_hour)

    def advance_usd(self, ahead_s: float) -> float:
        """What the guard reserves for one machine that is prepaid for so long."""
        return new_lease_usd(self.billing, ahead_s, max(self.usd_per_hour, self.ceiling_usd_per_hour))


class BilledPlan(Fact, frozen=True, kw_only=True):
    plan: SeerPlan
    machines: tuple[int, ...]
    """In each stage; never more than in the one before."""
    usd: float
    """The bill of all machines together."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.plan.stages


def billed_plan(terms: SeerTerms) -> BilledPlan:
    """The plan that uses the budget, or a SpecError that names the minimum."""
    check_feasible(terms)
    stages = _largest(terms).stages
    lengths = [stage.stop - stage.start for stage in stages]
    machines = more_machines(terms, lengths, [_machines(terms, stage.slots) for stage in stages])
    lengths = more_time(terms, lengths, machines)
    return BilledPlan(
        plan=SeerPlan(stages=_seated(terms, stages, lengths, machines)),
        machines=tuple(machines),
        usd=bill_usd(terms, lengths, machines),
    )


def bill_usd(terms: SeerTerms, lengths: Sequence[float], machines: Sequence[int]) -> float:
    """Whole machines, each from the first grant until the end of the last stage that needs it, plus the wind-down."""
    return _sum_of_leases_usd(_leases_usd(terms, lengths), machines)


def _leases_usd(terms: SeerTerms, lengths: Sequence[float]) -> list[float]:
    """Of one machine that is held until the end of each stage."""
    return [terms.lease_usd(stop + terms.wind_down_s) for stop in accumulate(lengths)]


def _sum_of_leases_usd(until_usd: Sequence[float], machines: Sequence[int]) -> float:
    usd = 0.0
    for until, held, needed_next in zip(until_usd, machines, [*machines[1:], 0], strict=True):
        if held > needed_next:
            usd += (held - needed_next) * until
    return usd


def least_budget_usd(terms: SeerTerms) -> float:
    """One trial, on as few slots and for as short as the terms allow."""
    one = max(terms.lease_usd(terms.t_min_s + terms.wind_down_s), terms.advance_usd(_first_advance_s(terms)))
    return _machines(terms, terms.p_min) * one


def least_deadline_s(terms: SeerTerms) -> float:
    """No machine is rented for less than a minute."""
    return max(LEAST_LEASE_S, terms.provision_s + terms.t_min_s + terms.wind_down_s)


def check_feasible(terms: SeerTerms) -> None:
    """A SpecError if not even one trial can be trained, naming the minimum."""
    needed = _machines(terms, terms.p_min)
    if needed > terms.most_machines:
        raise SpecError(
            f"p_min={terms.p_min} needs {needed} machines, more than max_machines={terms.most_machines}",
            hint="lower p_min, raise max_machines or allow larger machines",
        )
    if not feasible(terms):
        raise infeasible(terms, least_budget_usd(terms), least_deadline_s(terms))


def feasible(terms: SeerTerms) -> bool:
    return terms.deadline_s >= least_deadline_s(terms) and terms.budget_usd >= least_budget_usd(terms)


class InfeasiblePlan(SpecError):
    """Budget or deadline do not allow a single trial."""

    too_short = False
    """Is the deadline too short? Else the budget is too small."""


def infeasible(terms: SeerTerms, usd: float, seconds: float) -> InfeasiblePlan:
    """The error, with the minimum budget and deadline."""
    needed = _machines(terms, terms.p_min)
    error = InfeasiblePlan(
        f"a budget of {show_usd(terms.budget_usd)} and a deadline of {show_duration(terms.deadline_s)} do not allow a "
        f"single trial of {show_duration(terms.t_min_s)} on {needed} machine{'' if needed == 1 else 's'} at "
        f"{show_usd(terms.usd_per_hour)} an hour",
        hint=f"the minimum is a budget of {_usd_that_suffices(usd)} and a deadline of {_time_that_suffices(seconds)}",
    )
    error.too_short = terms.deadline_s < seconds
    return error


def _largest(terms: SeerTerms) -> SeerPlan:
    """The paper's plan for the most slot-time that can be paid for, found by bisection."""
    least = terms.p_min * terms.t_min_s
    most = terms.most_machines * terms.slots * terms.training_s
    usd_per_hour = terms.lease_usd(HOUR_S)
    if usd_per_hour > 0:
        most = min(most, terms.budget_usd / usd_per_hour * HOUR_S * terms.slots)
    found = plan(_request(terms, least))
    low, high = least, max(least, most)
    for _ in range(50):
        middle = math.sqrt(low * high)
        made = plan(_request(terms, middle))
        lengths = [stage.stop - stage.start for stage in made.stages]
        if is_affordable(terms, lengths, [_machines(terms, stage.slots) for stage in made.stages]):
            low, found = middle, made
        else:
            high = middle
        if high <= low * 1.001:
            break
    return found


def _request(terms: SeerTerms, budget: float) -> Request:
    return Request(
        deadline=terms.training_s,
        budget=budget,
        eta=terms.eta,
        nu=terms.nu,
        p_min=terms.p_min,
        p_max=terms.p_max,
        t_min=terms.t_min_s,
    )


def is_affordable(terms: SeerTerms, lengths: Sequence[float], machines: Sequence[int]) -> bool:
    """Are so many machines allowed, is their bill within the budget, and can they be prepaid along the way?"""
    return machines[0] <= terms.most_machines and _Affordable(terms, lengths)(machines)


class _Affordable:
    """The dollars of that question. A search over machines computes once what does not depend on their number."""

    def __init__(self, terms: SeerTerms, lengths: Sequence[float]) -> None:
        self._terms = terms
        self._until_usd = _leases_usd(terms, lengths)
        self._advance_usd = terms.advance_usd(_first_advance_s(terms))
        self._earlier_lengths = lengths[:-1]
        self._ceiling = max(terms.usd_per_hour, terms.ceiling_usd_per_hour)

    def __call__(self, machines: Sequence[int]) -> bool:
        return (
            _sum_of_leases_usd(self._until_usd, machines) <= self._terms.budget_usd
            and machines[0] * self._advance_usd <= self._terms.budget_usd
            and self._prepaid_usd(machines) <= self._terms.budget_usd
        )

    def _prepaid_usd(self, machines: Sequence[int]) -> float:
        """The most that is billed and reserved when a stage is about to end. After the last one nothing is prepaid."""
        usd_per_hour, wind_down_s = self._terms.usd_per_hour, self._terms.wind_down_s
        most, accrued = 0.0, 0.0
        for length, held in zip(self._earlier_lengths, machines, strict=False):
            accrued += held * usd_per_hour * length / HOUR_S
            reserved = accrued + held * self._ceiling * RENEWED * wind_down_s / HOUR_S
            if reserved > most:
                most = reserved
        return most


def _first_advance_s(terms: SeerTerms) -> float:
    """A machine is prepaid from the request on, although it is billed only from the grant."""
    return terms.provision_s + SEATED * terms.wind_down_s


def more_machines(terms: SeerTerms, lengths: Sequence[float], machines: list[int]) -> list[int]:
    """One more machine for a stage, as long as the budget lasts; the stage with the least spending comes first, because
    successive halving spends the same on each."""
    is_paid = _Affordable(terms, lengths)
    while True:
        limits = [terms.most_machines, *machines]
        by_spending = sorted(range(len(machines)), key=lambda k: machines[k] * lengths[k])
        for k in by_spending:
            if machines[k] < limits[k] and is_paid(more := [*machines[:k], machines[k] + 1, *machines[k + 1 :]]):
                machines = more
                break
        else:
            return machines


def more_time(terms: SeerTerms, lengths: Sequence[float], machines: Sequence[int]) -> list[float]:
    """The rest of the budget pays for time: the end comes later if the deadline allows it, else the first elimination
    that frees machines does, by at most half a stage."""
    last = len(lengths) - 1
    spare_s = terms.training_s - math.fsum(lengths)

    def end_later(by_s: float) -> list[float]:
        return [*lengths[:last], lengths[last] + by_s]

    lengths = end_later(_longest(spare_s, lambda s: is_affordable(terms, end_later(s), machines)))
    frees = next((k for k in range(last) if machines[k] > machines[k + 1]), None)
    if frees is None:
        return lengths

    def eliminate_later(by_s: float) -> list[float]:
        moved = list(lengths)
        moved[frees] += by_s
        moved[frees + 1] -= by_s
        return moved

    most_s = min(lengths[frees], lengths[frees + 1]) / 2
    return eliminate_later(_longest(most_s, lambda s: is_affordable(terms, eliminate_later(s), machines)))


def _seated(
    terms: SeerTerms, stages: Sequence[Stage], lengths: Sequence[float], machines: Sequence[int]
) -> tuple[Stage, ...]:
    """The stages with every paid slot allocated."""
    widths = widths_up_to(terms.p_max, [bracket.slots for bracket in stages[0].brackets], terms.nu, terms.slots)
    seated: list[Stage] = []
    start, most_trials = 0.0, math.inf
    for stage, length, held in zip(stages, lengths, machines, strict=True):
        planned = {bracket.slots: bracket.trials for bracket in stage.brackets}
        counts = allocate(held * terms.slots, widths, [planned.get(width, 0) for width in widths], most_trials)
        brackets = tuple(Bracket(trials=n, slots=p) for n, p in zip(counts, widths, strict=True) if n)
        seated.append(Stage(start=start, stop=start + length, brackets=brackets))
        start += length
        most_trials = max(1, sum(counts) // 2)
    return tuple(seated)


def _machines(terms: SeerTerms, slots: int) -> int:
    """As many as hold these slots: a trial may span machines. A stage that rounding has left empty holds one trial."""
    return math.ceil(max(slots, terms.p_min) / terms.slots)


def _longest(most_s: float, fits: Callable[[float], bool]) -> float:
    if most_s <= 0 or fits(most_s):
        return max(0.0, most_s)
    low, high = 0.0, most_s
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _usd_that_suffices(usd: float) -> str:
    """Rounded for display, never below what is needed."""
    for digits in range(2, 12):
        up = math.ceil(usd * 10**digits) / 10**digits
        if usd <= parse_usd(show_usd(up)) <= usd * 1.1:
            return show_usd(up)
    return f"${usd!r}"


def _time_that_suffices(seconds: float) -> str:
    for unit in (1, 60, 3600):
        up = math.ceil(seconds / unit) * unit
        if parse_duration_s(shown := show_duration(up)) >= seconds:
            return shown
    return f"{math.ceil(seconds)}s"
