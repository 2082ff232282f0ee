"""How each event changes the state.

Law: an event may come late, in any order, or about something already closed, because after a restart events overtake
each other. If LeaseEnded arrives before SegmentEnded, it also closes the segment.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from shoestring.errors import SpecError
from shoestring.kernel import events as e
from shoestring.kernel.fold.setbacks import count_given_back, forget_setbacks, note_setback, note_start
from shoestring.kernel.fold.transitions import (
    close_segment,
    forget_checkpoint,
    maybe_best,
    recount_best,
    remove_lease,
    update_indexes,
)
from shoestring.kernel.records import Account, Latency, Save, Snapshot
from shoestring.kernel.spec import amended
from shoestring.kernel.state import RunState
from shoestring.kernel.types import ON_DEMAND_LEAST_S


def _run_started(state: RunState, event: e.RunStarted) -> None:
    state.spec = event.spec
    state.seed = event.seed
    state.started_at = event.at
    state.listings = {listing.offer: listing for listing in event.spec.listings}
    state.largest_slots = max((listing.slots for listing in event.spec.listings), default=1)


def _lease_granted(state: RunState, event: e.LeaseGranted) -> None:
    lease = state.leases.get(event.lease)
    if lease is None:
        return
    if lease.granted_at is None:
        state.timings["provision"].add(max(0.0, event.at - lease.requested_at))
    state.last_lease_at = event.at
    setback = state.setbacks.get(lease.offer)
    if setback is not None and setback.why != "preempted":
        del state.setbacks[lease.offer]
    lease.granted_at = event.at
    lease.billed_from = event.at if event.billed_from is None else min(event.at, event.billed_from)
    lease.time.starting_s += event.at - lease.billed_from
    lease.idle_since = event.at
    update_indexes(state, lease)


def _lease_denied(state: RunState, event: e.LeaseDenied) -> None:
    lease = state.leases.get(event.lease)
    if lease is not None:
        remove_lease(state, lease)
        state.denials += 1
        state.denied_at[lease.offer] = event.at
        state.last_lease_at = event.at
        note_setback(state, lease, event.reason, event.at)


def _revocation_noticed(state: RunState, event: e.RevocationNoticed) -> None:
    lease = state.leases.get(event.lease)
    if lease is not None:
        lease.gone_at = event.gone_at
        update_indexes(state, lease)


def _lease_ended(state: RunState, event: e.LeaseEnded) -> None:
    lease = state.leases.get(event.lease)
    if lease is None:
        return
    for segment_id in list(lease.segments):
        segment = state.segments[segment_id]
        close_segment(state, segment, "lost", 0, event.at, "", revoked=event.cause in ("revoked", "lost"))
    remove_lease(state, lease)
    state.last_lease_at = event.at
    account = state.accounts.setdefault(lease.offer, Account())
    seconds = max(0.0, event.at - (event.at if lease.billed_from is None else lease.billed_from))
    account.leases += 1
    account.seconds += seconds
    account.time.add(lease.time)
    account.charged_usd += event.charged_usd
    account.refunded_usd += event.refunded_usd
    if lease.granted_at is not None:
        account.lifetimes_s.append(seconds)
        least = max(seconds, ON_DEMAND_LEAST_S)
        account.on_demand_usd += least / 3600 * state.listings[lease.offer].on_demand_usd_per_hour
    state.spent_usd += event.charged_usd
    if event.cause in ("revoked", "lost"):
        account.revoked += 1
        state.revocations += 1
        limit_s = state.listings[lease.offer].max_life_s
        account.at_limit += limit_s is not None and seconds >= limit_s - 1.0
        if lease.gang is not None:
            for other in state.leases.values():
                if other.gang == lease.gang:
                    other.lost.append(lease.id)
    if lease.granted_at is not None and not lease.ran:
        account.unused += 1
        if event.cause in ("revoked", "lost"):
            note_setback(state, lease, "preempted", event.at)
        elif state.waiting and state.phase == "running":
            count_given_back(state, lease, event.at)


def _segment_started(state: RunState, event: e.SegmentStarted) -> None:
    segment = state.segments.get(event.segment)
    if segment is not None:
        if segment.running_since is None:
            kind: Latency = "restore" if segment.first_step else "start"
            state.timings[kind].add(max(0.0, event.at - segment.started_at))
        segment.running_since = segment.trains_from = event.at
        note_start(state, segment)


def _job_reported(state: RunState, event: e.JobReported) -> None:
    segment = state.segments.get(event.segment)
    if segment is None:
        return
    job = state.jobs[event.job]
    job.latest = event.metrics
    step = event.step
    if step > segment.step:
        segment.step = step
        segment.step_at = event.at
    if step > job.step:
        job.step = step
    spec = state.spec
    value = None if spec is None else event.metrics.get(spec.metric or "")
    if spec is None or value is None:
        return
    steps = job.steps
    if steps and steps[-1] >= step:  # reported again after a restart from an earlier checkpoint, or out of order
        keep = bisect_right(steps, step - 1)
        if keep < len(steps) and steps[keep] == step:
            job.values[keep] = value
            recount_best(state, job)
            maybe_best(state, job)
            return
        steps.insert(keep, step)
        job.values.insert(keep, value)
    else:
        steps.append(step)
        job.values.append(value)
    best, minimize = job.best, spec.direction == "minimize"
    if (value < best if minimize else value > best) or (best != best and value == value):
        job.best = value  # the same as spec.better(), inlined because every report passes here
        if state.best is None:
            maybe_best(state, job)
        elif state.best != job.id:
            ahead = state.jobs[state.best].best
            if not (ahead <= value if minimize else ahead >= value):
                maybe_best(state, job)


def _snapshot_reported(state: RunState, event: e.SnapshotReported) -> None:
    """An observation at a smaller data fraction. The first report counts: a restored trial that passes it again adds
    nothing. The trial's curve, latest report and pace do not change."""
    segment = state.segments.get(event.segment)
    if segment is None:
        return
    job = state.jobs[event.job]
    if event.fraction in job.snapshots or not 0 < event.fraction < job.fraction:
        return
    before_s = segment.first_step * (job.seconds_per_step or 0.0)
    here_s = max(segment.trained_s, event.at - segment.trains_from)
    job.snapshots[event.fraction] = Snapshot(event.step, event.metrics, before_s + here_s)


