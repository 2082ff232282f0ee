"""What every placement does alike: fill the machines that are there, count what is missing, give idle ones back."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job, Lease
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.packing import Packing, has_time, is_gang, seats_for

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
"""A timer that matters only while somebody waits."""
IDLE = "idle:"


def start_waiting_jobs(state: RunView, *, widest_first: bool = False) -> Iterator[d.Decision]:
    """Put waiting jobs on leases with room for them, the fullest first, to empty the others. Jobs sit down in their
    order, or `widest_first`: single workers fit into any gap, and a gang that comes last is scattered."""
    if not state.with_free_slots or not state.waiting:
        return
    waiting = list(state.waiting)
    if widest_first:
        waiting.sort(key=lambda job_id: -state.jobs[job_id].slots)
    kept: set[Offer | None] = set()
    for job_id in waiting:
        if not state.with_free_slots:
            return
        job = state.jobs[job_id]
        seats = None if job.offer in kept else seats_for(state, job)
        if seats is None:
            if job.offer is not None and is_gang(state, job) and _is_coming(state, job.offer):
                kept.add(job.offer)  # the last of its machines is on its way: nobody sits down on the others
            continue
        yield start_on(state, job, seats)


def _is_coming(state: RunView, offer: Offer) -> bool:
    return any(state.leases[lease].offer == offer for lease in state.pending)


def start_on(state: RunView, job: Job, seats: Packing) -> d.StartSegment:
    """A waiting job sits down, and goes on from its latest checkpoint."""
    checkpoint = job.checkpoint
    where = f"on {state.leases[seats.leases[0]].offer}"
    if len(seats.leases) > 1:
        where = f"{job.slots} slots on {len(seats.leases)} machines: {where[3:]} and others there"
    return d.StartSegment(
        segment=state.next_segment(),
        job=job.id,
        leases=seats.leases,
        config=job.config,
        until_step=job.until_step,
        slots=job.slots,
        shares=seats.slots if len(seats.leases) > 1 else (),
        resume_from=checkpoint,
        time_limit_s=state.spec.time_limit_s,
        fraction=job.fraction,
        fractions=_worth_telling(state, job),
        seed=state.spec.seed,
        why=where if checkpoint is None else f"{where}, going on from step {checkpoint.step}",
    )


def _worth_telling(state: RunView, job: Job) -> tuple[float, ...]:
    """Smaller parts of the data that nobody knows yet how good this configuration is on."""
    return tuple(part for part in state.spec.fractions if part < job.fraction and part not in job.snapshots)


def release_idle(state: RunView, idle_s: float) -> Iterator[d.Decision]:
    """Give machines back that nobody needs: at once when nothing else runs, after `idle_s` while more work may come."""
    if not state.idle or on_the_move(state):
        return
    over = not state.segments and not state.waiting and not state.thinking
    if over or state.waiting:  # the last turn, or machines that fit nobody who waits: look at each
        for lease_id in list(state.idle):
            lease = state.leases[lease_id]
            if over or _idle_for(state, lease) >= idle_s or not has_time(state, lease):
                yield d.ReleaseLease(lease=lease_id, why="nothing is left for it to do")
            elif f"{IDLE}{lease_id}" not in state.timers:
                yield _look_again(state, lease, idle_s)
        return
    # Idle leases stand in the order in which they became idle: the first are due first, the last have no timer yet.
    while state.idle and _idle_for(state, lease := state.leases[next(iter(state.idle))]) >= idle_s:
        yield d.ReleaseLease(lease=lease.id, why="nothing is left for it to do")
    for lease_id in reversed(tuple(state.idle)):
        if f"{IDLE}{lease_id}" in state.timers:
            break
        yield _look_again(state, state.leases[lease_id], idle_s)


def on_the_move(state: RunView) -> bool:
    """Will a place be wanted in a moment? By a gang that waits until its last machine is there, or by jobs that are
    stopping where they run, to start again elsewhere."""
    if state.pending and any(is_gang(state, state.jobs[job]) for job in state.waiting):
        return True
    going = (segment for segment in state.segments.values() if segment.halting or segment.id in state.draining)
    return any(state.jobs[segment.job].wanted for segment in going)


def _idle_for(state: RunView, lease: Lease) -> float:
    return 0.0 if lease.idle_since is None else state.now - lease.idle_since


def _look_again(state: RunView, lease: Lease, idle_s: float) -> d.WakeAt:
    return d.WakeAt(
        name=f"{IDLE}{lease.id}",
        at=state.now - _idle_for(state, lease) + idle_s,
        about=lease.id,
        why="give it back if it is still idle then",
    )


def request(state: RunView, offer: Offer, why: str, max_usd_per_hour: float | None = None) -> d.RequestLease:
    return d.RequestLease(
        lease=state.next_lease(),
        offer=offer,
        max_usd_per_hour=max_usd_per_hour,
        end_by=state.now + state.spec.slice_s,
        why=why,
    )
