"""What a run's record says of one trial: how much work it has left, how much slack, and what changing machines takes.

Each trial has its own net. Pacing the study as a whole costs up to 80 % more: fast trials would pay for slow ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice

from shoestring.kernel.records import Job, Pace, Segment
from shoestring.kernel.view import RunView
from shoestring.placement.slack_guarantee import Kind, Situation, Switching

SETUP_S = 240.0
"""Taken for a set-up until a slower one is seen."""
RESTORE_SHARE = 0.3
SAVE_S = 15.0
LOOK_S = 60.0
UNTIMED = Switching(setup_s=SETUP_S, restore_s=RESTORE_SHARE * SETUP_S, save_s=SAVE_S, look_s=LOOK_S)
"""Until anything was seen."""
OTHERS_ASKED = 20
"""How many other trials are asked for their pace by one that has none."""


@dataclass(frozen=True)
class Net:
    """One trial's work, in seconds of the machine it would go on with."""

    seconds_per_step: float
    switching: Switching
    now: Situation


def net_of(state: RunView, job: Job) -> Net | None:
    """None until a step of this study has been timed: before that nobody knows how much work there is."""
    seconds_per_step = _seconds_per_step(state, job)
    if seconds_per_step is None:
        return None
    segment = None if job.segment is None else state.segments[job.segment]
    step = job.saved_step if segment is None else max(segment.step, job.saved_step)
    # Trials that wait for a place do their work on the same machines, after this one.
    queue_s = _queued(state) * state.spec.max_steps * seconds_per_step
    return Net(
        seconds_per_step,
        _switching(state, seconds_per_step),
        Situation(
            time_left_s=state.deadline_at - state.spec.wind_down_s - state.now,
            work_left_s=max(0, job.until_step - step) * seconds_per_step + queue_s,
            unsaved_s=max(0, step - job.saved_step) * seconds_per_step,
            here=_held(state, segment),
            starting=segment is not None and segment.running_since is None,
        ),
    )


def machines_known(state: RunView, job: Job) -> set[str]:
    """Machine types on which this trial, or one that runs beside it, was timed."""
    timed = {machine for machine, _ in job.paces}
    return timed | {segment.machine for segment in state.segments.values() if segment.pace.steps}


def _seconds_per_step(state: RunView, job: Job) -> float | None:
    """Its slowest pace so far, for a machine must not be counted on to be as fast as the best; else that of others."""
    own = [pace.seconds / pace.steps for pace in _paces(state, job)]
    if own:
        return max(own)
    running = (segment.job for segment in state.segments.values())
    rested = (rest.job for rest in islice(reversed(state.rests), OTHERS_ASKED))
    asked = dict.fromkeys(chain(running, islice(state.waiting, OTHERS_ASKED), rested))
    others = [pace for other in asked for pace in _paces(state, state.jobs[other])]
    steps = sum(pace.steps for pace in others)
    return sum(pace.seconds for pace in others) / steps if steps else None


def _paces(state: RunView, job: Job) -> Iterable[Pace]:
    paces = [pace for (_, slots), pace in job.paces.items() if slots == job.slots]
    if job.segment is not None:
        paces.append(state.segments[job.segment].pace)
    return [pace for pace in paces if pace.steps and pace.seconds > 0]


def _queued(state: RunView) -> float:
    """Trials that must wait for others, for each place there is."""
    places = max(1, state.spec.max_machines * state.largest_slots // state.spec.slots)
    return max(0, state.count("waiting") + state.count("running") - places) / places


def _switching(state: RunView, seconds_per_step: float) -> Switching:
    """The slowest set-up of what is held now. A segment saves and stops between two steps, so a save waits for one."""
    granted = (lease.granted_at - lease.requested_at for lease in state.leases.values() if lease.granted_at is not None)
    begun = (x.running_since - x.started_at for x in state.segments.values() if x.running_since is not None)
    setup_s = max(SETUP_S, max(granted, default=0.0) + max(begun, default=0.0))
    return Switching(
        setup_s=setup_s, restore_s=RESTORE_SHARE * setup_s, save_s=SAVE_S + seconds_per_step, look_s=LOOK_S
    )


def _held(state: RunView, segment: Segment | None) -> Kind:
    if segment is None:
        return Kind.WAIT
    return Kind.SPOT if any(state.leases[lease].offer.spot for lease in segment.leases) else Kind.ON_DEMAND
