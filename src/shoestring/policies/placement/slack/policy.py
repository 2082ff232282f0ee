"""Spot machines where an hour of work is cheapest, with the deadline guaranteed by on-demand ones.

Each trial is looked at by itself: what is left of its work and its time goes to a rule (`slack_wish`), the same that
the benchmark plays, and what it answers is put into the words of the kernel. A machine to move to is rented first; the
trial saves and stops where it is only when that one is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job, Lease, Segment
from shoestring.kernel.types import LeaseId, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import PLACEMENT_WAKERS, release_idle, request, start_waiting_jobs
from shoestring.policies.placement.renting.consolidate import consolidate
from shoestring.policies.placement.renting.facts import per_slot
from shoestring.policies.placement.renting.packing import has_time
from shoestring.policies.placement.renting.rent import Ranked, rent_missing
from shoestring.policies.placement.slack.choice import Rule, wish_of
from shoestring.policies.placement.slack.guarantee import MachineChoice, SlackChoice, guarded, may_start_on_spot
from shoestring.policies.placement.slack.on_demand_fallback import cheapest_steps
from shoestring.policies.placement.slack.spot_market import no_move_pays, spot_market, spot_may_come
from shoestring.policies.placement.slack.trial_slack import (
    LOOK_S,
    SETUP_S,
    UNTIMED,
    SlackContext,
    has_plenty,
    net_of,
    work_at_most_s,
)
from shoestring.units import show_duration

WATCH = "slack"
"""The timer of the next look at everybody."""
WATCH_ONE = "slack:"
"""That of a machine whose trial has little slack."""
MOST_UNWATCHED_S = 1800.0
"""Prices move slowly: whether a move would pay is asked this often."""
UNTIMED_UNWATCHED_SHARE = 0.02
"""Of the time: how soon it is looked whether steps have been timed by now."""
UNTIMED_SPARE_SHARE = 0.15
"""While no step has been timed, the last share of the time is for on-demand machines, as with `cheapest`."""


@dataclass(frozen=True)
class Slack:
    idle_s: float = 120.0
    consolidates: bool = False
    """For trials of many widths: the widest sit down first, and work spread over half-empty machines is moved together,
    so that those it leaves can be given back."""
    rule: Rule = "slack"
    """What decides within the guarantee."""
    wants: ClassVar[frozenset[Waker]] = PLACEMENT_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        turn = SlackContext(state)
        yield from _give_back_what_was_left(turn)
        yield from start_waiting_jobs(state, widest_first=self.consolidates)
        yield from rent_missing(state, lambda _: self._ranked(turn))
        if state.segments and _can_choose(state):
            yield from self._look(turn, event)
        if self.consolidates:
            yield from consolidate(state)
        yield from release_idle(state, self.idle_s)

    def _ranked(self, turn: SlackContext) -> Ranked:
        """For the trial that has waited longest: spot where the useful hour is cheapest, on demand where that is wiser,
        or nothing, which is to wait until a zone has machines again."""
        state = turn.state
        job = _most_pressed(turn)
        net = net_of(turn, job)
        market = spot_market(turn, job, net)
        if net is None:
            spot, kept = market.ranked(UNTIMED), cheapest_steps(turn.speeds, state, job)
            near = state.deadline_at - state.now < UNTIMED_SPARE_SHARE * state.spec.deadline_s
            return [*kept, *spot] if near else [*spot, *kept]
        spot = market.ranked(net.switching)
        if not net.kept:
            return spot
        if net.hopeless or not (market.quotes or spot_may_come(turn, job, net)):
            return [*spot, *net.kept]
        match wish_of(self.rule, turn, net, market).kind:
            case MachineChoice.ON_DEMAND:
                why = f"{show_duration(max(0.0, net.now.slack_s))} of slack"
                return [*((offer, f"{why}; {reason}") for offer, reason in net.kept), *spot]
            case MachineChoice.SPOT:
                return spot
            case _:
                return []

    def _look(self, turn: SlackContext, event: e.Event) -> Iterator[d.Decision]:
        """At everybody when that is due, or when a machine has come that somebody wants to move to; else at those who
        have little slack, and at who has just started."""
        state = turn.state
        due = WATCH not in state.timers
        if due or (isinstance(event, e.LeaseGranted) and state.idle) or isinstance(event, e.LeaseDenied):
            looked = list(state.segments.values())
        else:
            looked = _concerned(state, event)
        claimed = _claimed_by_those_who_left(state) if looked else set()
        for segment in looked:
            yield from self._watch(turn, segment, claimed)
        if due and state.segments:
            unwatched_s = MOST_UNWATCHED_S
            if not any(segment.pace.steps for segment in state.segments.values()):
                unwatched_s = min(unwatched_s, max(LOOK_S, UNTIMED_UNWATCHED_SHARE * state.spec.deadline_s))
            yield d.WakeAt(
                name=WATCH,
                at=state.now + unwatched_s,
                about=next(iter(state.segments.values())).leases[0],
                why="a move could pay then, or slack be short",
            )

    def _watch(self, turn: SlackContext, segment: Segment, claimed: set[LeaseId]) -> Iterator[d.Decision]:
        """One running trial: does it stay, save, or go elsewhere? And must that be asked again before the next look?
        Machines that it is going to take are added to those claimed."""
        state = turn.state
        job, lease = state.jobs[segment.job], state.leases[segment.leases[0]]
        if segment.halting or not _may_move(state, segment, lease):
            return
        work_s = work_at_most_s(turn, job)
        if work_s is None:
            return
        settled = lease.offer.spot and (segment.running_since is None or no_move_pays(turn, job, lease.offer, work_s))
        if settled and has_plenty(turn, work_s, 3 * MOST_UNWATCHED_S):
            return
        net = net_of(turn, job)
        if net is None or not net.kept or net.hopeless:
            return
        spare_s = net.now.slack_s - net.switching.line_s - LOOK_S
        goal = lease.offer
        if settled or (lease.offer.spot and not may_start_on_spot(net.now.slack_s, net.switching)):
            # It could not move, whatever the market were like: only the guarantee has a say.
            kind = guarded(SlackChoice(MachineChoice.SPOT, net.now.zone), net.now, net.switching).kind
        else:
            market = spot_market(turn, job, net)
            net = replace(net, now=net.now.at(market.place(lease.offer)))
            wish = wish_of(self.rule, turn, net, market)
            kind = wish.kind
            if kind is MachineChoice.SPOT and wish.zone >= 0:
                goal = market.offers[wish.zone]
        if kind is MachineChoice.SAVE:
            yield d.SaveCheckpoint(
                segment=segment.id, why="little slack is left: what is saved cannot be lost any more"
            )
        elif kind is MachineChoice.ON_DEMAND and lease.offer.spot:
            why = f"{show_duration(max(0.0, net.now.slack_s))} of slack is left, a loss would cost the deadline"
            yield from _move(state, segment, [offer for offer, _ in net.kept], why, claimed)
        elif goal != lease.offer and not state.waiting:
            why = f"{goal} is worth the move: ${state.usd_per_hour(goal):.4f}/h"
            yield from _move(state, segment, [goal], why, claimed)
        # Nobody takes an on-demand machine away. On spot slack cannot fall faster than time passes, but the pace by
        # which it is reckoned may turn out slower: look at half of the way.
        if lease.offer.spot and spare_s / 2 < MOST_UNWATCHED_S and f"{WATCH_ONE}{lease.id}" not in state.timers:
            yield d.WakeAt(
                name=f"{WATCH_ONE}{lease.id}",
                at=state.now + max(LOOK_S, spare_s / 2),
                about=lease.id,
                why="slack could run out then",
            )


@dataclass(frozen=True)
class Greedy(Slack):
    """Spot while there is any; on demand at the last moment, and to the end."""

    rule: Rule = "greedy"


@dataclass(frozen=True)
class UniformProgress(Slack):
    """On demand whenever the study is behind the clock; two set-ups ahead of it, back to spot."""

    rule: Rule = "uniform_progress"


def _most_pressed(turn: SlackContext) -> Job:
    """Of the trials that could sit down next: each has its own deadline to keep, so the one with the least slack
    decides. Those who need no on-demand machine and get one go back to spot soon."""
    state = turn.state
    first = [state.jobs[job] for job in islice(state.waiting, state.spec.max_machines)]
    nets = [(job, net_of(turn, job)) for job in first]
    return min(nets, key=lambda pair: math.inf if pair[1] is None else pair[1].now.slack_s)[0]


def _can_choose(state: RunView) -> bool:
    """Are there machines of both kinds? Only then is there anything to look after."""
    return state.memo("slack can choose", lambda: len({listing.offer.spot for listing in state.listings.values()}) > 1)


def _concerned(state: RunView, event: e.Event) -> list[Segment]:
    """By this event, and by what was decided in this turn."""
    found: list[Segment] = []
    if isinstance(event, e.TimerFired) and event.name.startswith(WATCH_ONE):
        found += state.segments_on(LeaseId(event.name.removeprefix(WATCH_ONE)))
    for taken in state.decided:
        if isinstance(taken, d.StartSegment) and taken.segment in state.segments:
            found.append(state.segments[taken.segment])
    return found


def _claimed_by_those_who_left(state: RunView) -> set[LeaseId]:
    """Idle machines that segments which are stopping now will go on with."""
    return set(islice(state.idle, _stopping(state)))


def _stopping(state: RunView) -> int:
    """Trials that are about to wait for a place."""
    return sum(segment.halting and state.jobs[segment.job].wanted for segment in state.segments.values())


def _move(
    state: RunView, segment: Segment, offers: list[Offer], why: str, claimed: set[LeaseId]
) -> Iterator[d.Decision]:
    """Stop where it is once a machine to go to is idle, and rent that first. Where no more machines are allowed, the
    one it has must go before another can come: only the guarantee is worth that, and only while nobody queues, who
    would take its place."""
    slots = segment.slots
    open_to_it = [
        lease
        for lease_id in (*state.idle, *state.pending)
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
    elif not offers[0].spot and not state.pending and not state.waiting:
        yield d.HaltSegment(segment=segment.id, grace_s=state.spec.slice_s, why=f"makes room for another: {why}")


def _give_back_what_was_left(turn: SlackContext) -> Iterator[d.Decision]:
    """With more idle machines than trials that wait, the ones too many go before anybody sits down, or whoever moved
    could end up where it came from. Near the line spot machines go first, one of them also to make room for an
    on-demand machine where no more may be rented; else the dearest."""
    state = turn.state
    surplus = len(state.idle) - len(state.waiting) - _stopping(state)
    full = state.in_hand >= state.spec.max_machines
    if not state.waiting or not state.idle or not (surplus > 0 or full):
        return
    job = state.jobs[next(iter(state.waiting))]
    if job.offer is not None:
        return  # which machines are too many for it depends on more than their number
    work_s = work_at_most_s(turn, job)
    if work_s is None or (surplus <= 0 and has_plenty(turn, work_s, 4 * SETUP_S)):
        return
    net = net_of(turn, job)
    gangs = surplus > 0 and any(state.jobs[waits].slots > state.largest_slots for waits in state.waiting)
    if net is None or gangs:
        return
    # A trial that has just saved in order to move has won what was unsaved, a step or more: it moves all the same.
    pressed = net.now.slack_s < net.switching.line_s + net.switching.setup_s + net.switching.save_s
    idle = [lease for lease in map(state.leases.__getitem__, state.idle) if lease.slots >= job.slots]
    spot = [lease for lease in idle if lease.offer.spot]
    kept = [lease for lease in idle if not lease.offer.spot]
    surplus -= len(state.idle) - len(idle)
    no_spot = not may_start_on_spot(net.now.slack_s, net.switching)
    if no_spot and spot and not kept and full and net.kept and not net.hopeless:
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


def _may_move(state: RunView, segment: Segment, lease: Lease) -> bool:
    """Gangs and machines shared by several trials stay where they are; a notice is being answered already."""
    alone = len(segment.leases) == 1 and len(lease.segments) == 1
    return alone and lease.usable and state.jobs[segment.job].wanted and segment.id not in state.draining


def _usd(state: RunView, lease: Lease) -> float:
    return per_slot(state.usd_per_hour(lease.offer), state.listings[lease.offer])