def _checkpoint_saved(state: RunState, event: e.CheckpointSaved) -> None:
    job = state.jobs[event.job]
    if event.ref in job.checkpoints:
        return
    job.checkpoints.append(event.ref)
    job.checkpoints.sort(key=lambda ref: ref.step)
    job.last_save = Save(event.ref.size_bytes, event.took_s)
    state.timings["save"].add(event.took_s)
    job.step = max(job.step, event.step)
    segment = state.segments.get(event.segment)
    if segment is not None:
        segment.saved_at = max(event.at, segment.saved_at or event.at)
        segment.saving_s += event.took_s
        segment.trained_s = segment.pace.seconds
        segment.trains_from = event.at - segment.trained_s


def _checkpoint_lost(state: RunState, event: e.CheckpointLost) -> None:
    job = state.jobs[event.job]
    forget_checkpoint(job, event.ref)
    job.detail = event.detail


def _segment_ended(state: RunState, event: e.SegmentEnded) -> None:
    segment = state.segments.get(event.segment)
    if segment is None:
        return
    noticed = any(
        (lease := state.leases.get(lease_id)) is not None and lease.gone_at is not None for lease_id in segment.leases
    )
    revoked = noticed and event.cause in ("halted", "lost")
    close_segment(state, segment, event.cause, event.step, event.at, event.detail, revoked=revoked)


def _timer_fired(state: RunState, event: e.TimerFired) -> None:
    if state.timers.get(event.name, math.inf) <= event.at:
        del state.timers[event.name]
        state.timer_whys.pop(event.name, None)


def _thought_ready(state: RunState, event: e.ThoughtReady) -> None:
    state.background_tasks.pop(event.name, None)


def _user_asked(state: RunState, event: e.UserAsked) -> None:
    if event.wish in ("amend", "resume"):
        forget_setbacks(state)
    if event.wish == "amend":
        with suppress(SpecError):  # an impossible request changes nothing
            state.spec = amended(state.the_spec, budget_usd=event.budget_usd, deadline_s=event.deadline_s)
        if state.concluded and state.unfinished:
            state.phase, state.ending, state.end_reason = "running", "", None
        return
    if state.concluded:
        return
    if event.wish == "pause" and state.phase == "running":
        state.phase, state.ending = "pausing", "paused by the user"
    elif event.wish == "resume" and state.phase in ("pausing", "parking"):
        state.phase, state.ending, state.end_reason = "running", "", None
    elif event.wish == "stop":
        state.phase, state.ending, state.end_reason = "winding_down", "stopped by the user", "cancelled"


def _policy_broke(state: RunState, event: e.PolicyBroke) -> None:
    if state.phase in ("running", "pausing"):
        state.phase, state.ending = "parking", event.detail


EVENT_FOLDS: dict[type, Callable[[RunState, Any], None]] = {
    e.RunStarted: _run_started,
    e.LeaseGranted: _lease_granted,
    e.LeaseDenied: _lease_denied,
    e.RevocationNoticed: _revocation_noticed,
    e.LeaseEnded: _lease_ended,
    e.SegmentStarted: _segment_started,
    e.JobReported: _job_reported,
    e.SnapshotReported: _snapshot_reported,
    e.CheckpointSaved: _checkpoint_saved,
    e.CheckpointLost: _checkpoint_lost,
    e.SegmentEnded: _segment_ended,
    e.TimerFired: _timer_fired,
    e.ThoughtReady: _thought_ready,
    e.UserAsked: _user_asked,
    e.PolicyBroke: _policy_broke,
}
