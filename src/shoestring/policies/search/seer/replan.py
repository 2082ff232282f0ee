"""What is left in the middle of a run: a stage that begins gets more places, or fewer, than the plan had for it.

A plan is made on what bills can come to: the whole wind-down of every machine, prices as they were at the start. Where
less was billed, the difference buys machines for the stages that are left, each its share, as long as they are there
to be kept; where more was (a machine taken away, a price that rose), fewer trials go on.
"""

from __future__ import annotations

import math

from shoestring.kernel.view import RunView
from shoestring.market.billing import billing_rule
from shoestring.policies.search.seer.bill import BilledPlan, SeerTerms, bill_usd
from shoestring.policies.search.seer.plan import Bracket
from shoestring.policies.search.seer.slots import deal, fewer, widths_up_to


def places_that_can_be_paid(state: RunView, terms: SeerTerms, billed: BilledPlan, stage: int) -> tuple[Bracket, ...]:
    """The brackets of the stage that begins now."""
    planned = billed.stages[stage].brackets
    widths = widths_up_to(terms.p_max, _widths(billed), terms.nu, terms.slots)
    of_width = {bracket.slots: bracket.trials for bracket in planned}
    counts = [of_width.get(width, 0) for width in widths]
    machines = machines_that_can_be_paid(state, terms, billed, stage)
    slots = machines * terms.slots
    if machines > billed.machines[stage]:
        before = sum(bracket.trials for bracket in billed.stages[stage - 1].brackets)
        counts = deal(slots, widths, counts, max(1, before // 2))
    else:
        counts = fewer(slots, widths, counts)
    return tuple(Bracket(trials=n, slots=p) for n, p in zip(counts, widths, strict=True) if n)


def machines_that_can_be_paid(state: RunView, terms: SeerTerms, billed: BilledPlan, stage: int) -> int:
    """In the stage that begins now. One that was given back is not rented again."""
    planned = billed.machines[stage]
    held = sum(1 for lease in state.leases.values() if lease.usable)
    return max(1, min(planned + _more_machines(state, terms, billed, stage), max(held, planned)))


def billed_so_far_usd(state: RunView) -> float:
    """Final bills, and what open leases would be billed if they ended now."""
    accrued = []
    for lease in state.leases.values():
        if lease.granted_at is not None:
            listing = state.listings[lease.offer]
            ceiling = listing.ceiling_usd_per_hour(lease.max_usd_per_hour)
            prices, now = state.history(lease.offer), max(state.now, lease.granted_at)
            accrued.append(billing_rule(listing.billing).worst_usd(lease.granted_at, prices, now, now, ceiling))
    return state.spent_usd + math.fsum(accrued)


def _more_machines(state: RunView, terms: SeerTerms, billed: BilledPlan, stage: int) -> int:
    """Than planned, for this stage; negative if money is short."""
    lengths = [one.stop - one.start for one in billed.stages[stage:]]
    usd = terms.lease_usd(max(lengths[0], 60.0))
    if usd <= 0:
        return 0
    left_usd = terms.budget_usd - billed_so_far_usd(state) - bill_usd(terms, lengths, billed.machines[stage:])
    return math.floor(left_usd / len(lengths) / usd)


def _widths(billed: BilledPlan) -> list[int]:
    return sorted({bracket.slots for stage in billed.stages for bracket in stage.brackets})
