"""What a machine that is up is worth for the next job, by its age: the lifetime models applied to a lease of a run.

A job on several machines is interrupted by the first preemption of any of them, and is shorter on them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from shoestring.kernel.records import Job, Lease
from shoestring.kernel.view import RunView
from shoestring.models.speed.job_length import JobLengths
from shoestring.models.speed.latencies import learned_latencies
from shoestring.policies.placement.scispot.candidates import Place, chosen_place, place_on

if TYPE_CHECKING:
    from shoestring.models.lifetimes.model import LifetimeModel
    from shoestring.models.lifetimes.source import LifetimeSource
    from shoestring.models.lifetimes.survival_table import SurvivalTable

LONGEST_SPARE_S = 3600.0
"""The paper keeps every spare for an hour; here that is the most."""
OLDEST_S = 4 * 86400.0
"""Survival is tabulated up to this age, where a provider has no limit on lifetimes."""


def reuse_here_s(state: RunView, lifetimes: LifetimeSource, job: Job, lease: Lease) -> float:
    """Seconds that a job is expected to finish sooner here than on a new machine; 0 while unknown. Of several machines
    that work on it together, all are assumed to be as old as this one."""
    from shoestring.models.lifetimes.reuse import reuse_saves_s

    place = _place(state, lease, job)
    work_s, table = _job_s(state, place), _table_of(state, lifetimes, place, lease)
    if work_s is None or table is None:
        return 0.0
    latencies = learned_latencies(state)
    new_s = latencies.provision_s + latencies.start_s
    return float(reuse_saves_s(table, work_s, _age_s(lease, state.now), new_s))


def job_here_usd(state: RunView, lifetimes: LifetimeSource, job: Job, lease: Lease) -> float | None:
    """Expected dollars of one job on this machine, and on others like it; None while unknown."""
    from shoestring.models.lifetimes.makespan import makespan_s

    place = _place(state, lease, job)
    work_s, table = _job_s(state, place), _table_of(state, lifetimes, place, lease)
    if work_s is None:
        return None
    if table is not None:
        age_s = _age_s(lease, state.now)
        work_s = float(makespan_s(table, work_s, age_s=age_s, restart_s=learned_latencies(state).restart_s))
    return state.usd_per_hour(lease.offer) * place.machines * work_s / 3600


def spare_here_s(state: RunView, lifetimes: LifetimeSource, lease: Lease) -> float:
    """How long it is worth keeping, from the moment it became idle: for a job like those that wait for this offer, or
    run on it."""
    from shoestring.models.lifetimes.reuse import break_even_idle_s

    place = _place(state, lease, _job_for(state, lease))
    work_s, table = _job_s(state, place), _table_of(state, lifetimes, place, lease)
    if work_s is None or table is None or lease.idle_since is None:
        return 0.0
    return min(LONGEST_SPARE_S, float(break_even_idle_s(table, work_s, _age_s(lease, lease.idle_since))))


def _job_for(state: RunView, lease: Lease) -> Job | None:
    ids = (*state.waiting, *(segment.job for segment in state.segments.values()))
    return next((job for job in map(state.jobs.__getitem__, ids) if job.offer == lease.offer), None)


def _place(state: RunView, lease: Lease, job: Job | None) -> Place:
    """Where a job would run on such machines: the place chosen for it, or one machine."""
    chosen = None if job is None else chosen_place(state, job)
    return chosen or place_on(state, state.listings[lease.offer], 1)


def _table_of(state: RunView, lifetimes: LifetimeSource, place: Place, lease: Lease) -> SurvivalTable | None:
    """None: it is never preempted."""
    model = lifetimes.for_offer(state, place.listing, lease.granted_at)
    return None if model is None else _table(model, place.count)


@lru_cache(maxsize=64)
def _table(model: LifetimeModel, machines: int) -> SurvivalTable:
    from shoestring.models.lifetimes.survival_table import SurvivalTable

    return SurvivalTable.of(model, until_s=OLDEST_S).together(machines)


def _job_s(state: RunView, place: Place) -> float | None:
    """How long a whole job takes there; None until one has been timed."""
    step = JobLengths.of(state).step_time(place.listing, place.slots)
    return None if step is None else step.expected_s * state.spec.max_steps


def _age_s(lease: Lease, at: float) -> float:
    return 0.0 if lease.granted_at is None else max(0.0, at - lease.granted_at)
