"""Shared by all placements: start waiting jobs on free slots, request machines, release idle ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job, Lease
from shoestring.kernel.types import LeaseId, Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.allocations import rest_of
from shoestring.policies.placement.renting.least_time import has_time
from shoestring.policies.placement.renting.packing import Packing, is_gang, packing_for

PLACEMENT_WAKERS: frozenset[Waker] = frozenset(
    {
        e.LeaseGranted,
        e.LeaseDenied,
        e.LeaseEnded,
        e.RevocationNoticed,
        e.SegmentEnded,
        e.TimerFired,
        e.UserAsked,
        d.RunJob,
        d.PauseJob,
        d.DropJob,
    }
)

RETRY = "retry-placement"
"""A timer that matters only while a job waits."""
IDLE = "idle:"


def start_waiting_jobs(state: RunView, *, widest_first: bool = False) -> Iterator[d.Decision]:
    """Start waiting jobs on leases with room for them, the fullest lease first, so that others become idle. Jobs start
    in their order, or `widest_first`: single workers fit into any gap, and a gang that comes last is scattered."""
    if not state.with_free_slots or not state.waiting:
        return
    waiting = list(state.waiting)
    if widest_first:
        waiting.sort(key=lambda job_id: -state.jobs[job_id].slots)
    reserved: set[Offer | None] = set()
    for job_id in waiting:
        if not state.with_free_slots:
            return
        job = state.jobs[job_id]
        packing = None if job.offer in reserved else packing_for(state, job)
        if packing is None:
            if job.offer is not None and is_gang(state, job) and _is_pending(state, job.offer):
                reserved.add(job.offer)  # the last of its machines is pending: no other job starts on the first ones
            continue
        yield start_on(state, job, packing)


def _is_pending(state: RunView, offer: Offer) -> bool:
    return any(state.leases[lease].offer == offer for lease in state.pending)


def start_on(state: RunView, job: Job, packing: Packing) -> d.StartSegment:
    """Start a waiting job, from its latest checkpoint if it has one."""
    checkpoint = job.checkpoint
    where = f"on {state.leases[packing.leases[0]].offer}"
    if len(packing.leases) > 1:
        where = f"{job.slots} slots on {len(packing.leases)} machines: {where[3:]} and others in its zone"
    if rest := rest_of(state.leases[packing.leases[0]]):
        where = f"{where}, {rest}"
    return d.StartSegment(
        segment=state.next_segment(),
        job=job.id,
        leases=packing.leases,
        config=job.config,
        until_step=job.until_step,
        slots=job.slots,
        shares=packing.slots if len(packing.leases) > 1 else (),
        resume_from=checkpoint,
        time_limit_s=state.spec.time_limit_s,
        fraction=job.fraction,
        fractions=_unobserved_fractions(state, job),
        seed=state.spec.seed,
        why=where if checkpoint is None else f"{where}, from step {checkpoint.step}",
    )


def _unobserved_fractions(state: RunView, job: Job) -> tuple[float, ...]:
    """Smaller data fractions at which this trial has not been observed yet."""
    return tuple(
        fraction for fraction in state.spec.fractions if fraction < job.fraction and fraction not in job.snapshots
    )


def release_idle(state: RunView, idle_s: float) -> Iterator[d.Decision]:
    """Release idle machines: at once when no work is left, after `idle_s` while more may come."""
    if not state.idle or moves_under_way(state):
        return
    over = not state.segments and not state.waiting and not state.background_tasks
    if over or state.waiting:  # the last turn, or machines that fit no waiting job: look at each
        for lease_id in list(state.idle):
            lease = state.leases[lease_id]
            if over or _idle_for(state, lease) >= idle_s or not has_time(state, lease):
                yield d.ReleaseLease(lease=lease_id, why="idle: no work is left for it")
            elif f"{IDLE}{lease_id}" not in state.timers:
                yield _look_again(state, lease, idle_s)
        return
    # Idle leases stand in the order in which they became idle: the first are due first, the last have no timer yet.
    while state.idle and _idle_for(state, lease := state.leases[next(iter(state.idle))]) >= idle_s:
        yield d.ReleaseLease(lease=lease.id, why="idle: no work is left for it")
    for lease_id in reversed(tuple(state.idle)):
        if f"{IDLE}{lease_id}" in state.timers:
            break
        yield _look_again(state, state.leases[lease_id], idle_s)


def moves_under_way(state: RunView) -> bool:
    """Will free slots be needed in a moment: by a gang that waits for its last machine, or by jobs that are stopping in
    order to start elsewhere?"""
    if state.pending and any(is_gang(state, state.jobs[job]) for job in state.waiting):
        return True
    draining = state.draining
    stopping = (segment for segment in state.segments.values() if segment.halting or segment.id in draining)
    return any(state.jobs[segment.job].wanted for segment in stopping)


def kept_for_moves(state: RunView) -> set[LeaseId]:
    """Idle machines of another offer than that which stopping trials are on: they will start there."""
    kept: set[LeaseId] = set()
    for segment in state.segments.values():
        if segment.halting and len(segment.leases) == 1 and state.jobs[segment.job].wanted:
            here = state.leases[segment.leases[0]].offer
            others = (state.leases[lease] for lease in state.idle if lease not in kept)
            kept.update(islice((x.id for x in others if x.offer != here and x.slots >= segment.slots), 1))
    return kept


def _idle_for(state: RunView, lease: Lease) -> float:
    return 0.0 if lease.idle_since is None else state.now - lease.idle_since


def _look_again(state: RunView, lease: Lease, idle_s: float) -> d.WakeAt:
    return d.WakeAt(
        name=f"{IDLE}{lease.id}",
        at=state.now - _idle_for(state, lease) + idle_s,
        about=lease.id,
        why="release it if it is still idle then",
    )


def request(state: RunView, offer: Offer, why: str, max_usd_per_hour: float | None = None) -> d.RequestLease:
    return d.RequestLease(
        lease=state.next_lease(),
        offer=offer,
        max_usd_per_hour=max_usd_per_hour,
        end_by=state.now + state.spec.slice_s,
        why=why,
    )
