"""evolve(): the one fold over events and decisions.

Laws: it never decides, never asks a clock or a price; it raises `IllegalDecision` on decisions that make no sense; it
accepts events late, twice removed from their order, or about things already closed, because after a restart events
overtake each other. A bill that arrives before the news that a segment died closes the segment itself.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from shoestring.errors import IllegalDecision
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Account, Job, JobStatus, Lease, Segment
from shoestring.kernel.spec import amended
from shoestring.kernel.state import RunState
from shoestring.kernel.types import CheckpointRef, JobId, LeaseId, SegmentCause


def evolve(state: RunState, fact: e.Event | d.Decision) -> None:
    """Fold one event or one decision into the state."""
    fold = FOLDS.get(type(fact))
    if fold is not None:
        fold(state, fact)


# -- small shared moves ------------------------------------------------------------------------------------------------
def _set_status(state: RunState, job: Job, status: JobStatus) -> None:
    if job.status == status:
        return
    state.by_status[job.status] -= 1
    state.by_status[status] += 1
    if job.status == "waiting":
        del state.waiting[job.id]
    elif status == "waiting":
        state.waiting[job.id] = None
    job.status = status


def _update_room(state: RunState, lease: Lease) -> None:
    if lease.usable and lease.free_slots > 0:
        state.roomy.setdefault(lease.id)
    else:
        state.roomy.pop(lease.id, None)


def _void_timers(state: RunState, lease: Lease) -> None:
    for name in lease.timers:
        state.timers.pop(name, None)


def _fall_back(state: RunState, job: Job, segment: Segment, at: float) -> None:
    """Work since the last checkpoint is gone, and so is the part of the curve that told of it."""
    saved = job.saved_step
    if job.step > saved:
        job.lost_steps += job.step - saved
        state.lost_steps += job.step - saved
        state.lost_s += segment.unsaved_s(at)
        job.step = saved
        keep = bisect_right(job.steps, saved)
        del job.steps[keep:], job.values[keep:]
        _recount_best(state, job)


def _recount_best(state: RunState, job: Job) -> None:
    spec = state.the_spec
    job.best = math.nan
    for value in job.values:
        if spec.better(value, job.best):
            job.best = value
    if state.best == job.id:
        state.best = None
        for other in state.jobs.values():
            _maybe_best(state, other)


def _maybe_best(state: RunState, job: Job) -> None:
    if math.isnan(job.best):
        return
    if state.best is None or state.the_spec.better(job.best, state.jobs[state.best].best):
        state.best = job.id


def _close_segment(
    state: RunState, segment: Segment, cause: SegmentCause, step: int, at: float, detail: str, *, revoked: bool
) -> None:
    del state.segments[segment.id]
    state.leaving.pop(segment.id, None)
    for lease_id in segment.leases:
        lease = state.leases.get(lease_id)
        if lease is not None:
            lease.segments.remove(segment.id)
            lease.free_slots = min(lease.slots, lease.free_slots + segment.slots)
            if not lease.segments:
                lease.idle_since = at
            _update_room(state, lease)
    job = state.jobs[segment.job]
    job.segment = None
    if revoked:
        job.revocations += 1
    if cause in ("reached", "completed"):
        job.step = max(job.step, step)
    else:
        _fall_back(state, job, segment, at)
    if detail:
        job.detail = detail
    if cause in ("failed", "overran"):
        job.failures += 1
    if job.over:
        return
    spec = state.the_spec
    if cause == "completed" or (cause == "reached" and step >= spec.max_steps):
        _set_status(state, job, "finished")
    elif job.failures > spec.max_failures:
        _set_status(state, job, "failed")
    elif job.status != "running":  # paused while it ran
        return
    elif cause == "reached" and step >= job.until_step:
        _set_status(state, job, "paused")
    else:
        _set_status(state, job, "waiting")


# -- events ------------------------------------------------------------------------------------------------------------
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
    lease.granted_at = event.at
    lease.idle_since = event.at
    _update_room(state, lease)


def _lease_denied(state: RunState, event: e.LeaseDenied) -> None:
    lease = state.leases.pop(event.lease, None)
    if lease is not None:
        _void_timers(state, lease)
        state.denials += 1
        state.denied_at[lease.offer] = event.at


def _revocation_noticed(state: RunState, event: e.RevocationNoticed) -> None:
    lease = state.leases.get(event.lease)
    if lease is not None:
        lease.gone_at = event.gone_at
        _update_room(state, lease)


def _lease_ended(state: RunState, event: e.LeaseEnded) -> None:
    lease = state.leases.get(event.lease)
    if lease is None:
        return
    for segment_id in list(lease.segments):
        segment = state.segments[segment_id]
        _close_segment(state, segment, "lost", 0, event.at, "", revoked=event.cause != "released")
    del state.leases[lease.id]
    state.roomy.pop(lease.id, None)
    _void_timers(state, lease)
    account = state.accounts.setdefault(lease.offer, Account())
    seconds = max(0.0, event.at - (event.at if lease.granted_at is None else lease.granted_at))
    account.leases += 1
    account.seconds += seconds
    account.charged_usd += event.charged_usd
    account.refunded_usd += event.refunded_usd
    account.on_demand_usd += seconds / 3600 * state.listings[lease.offer].on_demand_usd_per_hour
    state.spent_usd += event.charged_usd
    if event.cause in ("revoked", "lost"):
        account.revoked += 1
        state.revocations += 1


def _segment_started(state: RunState, event: e.SegmentStarted) -> None:
    segment = state.segments.get(event.segment)
    if segment is not None:
        segment.running_since = event.at


def _job_reported(state: RunState, event: e.JobReported) -> None:
    if event.segment not in state.segments:
        return
    job = state.jobs[event.job]
    job.latest = event.metrics
    step = event.step
    if step > job.step:
        job.step = step
    value = event.metrics.get(state.spec.metric)  # type: ignore[union-attr]
    if value is None:
        return
    steps = job.steps
    if steps and steps[-1] >= step:  # told again after a restart from an earlier state, or out of order
        keep = bisect_right(steps, step - 1)
        if keep < len(steps) and steps[keep] == step:
            job.values[keep] = value
            _recount_best(state, job)
            _maybe_best(state, job)
            return
        steps.insert(keep, step)
        job.values.insert(keep, value)
    else:
        steps.append(step)
        job.values.append(value)
    if state.spec.better(value, job.best):  # type: ignore[union-attr]
        job.best = value
        _maybe_best(state, job)


def _checkpoint_saved(state: RunState, event: e.CheckpointSaved) -> None:
    job = state.jobs[event.job]
    if event.ref in job.checkpoints:
        return
    job.checkpoints.append(event.ref)
    job.checkpoints.sort(key=lambda ref: ref.step)
    job.step = max(job.step, event.step)
    segment = state.segments.get(event.segment)
    if segment is not None:
        segment.saved_at = max(event.at, segment.saved_at or event.at)


def _checkpoint_lost(state: RunState, event: e.CheckpointLost) -> None:
    job = state.jobs[event.job]
    _forget_checkpoint(job, event.ref)
    job.detail = event.detail


def _forget_checkpoint(job: Job, ref: CheckpointRef) -> None:
    if ref in job.checkpoints:
        job.checkpoints.remove(ref)


def _segment_ended(state: RunState, event: e.SegmentEnded) -> None:
    segment = state.segments.get(event.segment)
    if segment is None:
        return
    noticed = any(
        (lease := state.leases.get(lease_id)) is not None and lease.gone_at is not None for lease_id in segment.leases
    )
    revoked = noticed and event.cause in ("halted", "lost")
    _close_segment(state, segment, event.cause, event.step, event.at, event.detail, revoked=revoked)


def _timer_fired(state: RunState, event: e.TimerFired) -> None:
    if state.timers.get(event.name, math.inf) <= event.at:
        del state.timers[event.name]


def _thought_ready(state: RunState, event: e.ThoughtReady) -> None:
    state.thinking.pop(event.name, None)


def _user_asked(state: RunState, event: e.UserAsked) -> None:
    if state.phase == "concluded":
        return
    if event.wish == "pause" and state.phase == "running":
        state.phase, state.ending = "pausing", "asked to pause"
    elif event.wish == "resume" and state.phase in ("pausing", "parking"):
        state.phase, state.ending = "running", ""
    elif event.wish == "stop":
        state.phase, state.ending = "winding_down", "asked to stop"
    elif event.wish == "amend":
        state.spec = amended(state.the_spec, budget_usd=event.budget_usd, deadline_s=event.deadline_s)


def _policy_broke(state: RunState, event: e.PolicyBroke) -> None:
    if state.phase in ("running", "pausing"):
        state.phase, state.ending = "parking", event.detail


# -- decisions ---------------------------------------------------------------------------------------------------------
def _known_job(state: RunState, job_id: JobId, order: str) -> Job:
    job = state.jobs.get(job_id)
    if job is None:
        raise IllegalDecision(f"{order} names job {job_id}, which was never added")
    return job


def _add_job(state: RunState, decision: d.AddJob) -> None:
    if decision.job in state.jobs:
        raise IllegalDecision(f"AddJob names job {decision.job}, which is there already")
    state.jobs[decision.job] = Job(
        id=decision.job, number=len(state.jobs), config=decision.config, tags=dict(decision.tags)
    )
    state.by_status["paused"] += 1


def _tag_job(state: RunState, decision: d.TagJob) -> None:
    _known_job(state, decision.job, "TagJob").tags.update(decision.tags)


def _run_job(state: RunState, decision: d.RunJob) -> None:
    job = _known_job(state, decision.job, "RunJob")
    if job.over:
        raise IllegalDecision(f"RunJob names job {job.id}, which is {job.status}")
    if not (0 < decision.until_step <= state.the_spec.max_steps):
        raise IllegalDecision(f"RunJob wants {job.id} until step {decision.until_step} of {state.the_spec.max_steps}")
    if decision.slots < 1:
        raise IllegalDecision(f"RunJob gives {job.id} {decision.slots} slots")
    job.until_step, job.slots, job.offer = decision.until_step, decision.slots, decision.offer
    if job.segment is None:
        _set_status(state, job, "waiting")
    else:
        state.leaving.pop(job.segment, None)
        _set_status(state, job, "running")


def _pause_job(state: RunState, decision: d.PauseJob) -> None:
    _take_off(state, _known_job(state, decision.job, "PauseJob"), "paused")


def _drop_job(state: RunState, decision: d.DropJob) -> None:
    _take_off(state, _known_job(state, decision.job, "DropJob"), "dropped")


def _take_off(state: RunState, job: Job, status: JobStatus) -> None:
    if job.over:
        raise IllegalDecision(f"job {job.id} is {job.status} already and cannot be {status}")
    _set_status(state, job, status)
    if job.segment is not None and not state.segments[job.segment].halting:
        state.leaving[job.segment] = None


def _request_lease(state: RunState, decision: d.RequestLease) -> None:
    if decision.lease != f"l{state.leases_made}":
        raise IllegalDecision(f"RequestLease names lease {decision.lease}; the next one is l{state.leases_made}")
    listing = state.listings.get(decision.offer)
    if listing is None:
        raise IllegalDecision(f"RequestLease wants {decision.offer}, which this run may not rent")
    state.leases_made += 1
    state.leases[decision.lease] = Lease(
        id=decision.lease,
        offer=decision.offer,
        slots=listing.slots,
        free_slots=listing.slots,
        requested_at=state.now,
        end_by=decision.end_by,
        max_usd_per_hour=decision.max_usd_per_hour,
        reserve_usd=decision.reserve_usd,
    )


def _open_lease(state: RunState, lease_id: LeaseId, order: str) -> Lease:
    lease = state.leases.get(lease_id)
    if lease is None:
        raise IllegalDecision(f"{order} names lease {lease_id}, which is not open")
    return lease


def _extend_lease(state: RunState, decision: d.ExtendLease) -> None:
    lease = _open_lease(state, decision.lease, "ExtendLease")
    if decision.end_by < lease.end_by:
        raise IllegalDecision(f"ExtendLease would shorten {lease.id}; to end it sooner, release it")
    lease.end_by, lease.reserve_usd = decision.end_by, decision.reserve_usd


def _start_segment(state: RunState, decision: d.StartSegment) -> None:
    if decision.segment != f"s{state.segments_made}":
        raise IllegalDecision(f"StartSegment names {decision.segment}; the next one is s{state.segments_made}")
    job = _known_job(state, decision.job, "StartSegment")
    if job.status != "waiting":
        raise IllegalDecision(f"StartSegment starts job {job.id}, which is {job.status}")
    leases = [_open_lease(state, lease_id, "StartSegment") for lease_id in decision.leases]
    for lease in leases:
        if not lease.usable or lease.free_slots < decision.slots:
            raise IllegalDecision(f"StartSegment puts {decision.slots} slots on {lease.id}, which has no room")
    state.segments_made += 1
    segment = Segment(
        id=decision.segment,
        job=job.id,
        leases=decision.leases,
        slots=decision.slots,
        until_step=decision.until_step,
        from_step=0 if decision.resume_from is None else decision.resume_from.step,
        started_at=state.now,
    )
    state.segments[segment.id] = segment
    for lease in leases:
        lease.segments.append(segment.id)
        lease.free_slots -= decision.slots
        lease.idle_since = None
        _update_room(state, lease)
    job.segment = segment.id
    _set_status(state, job, "running")


def _halt_segment(state: RunState, decision: d.HaltSegment) -> None:
    segment = state.segments.get(decision.segment)
    if segment is None:
        raise IllegalDecision(f"HaltSegment names segment {decision.segment}, which is not running")
    segment.halting = True
    state.leaving.pop(segment.id, None)


def _release_lease(state: RunState, decision: d.ReleaseLease) -> None:
    lease = _open_lease(state, decision.lease, "ReleaseLease")
    lease.releasing = True
    _update_room(state, lease)


def _drop_checkpoint(state: RunState, decision: d.DropCheckpoint) -> None:
    _forget_checkpoint(_known_job(state, decision.ref.job, "DropCheckpoint"), decision.ref)


def _wake_at(state: RunState, decision: d.WakeAt) -> None:
    state.timers[decision.name] = decision.at
    if decision.about is not None:
        lease = _open_lease(state, decision.about, "WakeAt")
        if decision.name not in lease.timers:
            lease.timers.append(decision.name)


def _think(state: RunState, decision: d.Think) -> None:
    if decision.name in state.thinking:
        raise IllegalDecision(f"Think {decision.name!r} is already being thought about")
    state.thinking[decision.name] = None


def _wind_down(state: RunState, decision: d.WindDown) -> None:
    if state.phase != "concluded":
        state.phase, state.ending = "winding_down", decision.why


def _refused(state: RunState, decision: d.Refused) -> None:
    state.refused = decision
    state.refusals += 1


def _conclude(state: RunState, _: d.Conclude) -> None:
    if state.leases:
        raise IllegalDecision(f"Conclude with machines still held: {', '.join(state.leases)}")
    state.phase = "concluded"


FOLDS: dict[type, Callable[[RunState, Any], None]] = {
    e.RunStarted: _run_started,
    e.LeaseGranted: _lease_granted,
    e.LeaseDenied: _lease_denied,
    e.RevocationNoticed: _revocation_noticed,
    e.LeaseEnded: _lease_ended,
    e.SegmentStarted: _segment_started,
    e.JobReported: _job_reported,
    e.CheckpointSaved: _checkpoint_saved,
    e.CheckpointLost: _checkpoint_lost,
    e.SegmentEnded: _segment_ended,
    e.TimerFired: _timer_fired,
    e.ThoughtReady: _thought_ready,
    e.UserAsked: _user_asked,
    e.PolicyBroke: _policy_broke,
    d.AddJob: _add_job,
    d.TagJob: _tag_job,
    d.RunJob: _run_job,
    d.PauseJob: _pause_job,
    d.DropJob: _drop_job,
    d.RequestLease: _request_lease,
    d.ExtendLease: _extend_lease,
    d.StartSegment: _start_segment,
    d.HaltSegment: _halt_segment,
    d.ReleaseLease: _release_lease,
    d.DropCheckpoint: _drop_checkpoint,
    d.WakeAt: _wake_at,
    d.Think: _think,
    d.WindDown: _wind_down,
    d.Refused: _refused,
    d.Conclude: _conclude,
}
