"""One trial's work left, its slack, and what changing machines takes, from the state of a run.

Each trial has its own slack. Pacing the study as a whole costs up to 80 % more: fast trials would pay for slow ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from shoestring.kernel.records import Job, Segment, Where
from shoestring.kernel.types import JobId, Offer
from shoestring.kernel.view import RunView
from shoestring.models.speed.latencies import learned_latencies, slowest_latencies
from shoestring.models.speed.progress import step_size, steps_left
from shoestring.policies.placement.renting.facts import free_usd, per_slot
from shoestring.policies.placement.renting.rent import Ranked
from shoestring.policies.placement.slack.guarantee import MachineChoice, Situation, Switching
from shoestring.policies.placement.slack.on_demand_fallback import Need, on_demand_fallback
from shoestring.policies.placement.slack.queue import NONE_BEHIND, Behind, queued_behind, rounds_at_most, to_do
from shoestring.policies.placement.slack.speed import SlackSpeeds
from shoestring.units import show_duration

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
        self.slacks: dict[JobId, TrialSlack | None] = {}

    @cached_property
    def queued(self) -> dict[JobId, Behind]:
        paces = {
            where: self.speeds.of_any_trial(where)
            for where in {(segment.machine, segment.slots) for segment in self.state.segments.values()}
        }
        fastest_s = min(paces.values(), default=1.0)
        return queued_behind(self.state, lambda segment: paces[segment.machine, segment.slots] / fastest_s)

    @cached_property
    def queued_steps(self) -> float:
        """Of all trials that run or queue; 0 where none queue."""
        return sum(to_do(self.state, self.state.jobs[job]) + behind.steps for job, behind in self.queued.items())

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
    def measured(self) -> Switching:
        """The slowest of each that the run has measured, and nothing on top: where trials queue, a wait of four minutes
        assumed for each would rule out deadlines that can be met."""
        slowest, usual = slowest_latencies(self.state), learned_latencies(self.state)
        start_s = max(slowest.start_s, slowest.restore_s) or usual.restore_s
        return Switching(
            setup_s=(slowest.provision_s or usual.provision_s) + start_s,
            restore_s=start_s,
            save_s=slowest.save_s or usual.save_s,
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
    known: Mapping[Where, float]
    """Seconds per step by where it was timed, as the on-demand fallback counts them."""
    switching: Switching
    now: Situation
    on_demand: Ranked
    """On-demand offers, the one that work is measured by first. Empty where none is on offer."""
    on_demand_usd_per_hour: float
    """An hour of work there."""
    to_deadline_s: float
    hopeless: bool
    """Not even an on-demand machine could finish it in time."""
    behind: Behind = NONE_BEHIND
    """What queues behind it."""
    whole_queue: bool = True
    """All of that can be in time."""
    own_s: float = 0.0
    """Of the work left, what is its own."""
    payable: bool = True
    """The budget pays on-demand machines for all that queues; without a queue it is not looked at."""

    def __str__(self) -> str:
        work, left = show_duration(self.now.work_left_s), show_duration(self.to_deadline_s)
        return f"{work} of work left, {left} to the deadline, {show_duration(max(0.0, self.now.slack_s))} of slack"


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
    if job.id not in context.slacks:
        context.slacks[job.id] = _slack_of(context, job)
    return context.slacks[job.id]


def _slack_of(context: SlackContext, job: Job) -> TrialSlack | None:
    state = context.state
    known = context.speeds.known(job)
    if not known:
        return None
    segment = None if job.segment is None else state.segments[job.segment]
    step = job.saved_step if segment is None else max(segment.step, job.saved_step)
    steps, time_left_s = steps_left(state, job, step), context.time_left_s
    undone, behind = steps_left(state, job, job.saved_step), context.queued.get(job.id, NONE_BEHIND)
    needs = list(_needs(context, job, known, steps, undone, behind))
    fallback = on_demand_fallback(context.speeds, state, job, needs, context.queued_steps)
    step_s, switching = fallback.seconds_per_step, context.switching
    if fallback.meets is not None:
        switching, known = fallback.meets.switching, fallback.meets.known
    queue_s = behind.steps * step_s + behind.starts * switching.restore_s
    whole_queue = fallback.meets is not None and fallback.meets.whole
    if not whole_queue:
        trial_s = state.spec.max_steps * step_s + switching.restore_s
        queue_s = min(queue_s, max(0, int((time_left_s - undone * step_s) / (ROOMY * trial_s))) * trial_s)
    on_demand_usd = len(context.queued) * (steps * step_s + queue_s) / 3600 * fallback.usd_per_hour
    return TrialSlack(
        step_s,
        known,
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
        to_deadline_s=state.deadline_at - state.now,
        hopeless=time_left_s < HOPELESS_SHARE * steps * step_s,
        behind=behind,
        whole_queue=whole_queue,
        own_s=steps * step_s,
        payable=not behind.starts or on_demand_usd <= free_usd(state),
    )


def _to_stop_s(state: RunView, step_s: float) -> float:
    """A segment saves and stops between two steps, so a save waits for one. Where none is reported, code that does not
    stop is killed once the grace of a halt is over."""
    return step_size(state) * step_s or state.spec.slice_s


def _needs(
    context: SlackContext, job: Job, known: Mapping[Where, float], steps: float, undone: float, behind: Behind
) -> Iterator[Need]:
    """What the on-demand fallback should do in time. Most of all, the trial and all that queues behind it: at assumed
    latencies, else at measured ones; on machines timed before, else on others that are expected to be faster. Where
    that is too much, the trial alone."""
    assumed, measured = context.switching, context.measured
    room_s = context.time_left_s - assumed.setup_s - assumed.save_s
    one = step_size(context.state)  # a save waits for the end of a step
    safely = Need(undone + behind.steps + one, room_s - behind.starts * assumed.restore_s, assumed, known)
    least_room_s = context.time_left_s - behind.starts * measured.restore_s
    least_room_s -= measured.setup_s if job.segment is None else 0.0
    just = Need(steps + behind.steps, least_room_s, assumed, known)
    if context.queued:
        just = just._replace(switching=measured, known=context.speeds.usual(job))
    yield from (safely, just, safely._replace(as_expected=True), just._replace(as_expected=True))
    if behind.starts:
        yield Need(undone + one, room_s, assumed, known, whole=False)


def _held(state: RunView, segment: Segment | None) -> MachineChoice:
    if segment is None:
        return MachineChoice.WAIT
    return (
        MachineChoice.SPOT
        if any(state.leases[lease].offer.spot for lease in segment.leases)
        else MachineChoice.ON_DEMAND
    )
