"""Spot machines where an hour of work is cheapest, with the deadline guaranteed by an on-demand fallback.

Each trial is looked at by itself: a rule (`slack.choice`), the same as in the benchmark, chooses by its work and time
left, and the choice becomes decisions of the kernel. A machine to move to is rented first; the trial saves and stops
where it is only once that one is up.
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
from shoestring.kernel.records import Lease, Segment
from shoestring.kernel.types import LeaseId, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.assign import PLACEMENT_WAKERS, release_idle, request, start_waiting_jobs
from shoestring.policies.placement.renting.consolidate import consolidate
from shoestring.policies.placement.renting.facts import per_slot
from shoestring.policies.placement.renting.least_time import has_time
from shoestring.policies.placement.renting.rent import Ranked, rent_missing
from shoestring.policies.placement.renting.unfinished_step import moving_grace_s, step_ends_soon
from shoestring.policies.placement.slack.choice import Rule, choice_by
from shoestring.policies.placement.slack.guarantee import (
    MachineChoice,
    SlackChoice,
    guarded,
    may_start_on_spot,
)
from shoestring.policies.placement.slack.lanes import (
    leave_too_slow,
    leaves_for_queue,
    most_urgent,
    notice_suffices,
    release_too_slow,
    start_longest_first,
)
from shoestring.policies.placement.slack.on_demand_fallback import cheapest_steps
from shoestring.policies.placement.slack.per_trial import (
    LOOK_S,
    SETUP_S,
    UNTIMED,
    SlackContext,
    has_plenty,
    slack_of,
    work_at_most_s,
)
from shoestring.policies.placement.slack.spot_market import no_move_pays, spot_market, spot_may_come

WATCH = "slack"
"""The timer of the next look at all running trials."""
WATCH_ONE = "slack:"
"""The timer of a machine whose trial has little slack."""
MOST_UNWATCHED_S = 1800.0
"""Prices move slowly: whether a move would pay is checked this often."""
BEHIND_SHARE = 0.002
"""Of the deadline: so far behind its schedule `uniform_progress` may be before it looks again, a minute at least."""
UNTIMED_UNWATCHED_SHARE = 0.02
"""As a share of the deadline: how soon to look again while no step has been timed."""
UNTIMED_SPARE_SHARE = 0.15
"""While no step has been timed, the last share of the time prefers on-demand machines, as `cheapest` does."""


@dataclass(frozen=True)
class Slack:
    idle_s: float = 120.0
    consolidates: bool = False
    """For trials of different widths: the widest start first, and trials spread over half-empty machines are packed
    onto fewer, so that the others can be released."""
    rule: Rule = "slack"
    """Chooses within the guarantee."""
    wants: ClassVar[frozenset[Waker]] = PLACEMENT_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        context, waited = SlackContext(state), len(state.waiting)
        yield from release_too_slow(context)
        yield from _release_surplus(context)
        if not self.consolidates:
            yield from start_longest_first(context)
        yield from start_waiting_jobs(state, widest_first=self.consolidates)
        if len(state.waiting) < waited:
            context = SlackContext(state)  # what has started no longer queues
        yield from rent_missing(
            state, lambda _: self._ranked(context), look_within_s=lambda: self._look_within_s(context)
        )
        if state.segments and _can_choose(context):
            yield from self._look_at_running(context, event)
        if self.consolidates:
            yield from consolidate(state)
        yield from release_idle(state, self.idle_s)

    def _ranked(self, context: SlackContext) -> Ranked:
        """For the waiting trial with the least slack: spot where the useful hour is cheapest, on-demand where the rule
        says so, or nothing, which is to wait until a zone has machines again."""
        state = context.state
        job = most_urgent(context)
        trial_slack = slack_of(context, job)
        market = spot_market(context, job, trial_slack)
        if trial_slack is None:
            spot, on_demand = market.ranked(UNTIMED), cheapest_steps(context.speeds, state, job)
            near = state.deadline_at - state.now < UNTIMED_SPARE_SHARE * state.spec.deadline_s
            return [*on_demand, *spot] if near else [*spot, *on_demand]
        spot = market.ranked(trial_slack.switching)
        if not trial_slack.on_demand:
            return spot
        waits_in_vain = not (market.quotes or spot_may_come(context, job, trial_slack))
        if trial_slack.hopeless or waits_in_vain or not trial_slack.payable:
            return [*spot, *trial_slack.on_demand]
        match choice_by(self.rule, context, trial_slack, market).kind:
            case MachineChoice.ON_DEMAND:
                return [*((offer, f"{trial_slack}; {reason}") for offer, reason in trial_slack.on_demand), *spot]
            case MachineChoice.SPOT:
                return spot
            case _:
                return []

    def _look_within_s(self, context: SlackContext) -> float:
        """While a trial waits for a spot machine: half of the time after which it needs an on-demand one."""
        state = context.state
        if all(offer.spot for offer in state.listings):
            return math.inf
        trial_slack = slack_of(context, most_urgent(context))
        if self.rule == "uniform_progress":  # by its schedule it may need one at any time
            return max(LOOK_S, BEHIND_SHARE * state.spec.deadline_s)
        if trial_slack is None:
            spare_s = state.deadline_at - state.now - UNTIMED_SPARE_SHARE * state.spec.deadline_s
        else:
            spare_s = trial_slack.now.slack_s - trial_slack.switching.line_s
        return math.inf if spare_s <= 0 else max(LOOK_S, spare_s / 2)

    def _look_at_running(self, context: SlackContext, event: e.Event) -> Iterator[d.Decision]:
        """At all running trials when that is due, or when a machine came up to which one may move; else at those with
        little slack, and those just started."""
        state = context.state
        due = WATCH not in state.timers
        if due or (isinstance(event, e.LeaseGranted) and state.idle) or isinstance(event, e.LeaseDenied):
            looked = list(state.segments.values())
        else:
            looked = _concerned(state, event)
        claimed = _claimed_by_stopping(state) if looked else set()
        for segment in looked:
            yield from self._look_at(context, segment, claimed)
        if due and state.segments:
            unwatched_s = MOST_UNWATCHED_S
            if not any(segment.pace.steps for segment in state.segments.values()):
                unwatched_s = min(unwatched_s, max(LOOK_S, UNTIMED_UNWATCHED_SHARE * state.spec.deadline_s))
            yield d.WakeAt(
                name=WATCH,
                at=state.now + unwatched_s,
                about=next(iter(state.segments.values())).leases[0],
                why="look again: a move may pay by then, or slack be short",
            )

    def _look_at(self, context: SlackContext, segment: Segment, claimed: set[LeaseId]) -> Iterator[d.Decision]:
        """One running trial: does it stay, save, or move? And must it be looked at again before the next look at all?
        A machine that it will move to is added to those claimed."""
        state = context.state
        job, lease = state.jobs[segment.job], state.leases[segment.leases[0]]
        if segment.halting or not _may_move(state, segment, lease):
            yield from leave_too_slow(context, lease)
            return
        work_s = work_at_most_s(context, job)
        if work_s is None:
            return
        stays = lease.offer.spot and (segment.running_since is None or no_move_pays(context, job, lease.offer, work_s))
        if stays and has_plenty(context, work_s, 3 * MOST_UNWATCHED_S):
            return
        yield from leave_too_slow(context, lease)
        trial_slack = slack_of(context, job)
        if segment.halting:
            return
        if trial_slack is None or not trial_slack.on_demand or trial_slack.hopeless or not trial_slack.payable:
            return
        spare_s = trial_slack.now.slack_s - trial_slack.switching.line_s - LOOK_S
        goal = lease.offer
        if stays or (lease.offer.spot and not may_start_on_spot(trial_slack.now.slack_s, trial_slack.switching)):
            # It could not move, whatever the market: only the guarantee decides.
            kind = guarded(
                SlackChoice(MachineChoice.SPOT, trial_slack.now.zone), trial_slack.now, trial_slack.switching
            ).kind
        else:
            market = spot_market(context, job, trial_slack)
            trial_slack = replace(trial_slack, now=trial_slack.now.at(market.place(lease.offer)))
            choice = choice_by(self.rule, context, trial_slack, market)
            kind = choice.kind
            if kind is MachineChoice.SPOT and choice.zone >= 0:
                goal = market.offers[choice.zone]
        if kind is MachineChoice.SAVE:
            yield d.SaveCheckpoint(segment=segment.id, why="saved: little slack is left, and saved work cannot be lost")
        elif kind is MachineChoice.ON_DEMAND and lease.offer.spot:
            why = f"{trial_slack}: a preemption could miss the deadline"
            yield from _move(context, segment, [offer for offer, _ in trial_slack.on_demand], why, claimed)
        elif goal != lease.offer and not state.waiting and (step_ends_soon(state, segment) or _just_up(state, goal)):
            why = f"{goal} is worth the move: ${state.usd_per_hour(goal):.4f}/h"
            yield from _move(context, segment, [goal], why, claimed)
        # An on-demand machine is not preempted. On spot, slack cannot fall faster than time passes, but the pace by
        # which it is estimated may turn out slower: look again at half of the way.
        if lease.offer.spot and spare_s / 2 < MOST_UNWATCHED_S and f"{WATCH_ONE}{lease.id}" not in state.timers:
            yield d.WakeAt(
                name=f"{WATCH_ONE}{lease.id}",
                at=state.now + max(LOOK_S, spare_s / 2),
                about=lease.id,
                why="look again: slack could run out",
            )


@dataclass(frozen=True)
class Greedy(Slack):
    """Spot while any is available; on-demand at the last moment, and then to the end."""

    rule: Rule = "greedy"


@dataclass(frozen=True)
class UniformProgress(Slack):
    """On-demand whenever the study is behind schedule; two set-ups ahead of it, back to spot."""

    rule: Rule = "uniform_progress"


def _can_choose(context: SlackContext) -> bool:
    """Are there machines of both kinds, or faster ones for trials that queue? Only then is there anything to choose."""
    state = context.state
    kinds, types = state.memo(
        "slack kinds and types",
        lambda: (len({offer.spot for offer in state.listings}), len({offer.machine for offer in state.listings})),
    )
    return kinds > 1 or (types > 1 and bool(context.queued))


def _concerned(state: RunView, event: e.Event) -> list[Segment]:
    """Segments that this event, or what was decided in this turn, is about."""
    found: list[Segment] = []
    if isinstance(event, e.TimerFired) and event.name.startswith(WATCH_ONE):
        found += state.segments_on(LeaseId(event.name.removeprefix(WATCH_ONE)))
    for decision in state.decided:
        if isinstance(decision, d.StartSegment) and decision.segment in state.segments:
            found.append(state.segments[decision.segment])
    return found


def _claimed_by_stopping(state: RunView) -> set[LeaseId]:
    """Idle machines on which the trials that are stopping now will resume."""
    return set(islice(state.idle, _stopping(state)))


def _stopping(state: RunView) -> int:
    """How many trials are stopping in order to run elsewhere."""
    return sum(segment.halting and state.jobs[segment.job].wanted for segment in state.segments.values())


def _move(
    context: SlackContext, segment: Segment, offers: list[Offer], why: str, claimed: set[LeaseId]
) -> Iterator[d.Decision]:
    """Rent a machine to move to first, and halt the trial once that is idle. Where no more machines are allowed, its
    own must be released before another can be rented: only the guarantee is worth that."""
    state = context.state
    slots, moved = segment.slots, "moved to spot" if offers[0].spot else "moved to on-demand"
    open_to_it = [
        lease
        for lease_id in (*state.idle, *state.pending)
        if (lease := state.leases[lease_id]).offer in offers and lease.slots >= slots and lease_id not in claimed
    ]
    if open_to_it:
        claimed.add(open_to_it[0].id)
        if open_to_it[0].usable and has_time(state, open_to_it[0]):
            # The guarantee counts the current step as undone. A move that is only cheaper must not lose it.
            grace_s = moving_grace_s(state, segment) if offers[0].spot else state.spec.slice_s
            yield d.HaltSegment(segment=segment.id, grace_s=grace_s, why=f"{moved}: {why}")
    elif state.in_hand < state.spec.max_machines:
        for offer in offers:
            refusals, requested = state.refusals, state.next_lease()
            if state.listings[offer].slots >= slots:
                yield request(state, offer, why)
                if state.refusals == refusals:
                    claimed.add(requested)
                    return
    elif not offers[0].spot and not state.pending and (not state.waiting or _leaves(context, segment)):
        yield d.HaltSegment(
            segment=segment.id, grace_s=state.spec.slice_s, why=f"makes room for an on-demand machine: {why}"
        )


def _just_up(state: RunView, offer: Offer) -> bool:
    """A machine that was requested for a move near the end of a step."""
    return any(
        lease.offer == offer and lease.granted_at == state.now for lease in map(state.leases.__getitem__, state.idle)
    )


def _leaves(context: SlackContext, segment: Segment) -> bool:
    state = context.state
    return leaves_for_queue(context, state.jobs[segment.job], state.leases[segment.leases[0]])


def _release_surplus(context: SlackContext) -> Iterator[d.Decision]:
    """With more idle machines than waiting trials, release the surplus before any trial starts, or one that moved could
    end up where it came from. Near the line spot machines go first, one of them also to make room for an on-demand
    machine where no more may be rented; else on-demand ones, then the most expensive."""
    state = context.state
    surplus = len(state.idle) - len(state.waiting) - _stopping(state)
    full = state.in_hand >= state.spec.max_machines
    if not state.waiting or not state.idle or not (surplus > 0 or full):
        return
    job = state.jobs[next(iter(state.waiting))]
    if job.offer is not None:
        return  # which machines are surplus for it depends on more than their number
    work_s = work_at_most_s(context, job)
    if work_s is None or (surplus <= 0 and has_plenty(context, work_s, 4 * SETUP_S)):
        return
    job = most_urgent(context) if context.queued else job
    trial_slack = slack_of(context, job)
    gangs = surplus > 0 and any(state.jobs[waits].slots > state.largest_slots for waits in state.waiting)
    if trial_slack is None or gangs:
        return
    # A trial that has just saved in order to move has gained slack by that, a step or more: it moves all the same.
    urgent = (
        trial_slack.now.slack_s
        < trial_slack.switching.line_s + trial_slack.switching.setup_s + trial_slack.switching.save_s
    )
    idle = [lease for lease in map(state.leases.__getitem__, state.idle) if lease.slots >= job.slots]
    spot = [lease for lease in idle if lease.offer.spot]
    on_demand = [lease for lease in idle if not lease.offer.spot]
    surplus -= len(state.idle) - len(idle)
    no_spot = not may_start_on_spot(trial_slack.now.slack_s, trial_slack.switching)
    to_be_had = trial_slack.on_demand and trial_slack.payable and not trial_slack.hopeless
    if no_spot and spot and not on_demand and full and to_be_had:
        stays = trial_slack.behind.starts and notice_suffices(state.listings[spot[0].offer], trial_slack)
        surplus = max(surplus, 0) if stays else 1
    expensive_first = sorted(spot, key=lambda lease: (-_usd(state, lease), lease.id))
    for lease in [*expensive_first, *on_demand] if urgent else [*on_demand, *expensive_first]:
        if surplus <= 0:
            return
        surplus -= 1
        why = "released: more idle machines than waiting trials"
        yield d.ReleaseLease(
            lease=lease.id,
            why=why if not urgent else "released: slack is short, and it makes room or is surplus",
        )


def _may_move(state: RunView, segment: Segment, lease: Lease) -> bool:
    """Gangs and trials that share a machine stay where they are; those on notice are leaving already."""
    alone = len(segment.leases) == 1 and len(lease.segments) == 1
    return alone and lease.usable and state.jobs[segment.job].wanted and segment.id not in state.draining


def _usd(state: RunView, lease: Lease) -> float:
    return per_slot(state.usd_per_hour(lease.offer), state.listings[lease.offer])
