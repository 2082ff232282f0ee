"""Machines by the plan: all that the first stage needs at once, prepaid only for that stage; idle machines are released
as soon as the trials that move fit without them.

Placement does the rest (replacing preempted machines, assigning trials, consolidating them). By default it prepays
every machine for a whole slice: in a short and wide first stage that would tie up the budget of the later ones. And
while trials change their width it keeps every machine, where the plan knows how many it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.market.billing import HOUR_S
from shoestring.policies.placement.renting.assign import kept_for_moves
from shoestring.policies.search.seer.bill import BilledPlan
from shoestring.policies.search.seer.terms import Parameters, chosen, provision_s


class Planner(Protocol):
    @property
    def parameters(self) -> Parameters: ...

    def plan(self, state: RunView) -> BilledPlan: ...


@dataclass(frozen=True)
class RentByPlan:
    """Runs before placement, which then finds that no machine is missing."""

    planner: Planner
    wants: ClassVar[frozenset[Waker]] = frozenset({e.RunStarted})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running" or not isinstance(event, e.RunStarted):
            return
        plan = self.planner.plan(state)
        listing, usd_per_hour = chosen(state, self.planner.parameters)
        count = plan.machines[0]
        held_s = provision_s(state.spec, self.planner.parameters) + plan.stages[0].stop + 2 * state.spec.wind_down_s
        if listing.on_demand_usd_per_hour > 0:  # the time that all of them can be prepaid for, at their ceiling price
            held_s = min(held_s, state.spec.budget_usd / count / listing.on_demand_usd_per_hour * HOUR_S)
        refusals = state.refusals
        for number in range(count):
            yield d.RequestLease(
                lease=state.next_lease(),
                offer=listing.offer,
                end_by=state.now + held_s,
                why=f"machine {number + 1} of {count} for stage 1: ${usd_per_hour:.4f}/h, cheapest slot at the start",
            )
            if state.refusals > refusals:
                return


@dataclass(frozen=True)
class ReleaseSpare:
    """Runs after placement, which has assigned all trials that fit."""

    wants: ClassVar[frozenset[Waker]] = frozenset({e.SegmentEnded, e.TimerFired, d.DropJob})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running" or not state.idle:
            return
        free = sum(state.leases[lease].free_slots for lease in state.with_free_slots)
        needed, kept = slots_needed(state), kept_for_moves(state)
        for lease_id in [lease for lease in state.idle if lease not in kept]:
            slots = state.leases[lease_id].slots
            if free - slots >= needed:
                free -= slots
                yield d.ReleaseLease(lease=lease_id, why="idle, and all trials fit on the other machines")


def slots_needed(state: RunView) -> int:
    """Slots of waiting trials, and what trials about to move will need beyond the slots they leave."""
    waiting = sum(state.jobs[job].slots for job in state.waiting)
    moving = (segment for segment in state.segments.values() if segment.halting or segment.id in state.draining)
    wider = (job.slots - segment.slots for segment in moving if (job := state.jobs[segment.job]).wanted)
    return waiting + sum(max(0, more) for more in wider)
