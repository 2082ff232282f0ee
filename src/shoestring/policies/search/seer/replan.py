"""Replanning during a run: a stage that begins gets more slots, or fewer, than planned, by what was billed so far.

A plan assumes the largest bills: the whole wind-down of every machine, prices as at the start. Where less was billed,
the difference pays for machines in the remaining stages, an equal share each, as long as they are still held; where
more was billed (a preempted machine, a higher price), fewer trials are promoted.
"""

from __future__ import annotations

import math

from shoestring.kernel.view import RunView
from shoestring.market.billing import billing_rule
from shoestring.policies.search.seer.bill import BilledPlan, SeerTerms, bill_usd
from shoestring.policies.search.seer.plan import Bracket
from shoestring.policies.search.seer.slots import allocate, fewer, widths_up_to


def affordable_brackets(state: RunView, terms: SeerTerms, billed: BilledPlan, stage: int) -> tuple[Bracket, ...]:
    """The brackets of the stage that begins now."""
    planned = billed.stages[stage].brackets
    widths = widths_up_to(terms.p_max, _widths(billed), terms.nu, terms.slots)
    of_width = {bracket.slots: bracket.trials for bracket in planned}
    counts = [of_width.get(width, 0) for width in widths]
    machines = affordable_machines(state, terms, billed, stage)
    slots = machines * terms.slots
    if machines > billed.machines[stage]:
        before = sum(bracket.trials for bracket in billed.stages[stage - 1].brackets)
        counts = allocate(slots, widths, counts, max(1, before // 2))
    else:
        counts = fewer(slots, widths, counts)
    return tuple(Bracket(trials=n, slots=p) for n, p in zip(counts, widths, strict=True) if n)


def affordable_machines(state: RunView, terms: SeerTerms, billed: BilledPlan, stage: int) -> int:
    """In the stage that begins now. A released machine is not rented again."""
    planned = billed.machines[stage]
    held = sum(1 for lease in state.leases.values() if lease.usable)
    return max(1, min(planned + _more_machines(state, terms, billed, stage), max(held, planned)))


def billed_so_far_usd(state: RunView) -> float:
    """Final bills, plus what open leases would be billed if they ended now."""
    accrued = []
    for lease in state.leases.values():
        if lease.granted_at is not None:
            listing = state.listings[lease.offer]
            ceiling = listing.ceiling_usd_per_hour(lease.max_usd_per_hour)
            prices, now = state.history(lease.offer), max(state.now, lease.granted_at)
            accrued.append(billing_rule(listing.billing).worst_usd(lease.granted_at, prices, now, now, ceiling))
    return state.spent_usd + math.fsum(accrued)


def _more_machines(state: RunView, terms: SeerTerms, billed: BilledPlan, stage: int) -> int:
    """How many more than planned, for this stage; negative if the budget is short."""
    lengths = [one.stop - one.start for one in billed.stages[stage:]]
    usd = terms.lease_usd(max(lengths[0], 60.0))
    if usd <= 0:
        return 0
    left_usd = terms.budget_usd - billed_so_far_usd(state) - bill_usd(terms, lengths, billed.machines[stage:])
    return math.floor(left_usd / len(lengths) / usd)


def _widths(billed: BilledPlan) -> list[int]:
    return sorted({bracket.slots for stage in billed.stages for bracket in stage.brackets})
