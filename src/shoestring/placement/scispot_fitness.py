"""What a machine that is there is worth for the next job, by its age: the models' answers for a lease of a run."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from shoestring.kernel.records import Job, Lease
from shoestring.kernel.view import RunView
from shoestring.placement.scispot_ranking import machines_for
from shoestring.placement.seen import provision_s, start_s

if TYPE_CHECKING:
    from shoestring.models.lifetime_model import LifetimeModel
    from shoestring.models.lives import Lives
    from shoestring.models.survival_table import SurvivalTable

LONGEST_SPARE_S = 3600.0
"""The paper keeps every spare for an hour; here that is the most."""
OLDEST_S = 4 * 86400.0
"""Where a provider has no limit: nobody asks about older machines."""


def reuse_here_s(state: RunView, lives: Lives, lease: Lease) -> float:
    """Seconds that a job is expected to be done sooner here than on a new machine; 0 while nothing is known."""
    from shoestring.models.reuse import reuse_saves_s

    work_s, table = _job_s(state, lease), _table_of(state, lives, lease)
    if work_s is None or table is None:
        return 0.0
    return float(reuse_saves_s(table, work_s, _age_s(lease, state.now), provision_s(state) + start_s(state)))


def job_here_usd(state: RunView, lives: Lives, job: Job, lease: Lease) -> float | None:
    """Expected dollars of one job on this machine; None while nothing is known, or where it takes several."""
    from shoestring.models.makespan import makespan_s

    work_s, table = _job_s(state, lease), _table_of(state, lives, lease)
    machines, share = machines_for(job, state.listings[lease.offer])
    if work_s is None or machines > 1:
        return None
    if table is not None:
        age_s = _age_s(lease, state.now)
        work_s = float(makespan_s(table, work_s, age_s=age_s, restart_s=provision_s(state) + start_s(state)))
    return state.usd_per_hour(lease.offer) * share * work_s / 3600


def spare_here_s(state: RunView, lives: Lives, lease: Lease) -> float:
    """How long it is worth keeping, from the moment it became idle."""
    from shoestring.models.reuse import break_even_idle_s

    work_s, table = _job_s(state, lease), _table_of(state, lives, lease)
    if work_s is None or table is None or lease.idle_since is None:
        return 0.0
    return min(LONGEST_SPARE_S, float(break_even_idle_s(table, work_s, _age_s(lease, lease.idle_since))))


def _table_of(state: RunView, lives: Lives, lease: Lease) -> SurvivalTable | None:
    """None: nobody takes it away."""
    model = lives.of(state, state.listings[lease.offer])
    return None if model is None else _table(model)


@lru_cache(maxsize=64)
def _table(model: LifetimeModel) -> SurvivalTable:
    from shoestring.models.survival_table import SurvivalTable

    return SurvivalTable.of(model, until_s=OLDEST_S)


def _job_s(state: RunView, lease: Lease) -> float | None:
    """What a whole job takes there; None until one has been timed."""
    from shoestring.models.job_length import JobLengths

    step = JobLengths.of(state).step_time(state.listings[lease.offer], min(state.spec.slots, lease.slots))
    return None if step is None else step.expected_s * state.spec.max_steps


def _age_s(lease: Lease, at: float) -> float:
    return 0.0 if lease.granted_at is None else max(0.0, at - lease.granted_at)
