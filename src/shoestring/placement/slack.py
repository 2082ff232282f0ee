"""Spot machines where an hour of work is cheapest, with the deadline guaranteed by on-demand ones.

Each trial is looked at by itself: what is left of its work and its time goes to `slack_choice.choose`, the function
that the benchmark plays, and what it answers is put into the words of the kernel. A machine to move to is rented first;
the trial saves and stops where it is only when that one is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job, Lease, Segment
from shoestring.kernel.types import LeaseId, Offer
from shoestring.kernel.view import RunView
from shoestring.placement.buying import Ranked, rent_missing
from shoestring.placement.gathering import gather
from shoestring.placement.matching import PLACEMENT_WAKERS, release_idle, request, start_waiting_jobs
from shoestring.placement.on_demand import on_demand_offers
from shoestring.placement.pricing import per_slot
from shoestring.placement.seating import has_time
from shoestring.placement.slack_choice import choose
from shoestring.placement.slack_guarantee import Kind, Situation
from shoestring.placement.slack_market import SpotMarket, programme_for, spot_market
from shoestring.placement.slack_nets import LOOK_S, UNTIMED, Net, machines_known, net_of
from shoestring.units import show_duration

WATCH = "slack:"
MOST_UNWATCHED_S = 1800.0
"""Prices move slowly: whether a move would pay is asked this often at least."""
UNTIMED_SPARE_SHARE = 0.15
"""While no step has been timed, the last share of the time is for on-demand machines, as with `cheapest`."""


@dataclass(frozen=True)
class Slack:
    idle_s: float = 120.0
    gathers: bool = False
    """For trials of many widths: the widest sit down first, and work spread over half-empty machines is moved together,
    so that those it leaves can be given back."""
    wants: ClassVar[frozenset[Waker]] = PLACEMENT_WAKERS | {e.SegmentStarted}

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        yield from _give_back_what_was_left(state)
        yield from start_waiting_jobs(state, widest_first=self.gathers)
        yield from rent_missing(state, _ranked)
        claimed = _claimed_by_those_who_left(state)
        for segment in list(state.segments.values()):
            if isinstance(event, e.LeaseGranted) or f"{WATCH}{segment.leases[0]}" not in state.timers:
                yield from _watch(state, segment, claimed)
        if self.gathers:
            yield from gather(state)
        yield from release_idle(state, self.idle_s)


def _ranked(state: RunView) -> Ranked:
    """For the trial that has waited longest: spot where the useful hour is cheapest, on demand where that is wiser, or
    nothing, which is to wait until a zone has machines again."""
    job = state.jobs[next(iter(state.waiting))]
    kept, net = _on_demand_for(state, job), net_of(state, job)
    if net is None:
        market = spot_market(state, job, work_left_s=3600.0)
        spot = market.ranked(UNTIMED)
        near = state.deadline_at - state.now < UNTIMED_SPARE_SHARE * state.spec.deadline_s
        return [*kept, *spot] if near else [*spot, *kept]
    market = spot_market(state, job, net.now.work_left_s)
    spot = market.ranked(net.switching)
    if not kept:
        return spot
    match _choice(state, net.now, net, market, kept[0][0]):
        case Kind.ON_DEMAND, _:
            why = f"{show_duration(max(0.0, net.now.slack_s))} of slack"
            return [*((offer, f"{why}; {reason}") for offer, reason in kept), *spot]
        case Kind.SPOT, _:
            return spot
        case _:
            return []


def _claimed_by_those_who_left(state: RunView) -> set[LeaseId]:
    """Idle machines that segments which are stopping now will go on with."""
    stopping = sum(segment.halting and state.jobs[segment.job].wanted for segment in state.segments.values())
    return set(islice(state.idle, stopping))


def _watch(state: RunView, segment: Segment, claimed: set[LeaseId]) -> Iterator[d.Decision]:
    """One running trial: does it stay, save, or go elsewhere? And when must that be asked again? Machines that it is
    going to take are added to those claimed."""
    job = state.jobs[segment.job]
    lease = state.leases[segment.leases[0]]
    net, kept = net_of(state, job), _on_demand_for(state, job)
    if net is None or not kept or segment.halting or not _may_move(state, segment, lease):
        return
    market = spot_market(state, job, net.now.work_left_s)
    situation = _at(net.now, market.place(lease.offer))
    kind, zone = _choice(state, situation, net, market, kept[0][0])
    if kind is Kind.SAVE:
        yield d.SaveCheckpoint(segment=segment.id, why="little slack is left: what is saved cannot be lost any more")
    elif kind is Kind.ON_DEMAND and lease.offer.spot:
        why = f"{show_duration(max(0.0, situation.slack_s))} of slack is left, a loss would cost the deadline"
        yield from _move(state, segment, [offer for offer, _ in kept], why, claimed)
    elif kind is Kind.SPOT and zone >= 0 and market.offers[zone] != lease.offer and not state.waiting:
        offer = market.offers[zone]
        why = f"{offer} is worth the move: ${state.usd_per_hour(offer):.4f}/h"
        yield from _move(state, segment, [offer], why, claimed)
    if f"{WATCH}{lease.id}" not in state.timers:
        # Nobody takes an on-demand machine away. On spot slack cannot fall faster than time passes, but the pace by
        # which it is reckoned may turn out slower: look at half of the way.
        spare_s = (situation.slack_s - net.switching.line_s - LOOK_S) / 2
        if situation.here is Kind.ON_DEMAND:
            spare_s = MOST_UNWATCHED_S
        yield d.WakeAt(
            name=f"{WATCH}{lease.id}",
            at=state.now + min(MOST_UNWATCHED_S, max(LOOK_S, spare_s)),
            about=lease.id,
            why="slack could run out then, or a move pay",
        )


def _move(
    state: RunView, segment: Segment, offers: list[Offer], why: str, claimed: set[LeaseId]
) -> Iterator[d.Decision]:
    """Stop where it is once a machine to go to is idle, and rent that first. Where no more machines are allowed, the
    one it has must go before another can come: only the guarantee is worth that."""
    slots = segment.slots
    open_to_it = [
        lease
        for lease_id in (*state.idle, *state.coming)
        if (lease := state.leases[lease_id]).offer in offers and lease.slots >= slots and lease_id not in claimed
    ]
    if open_to_it:
        claimed.add(open_to_it[0].id)
        if open_to_it[0].usable and has_time(state, open_to_it[0]):
            yield d.HaltSegment(segment=segment.id, grace_s=state.spec.slice_s, why=f"moves: {why}")
    elif state.in_hand < state.spec.max_machines:
        for offer in offers:
            refusals, asked = state.refusals, state.next_lease()
            if state.listings[offer].slots >= slots:
                yield request(state, offer, why)
                if state.refusals == refusals:
                    claimed.add(asked)
                    return
    elif not offers[0].spot and not state.coming:
        yield d.HaltSegment(segment=segment.id, grace_s=state.spec.slice_s, why=f"makes room for another: {why}")


def _give_back_what_was_left(state: RunView) -> Iterator[d.Decision]:
    """With more idle machines than trials that wait, the ones too many go before anybody sits down, or whoever moved
    could end up where it came from. Near the line spot machines go first, one of them also to make room for an
    on-demand machine where no more may be rented; else the dearest."""
    if not state.waiting or not state.idle:
        return
    job = state.jobs[next(iter(state.waiting))]
    net = net_of(state, job)
    surplus = len(state.idle) - len(state.waiting)
    gangs = surplus > 0 and any(state.jobs[waits].slots > state.largest_slots for waits in state.waiting)
    if net is None or gangs:
        return
    pressed = net.now.slack_s < net.switching.line_s + net.switching.setup_s
    idle = [lease for lease in map(state.leases.__getitem__, state.idle) if lease.slots >= job.slots]
    spot = [lease for lease in idle if lease.offer.spot]
    kept = [lease for lease in idle if not lease.offer.spot]
    surplus -= len(state.idle) - len(idle)
    if pressed and spot and not kept and state.in_hand >= state.spec.max_machines and _on_demand_for(state, job):
        surplus = 1
    dearest_first = sorted(spot, key=lambda lease: (-_usd(state, lease), lease.id))
    for lease in [*dearest_first, *kept] if pressed else [*kept, *dearest_first]:
        if surplus <= 0:
            return
        surplus -= 1
        why = "there are more idle machines than trials that wait"
        yield d.ReleaseLease(
            lease=lease.id, why=why if not pressed else "slack is short: it makes room, or is too many"
        )


def _choice(state: RunView, now: Situation, net: Net, market: SpotMarket, kept: Offer) -> tuple[Kind, int]:
    listing = state.listings[kept]
    kept_usd = per_slot(listing.on_demand_usd_per_hour, listing)
    programme = programme_for(
        state, market, net.switching, kept_usd, now.work_left_s + now.unsaved_s, max(0.0, now.slack_s)
    )
    wish = choose(now, net.switching, programme, market.quotes)
    return wish.kind, wish.zone


def _on_demand_for(state: RunView, job: Job) -> Ranked:
    """Machines that it was timed on come first: a slower one could not keep what is promised."""
    known = machines_known(state, job)
    fitting = [
        (offer, why)
        for offer, why in on_demand_offers(state)
        if job.offer in (None, offer) and state.listings[offer].slots >= min(job.slots, state.largest_slots)
    ]
    return sorted(fitting, key=lambda pair: pair[0].machine not in known)


def _may_move(state: RunView, segment: Segment, lease: Lease) -> bool:
    """Gangs and machines shared by several trials stay where they are; a notice is being answered already."""
    alone = len(segment.leases) == 1 and len(lease.segments) == 1
    return alone and lease.usable and state.jobs[segment.job].wanted and segment.id not in state.leaving


def _usd(state: RunView, lease: Lease) -> float:
    return per_slot(state.usd_per_hour(lease.offer), state.listings[lease.offer])


def _at(now: Situation, zone: int) -> Situation:
    return Situation(now.time_left_s, now.work_left_s, now.unsaved_s, now.here, zone, now.starting)
