"""How each decision changes the state.

Law: an impossible decision raises `IllegalDecision` before anything of its turn is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoestring.errors import IllegalDecision
from shoestring.kernel import decisions as d
from shoestring.kernel.fold.old_endings import reason_of
from shoestring.kernel.fold.transitions import forget_checkpoint, reconsider_best, set_status, update_indexes
from shoestring.kernel.records import Job, JobStatus, Lease, Segment
from shoestring.kernel.state import RunState
from shoestring.kernel.types import EndReason, JobId, LeaseId


def _known_job(state: RunState, job_id: JobId, order: str) -> Job:
    job = state.jobs.get(job_id)
    if job is None:
        raise IllegalDecision(f"{order} names job {job_id}, which was never added")
    return job


def _add_job(state: RunState, decision: d.AddJob) -> None:
    if decision.job in state.jobs:
        raise IllegalDecision(f"AddJob names job {decision.job}, which was already added")
    if not 0 < decision.fraction <= 1:
        raise IllegalDecision(f"AddJob gives {decision.job} {decision.fraction!r} of the data")
    state.jobs[decision.job] = Job(
        id=decision.job,
        number=len(state.jobs),
        config=decision.config,
        tags=dict(decision.tags),
        fraction=decision.fraction,
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
    if decision.slots < 1 or decision.slots % state.the_spec.slots:
        raise IllegalDecision(
            f"RunJob gives {job.id} {decision.slots} slots, and each of its workers takes {state.the_spec.slots}"
        )
    job.until_step, job.slots, job.offer = decision.until_step, decision.slots, decision.offer
    if job.segment is None:
        set_status(state, job, "waiting")
        return
    segment = state.segments[job.segment]
    if segment.slots == job.slots:
        state.draining.pop(segment.id, None)
    elif not segment.halting:
        state.draining[segment.id] = None
    set_status(state, job, "running")


def _pause_job(state: RunState, decision: d.PauseJob) -> None:
    _stop_running(state, _known_job(state, decision.job, "PauseJob"), "paused")


def _drop_job(state: RunState, decision: d.DropJob) -> None:
    _stop_running(state, _known_job(state, decision.job, "DropJob"), "pruned")


def _judge_job(state: RunState, decision: d.JudgeJob) -> None:
    job = _known_job(state, decision.job, "JudgeJob")
    job.seconds, job.usd, job.feasible = decision.seconds, decision.usd, decision.feasible
    reconsider_best(state, job)


def _stop_running(state: RunState, job: Job, status: JobStatus) -> None:
    if job.over:
        raise IllegalDecision(f"job {job.id} is {job.status} already and cannot be {status}")
    set_status(state, job, status)
    if job.segment is not None and not state.segments[job.segment].halting:
        state.draining[job.segment] = None


def _request_lease(state: RunState, decision: d.RequestLease) -> None:
    if decision.lease != f"l{state.leases_made}":
        raise IllegalDecision(f"RequestLease names lease {decision.lease}; the next one is l{state.leases_made}")
    listing = state.listings.get(decision.offer)
    if listing is None:
        raise IllegalDecision(f"RequestLease wants {decision.offer}, which is not in the listings of this run")
    if decision.max_usd_per_hour is not None and not decision.max_usd_per_hour > 0:
        raise IllegalDecision(f"RequestLease would pay {decision.max_usd_per_hour!r} USD an hour at most")
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
        gang=None if decision.gang is msgspec.UNSET else decision.gang,
    )
    state.pending[decision.lease] = None
    state.last_lease_at = state.now


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
    slots_on = decision.slots_on
    if len(slots_on) != len(set(decision.leases)) or sum(slots_on) != decision.slots:
        raise IllegalDecision(f"StartSegment divides {decision.slots} slots as {slots_on} among {decision.leases}")
    for lease, slots in zip(leases, slots_on, strict=True):
        if not lease.usable or lease.free_slots < slots:
            raise IllegalDecision(f"StartSegment puts {slots} slots on {lease.id}, which has no room")
    state.segments_made += 1
    segment = Segment(
        id=decision.segment,
        job=job.id,
        leases=decision.leases,
        slots=decision.slots,
        slots_on=slots_on,
        machine=leases[0].offer.machine,
        until_step=decision.until_step,
        started_at=state.now,
    )
    if decision.resume_from is not None:
        segment.resumed = True
        segment.first_step = segment.step = decision.resume_from.step
    state.segments[segment.id] = segment
    for lease, slots in zip(leases, slots_on, strict=True):
        lease.segments.append(segment.id)
        lease.free_slots -= slots
        lease.idle_since = None
        update_indexes(state, lease)
    job.segment = segment.id
    job.rented = leases[0].offer
    job.saves_every_s = None
    set_status(state, job, "running")


def _plan_saves(state: RunState, decision: d.PlanSaves) -> None:
    segment = state.segments.get(decision.segment)
    if segment is not None:  # it may have ended in this very turn
        state.jobs[segment.job].saves_every_s = decision.every_s


def _halt_segment(state: RunState, decision: d.HaltSegment) -> None:
    segment = state.segments.get(decision.segment)
    if segment is None:
        raise IllegalDecision(f"HaltSegment names segment {decision.segment}, which is not running")
    segment.halting = True
    state.draining.pop(segment.id, None)


def _release_lease(state: RunState, decision: d.ReleaseLease) -> None:
    lease = _open_lease(state, decision.lease, "ReleaseLease")
    lease.releasing = True
    update_indexes(state, lease)


def _drop_checkpoint(state: RunState, decision: d.DropCheckpoint) -> None:
    forget_checkpoint(_known_job(state, decision.ref.job, "DropCheckpoint"), decision.ref)


def _wake_at(state: RunState, decision: d.WakeAt) -> None:
    state.timers[decision.name] = decision.at
    state.timer_whys[decision.name] = decision.why
    if decision.about is not None:
        lease = _open_lease(state, decision.about, "WakeAt")
        if decision.name not in lease.timers:
            lease.timers.append(decision.name)


def _think(state: RunState, decision: d.Think) -> None:
    if decision.name in state.background_tasks:
        raise IllegalDecision(f"Think names background task {decision.name!r}, which is already running")
    state.background_tasks[decision.name] = None


def _wind_down(state: RunState, decision: d.WindDown) -> None:
    _end(state, decision.why, decision.reason)


def _wind_down_v1(state: RunState, decision: d.WindDownV1) -> None:
    _end(state, decision.why, reason_of(decision.why))


def _end(state: RunState, why: str, reason: EndReason) -> None:
    if state.phase != "concluded":
        state.phase, state.ending, state.end_reason = "winding_down", why, reason


def _refused(state: RunState, decision: d.Refused) -> None:
    state.refused = decision
    state.refusals += 1


def _conclude(state: RunState, _: d.Conclude) -> None:
    if state.leases:
        raise IllegalDecision(f"Conclude with machines still held: {', '.join(state.leases)}")
    state.phase = "concluded"


DECISION_FOLDS: dict[type, Callable[[RunState, Any], None]] = {
    d.AddJob: _add_job,
    d.TagJob: _tag_job,
    d.RunJob: _run_job,
    d.PauseJob: _pause_job,
    d.DropJob: _drop_job,
    d.JudgeJob: _judge_job,
    d.RequestLease: _request_lease,
    d.ExtendLease: _extend_lease,
    d.StartSegment: _start_segment,
    d.PlanSaves: _plan_saves,
    d.HaltSegment: _halt_segment,
    d.ReleaseLease: _release_lease,
    d.DropCheckpoint: _drop_checkpoint,
    d.WakeAt: _wake_at,
    d.Think: _think,
    d.WindDown: _wind_down,
    d.WindDownV1: _wind_down_v1,
    d.Refused: _refused,
    d.Conclude: _conclude,
}
