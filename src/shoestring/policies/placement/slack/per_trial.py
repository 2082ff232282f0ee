"""One trial's work left, its slack, and what changing machines takes, from the state of a run.

Each trial has its own slack. Pacing the study as a whole costs up to 80 % more: fast trials would pay for slow ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from shoestring.kernel.records import Job, Segment
from shoestring.kernel.types import JobId, Offer
from shoestring.kernel.view import RunView
from shoestring.models.speed.latencies import slowest_latencies
from shoestring.models.speed.progress import step_size, steps_left
from shoestring.policies.placement.renting.facts import per_slot
from shoestring.policies.placement.renting.rent import Ranked
from shoestring.policies.placement.slack.guarantee import MachineChoice, Situation, Switching
from shoestring.policies.placement.slack.on_demand_fallback import on_demand_fallback
from shoestring.policies.placement.slack.queue import NONE_BEHIND, Behind, queued_behind, rounds_at_most
from shoestring.policies.placement.slack.speed import SlackSpeeds

SETUP_S, RESTORE_S, SAVE_S = 240.0, 72.0, 15.0
"""Assumed for a set-up, its part from StartSegment on, and a save, until slower ones are observed."""
LOOK_S = 60.0
UNTIMED = Switching(setup_s=SETUP_S, restore_s=RESTORE_S, save_s=SAVE_S, look_s=LOOK_S)
"""Until anything was observed."""
HOPELESS_SHARE = 0.95
"""With less time than this share of a trial's own work, no machine can meet its deadline, and none is paid extra for.
It is not 1, for the pace by which work is estimated is conservative."""
ROOMY = 1.25
"""Where not all queued trials can be done in time, only those count that have this multiple of the time they need."""


PLENTY = 1.25
"""This multiple of the work, at the slowest pace known, is more than it can take."""


class SlackContext:
    """What is the same for all trials in one turn, each computed on first use."""

    def __init__(self, state: RunView) -> None:
        self.state = state
        self.speeds = SlackSpeeds(state)

    @cached_property
    def queued(self) -> dict[JobId, Behind]:
        return queued_behind(self.state)

    @cached_property
    def switching(self) -> Switching:
        """The slowest of each that the run has measured, or what is assumed until then."""
        slowest = slowest_latencies(self.state)
        start_s = max(slowest.start_s, slowest.restore_s)
        return Switching(
            setup_s=max(SETUP_S, slowest.provision_s + start_s),
            restore_s=max(RESTORE_S, start_s),
            save_s=max(SAVE_S, slowest.save_s),
            look_s=LOOK_S,
        )

    @cached_property
    def held_s(self) -> dict[Offer, float]:
        """How long the machines held now have been up, by offer."""
        held: dict[Offer, float] = {}
        for lease in self.state.leases.values():
            if lease.granted_at is not None:
                held[lease.offer] = held.get(lease.offer, 0.0) + self.state.now - lease.granted_at
        return held

    @cached_property
    def usd_per_step(self) -> dict[Offer, float]:
        """Of a slot of each spot machine now, for a typical trial: only ratios of it are used."""
        state, slots = self.state, self.state.spec.slots
        return {
            offer: per_slot(state.usd_per_hour(offer), listing) * self.speeds.of_any_trial((offer.machine, slots))
            for offer, listing in state.listings.items()
            if offer.spot
        }

    @property
    def time_left_s(self) -> float:
        return self.state.deadline_at - self.state.spec.wind_down_s - self.state.now


@dataclass(frozen=True)
class TrialSlack:
    """One trial's work and slack, in seconds of its on-demand fallback."""

    seconds_per_step: float
    switching: Switching
    now: Situation
    on_demand: Ranked
    """On-demand offers, the one that work is measured by first. Empty where none is on offer."""
    on_demand_usd_per_hour: float
    """An hour of work there."""
    hopeless: bool
    """Not even an on-demand machine could finish it in time."""


def work_at_most_s(context: SlackContext, job: Job) -> float | None:
    """An upper bound on the work left, its queue included, at the slowest pace known: before a machine is chosen."""
    known = context.speeds.known(job)
    if not known:
        return None
    rounds = rounds_at_most(context.state)
    # A save waits for the end of a step, before and after a move.
    steps = steps_left(context.state, job, job.saved_step) + rounds * context.state.spec.max_steps
    steps += 2 * step_size(context.state)
    return steps * max(known.values()) + rounds * SETUP_S


def has_plenty(context: SlackContext, work_s: float, beside_s: float) -> bool:
    """Is there time for more than this work, and for `beside_s`? Answered without choosing a machine."""
    return context.time_left_s > PLENTY * work_s + beside_s


def slack_of(context: SlackContext, job: Job) -> TrialSlack | None:
    """None until a step of this study has been timed: before that the amount of work is unknown."""
    state = context.state
    known = context.speeds.known(job)
    if not known:
        return None
    segment = None if job.segment is None else state.segments[job.segment]
    step = job.saved_step if segment is None else max(segment.step, job.saved_step)
    steps, time_left_s = steps_left(state, job, step), context.time_left_s
    undone, behind = steps_left(state, job, job.saved_step), context.queued.get(job.id, NONE_BEHIND)
    switching = context.switching
    starts_s = behind.starts * switching.restore_s  # the machine is up: what each of them takes to start
    room_s = time_left_s - switching.setup_s - switching.save_s
    fallback = on_demand_fallback(
        context.speeds, state, job, known, ((undone + behind.steps, room_s - starts_s), (undone, room_s))
    )
    step_s = fallback.seconds_per_step
    queue_s = behind.steps * step_s + starts_s
    if undone * step_s + queue_s > time_left_s:
        trial_s = state.spec.max_steps * step_s + switching.restore_s
        queue_s = min(queue_s, max(0, int((time_left_s - undone * step_s) / (ROOMY * trial_s))) * trial_s)
    return TrialSlack(
        step_s,
        replace(switching, save_s=switching.save_s + _to_stop_s(state, step_s)),
        Situation(
            time_left_s=time_left_s,
            work_left_s=steps * step_s + queue_s,
            unsaved_s=max(0, undone - steps) * step_s,
            here=_held(state, segment),
            starting=segment is not None and segment.running_since is None,
        ),
        on_demand=fallback.offers,
        on_demand_usd_per_hour=fallback.usd_per_hour,
        hopeless=time_left_s < HOPELESS_SHARE * steps * step_s,
    )


def _to_stop_s(state: RunView, step_s: float) -> float:
    """A segment saves and stops between two steps, so a save waits for one. Where none is reported, code that does not
    stop is killed once the grace of a halt is over."""
    return step_size(state) * step_s or state.spec.slice_s


def _held(state: RunView, segment: Segment | None) -> MachineChoice:
    if segment is None:
        return MachineChoice.WAIT
    return (
        MachineChoice.SPOT
        if any(state.leases[lease].offer.spot for lease in segment.leases)
        else MachineChoice.ON_DEMAND
    )
