"""Small changes of state that several folds share. Each keeps the indexes of `RunState` up to date."""

from __future__ import annotations

import math
from bisect import bisect_right

from shoestring.kernel.records import Job, JobStatus, Lease, Pace, Segment, Settled
from shoestring.kernel.state import RunState
from shoestring.kernel.types import CheckpointRef, LeaseId, SegmentCause


def set_status(state: RunState, job: Job, status: JobStatus) -> None:
    if job.status == status:
        return
    state.by_status[job.status] -= 1
    state.by_status[status] += 1
    wanted = job.wanted
    if job.status == "waiting":
        del state.waiting[job.id]
    elif status == "waiting":
        state.waiting[job.id] = None
    job.status = status
    if wanted and not job.wanted:
        value = job.values[-1] if job.values else None
        state.settled.append(Settled(job.id, status, job.step, job.until_step, value))


def update_indexes(state: RunState, lease: Lease) -> None:
    """Put an open lease into the indexes where it belongs now."""
    _belongs(state.with_free_slots, lease, lease.usable and lease.free_slots > 0)
    _belongs(state.idle, lease, lease.usable and not lease.segments)
    _belongs(state.pending, lease, lease.granted_at is None and not lease.releasing)
    _belongs(state.on_notice, lease, lease.gone_at is not None or lease.releasing)


def remove_lease(state: RunState, lease: Lease) -> None:
    del state.leases[lease.id]
    for index in (state.with_free_slots, state.idle, state.pending, state.on_notice):
        index.pop(lease.id, None)
    for name in lease.timers:
        state.timers.pop(name, None)
        state.timer_whys.pop(name, None)


def _belongs(index: dict[LeaseId, None], lease: Lease, yes: bool) -> None:
    if yes:
        index.setdefault(lease.id)
    else:
        index.pop(lease.id, None)


def fall_back(state: RunState, job: Job, segment: Segment, at: float) -> None:
    """Work since the last checkpoint is lost, and so is that part of the learning curve."""
    saved = job.saved_step
    if job.step > saved:
        if job.status != "pruned":  # work of a pruned job is not a loss
            job.lost_steps += job.step - saved
            state.lost_steps += job.step - saved
            state.lost_s += segment.unsaved_s(at)
        job.step = saved
        keep = bisect_right(job.steps, saved)
        del job.steps[keep:], job.values[keep:]
        recount_best(state, job)


def recount_best(state: RunState, job: Job) -> None:
    spec = state.the_spec
    job.best = math.nan
    for value in job.values:
        if spec.better(value, job.best):
            job.best = value
    if state.best == job.id:
        reconsider_best(state, job)


def reconsider_best(state: RunState, job: Job) -> None:
    """Whether this job is the best may have changed."""
    if state.best != job.id:
        maybe_best(state, job)
        return
    state.best = None
    for other in state.jobs.values():
        maybe_best(state, other)


def maybe_best(state: RunState, job: Job) -> None:
    """Only a job on all of the data can be the best, and where there are constraints, only one known to satisfy
    them."""
    if math.isnan(job.best) or job.fraction < 1.0 or (state.the_spec.constraints and not job.feasible):
        return
    if state.best is None or state.the_spec.better(job.best, state.jobs[state.best].best):
        state.best = job.id


def _trained(state: RunState, job: Job, segment: Segment, cause: SegmentCause, step: int, at: float) -> Pace:
    """Steps and seconds of a segment that ends. A program that never reports is timed at its end. So is, in a bag, one
    that does: its last report is not its end there."""
    if cause != "completed" or segment.running_since is None:
        return segment.pace
    if not state.the_spec.until_exit:
        trained, whole = segment.pace, Pace(max(1, segment.until_step - segment.first_step), at - segment.running_since)
        return trained if trained.steps or job.revocations else whole
    steps = max(segment.step, step) - segment.first_step
    # Resumed without a step to tell how much was done before: its time is a part of the job, but which part is unknown.
    return Pace(
        steps if steps or segment.resumed else max(1, segment.until_step),
        max(segment.trained_s, at - segment.trains_from),
    )


def close_segment(
    state: RunState, segment: Segment, cause: SegmentCause, step: int, at: float, detail: str, *, revoked: bool
) -> None:
    del state.segments[segment.id]
    state.draining.pop(segment.id, None)
    job = state.jobs[segment.job]
    kept = cause in ("reached", "completed") or job.status == "pruned"  # work of a pruned job is not a loss
    time = segment.time(at, lost=not kept)
    for lease_id, slots in zip(segment.leases, segment.slots_on, strict=True):
        lease = state.leases.get(lease_id)
        if lease is not None:
            lease.time.add(time, slots / lease.slots)
            lease.segments.remove(segment.id)
            lease.free_slots += slots
            if not lease.segments:
                lease.idle_since = at
            update_indexes(state, lease)
    job.segment = None
    trained, where = _trained(state, job, segment, cause, step, at), (segment.machine, segment.slots)
    if trained.steps or where in job.paces:
        pace = job.paces.setdefault(where, Pace())
        pace.steps += trained.steps
        pace.seconds += trained.seconds
    if revoked:
        job.revocations += 1
    if cause in ("reached", "completed"):
        job.step = max(job.step, step)
    else:
        fall_back(state, job, segment, at)
    if detail:
        job.detail = detail
    if cause in ("failed", "overran"):
        job.failures += 1
    if job.over:
        return
    spec = state.the_spec
    if cause == "completed" or (cause == "reached" and step >= spec.max_steps):
        set_status(state, job, "finished")
    elif job.failures > spec.max_failures:
        set_status(state, job, "failed")
    elif job.status != "running":  # paused while it ran
        return
    elif cause == "reached" and step >= job.until_step:
        set_status(state, job, "paused")
    else:
        set_status(state, job, "waiting")


def forget_checkpoint(job: Job, ref: CheckpointRef) -> None:
    if ref in job.checkpoints:
        job.checkpoints.remove(ref)
