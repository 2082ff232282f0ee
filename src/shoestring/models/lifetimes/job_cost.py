"""Which machines, and how many of them, for the jobs of a bag: the least expected dollars per job.

Small machines are cheap to lose, but a job needs more of them, and a gang ends with the first preemption; large ones
save communication and are preempted more often. How long the job takes on each is not known beforehand: the first jobs
of a bag try the candidates that could still be best, and the others use what they found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from shoestring.models.lifetimes.makespan import makespan_s, printed_makespan_s
from shoestring.models.lifetimes.model import LifetimeModel
from shoestring.models.lifetimes.survival_table import SurvivalTable

HOUR_S = 3600.0


def job_usd(
    machines: int,
    usd_per_hour: float,
    work_s: float,
    lifetimes: LifetimeModel | None,
    *,
    restart_s: float = 0.0,
    paid_start_s: float = 0.0,
) -> float:
    """usd = machines * usd_per_hour * E[makespan] / 3600, for a job that takes `work_s` if no machine is lost.

    `lifetimes` None: they are not preempted. Infinite where no gang lasts as long as the job.
    Paper: SciSpot Eq. 11, corrected

    Differs from the paper: the first preemption in a gang ends it for all, any number of times.
    """
    paid_s = paid_start_s + work_s
    if lifetimes is not None:
        paid_s *= _longer(lifetimes, machines, float(f"{paid_s:.3g}"), float(f"{restart_s:.2g}"))
    return machines * usd_per_hour * paid_s / HOUR_S


@lru_cache(maxsize=4096)
def _longer(lifetimes: LifetimeModel, machines: int, paid_s: float, restart_s: float) -> float:
    """How many times as long it takes with losses. Cached: a bag has the same machines again and again, and a
    thousandth more work makes no difference."""
    gang = SurvivalTable.of(lifetimes, until_s=paid_s).together(machines)
    return float(makespan_s(gang, paid_s, restart_s=restart_s)) / paid_s


def printed_job_usd(machines: int, usd_per_hour: float, work_s: float, lifetimes: LifetimeModel) -> float:
    """At most one loss, and a gang fails as one machine does.  Paper: SciSpot Eq. 11"""
    alone = SurvivalTable.of(lifetimes, until_s=work_s)
    return machines * usd_per_hour * float(printed_makespan_s(alone, work_s)) / HOUR_S


@dataclass(frozen=True)
class Prospect:
    """A candidate in dollars per job: expected, and if jobs run well there."""

    expected_usd: float
    optimistic_usd: float
    tried: bool = False


def next_to_use(prospects: Sequence[Prospect], jobs_left: int) -> int:
    """Which candidate the next job uses: the cheapest, or one that is worth a try."""
    best = min(range(len(prospects)), key=lambda at: (prospects[at].expected_usd, at))
    worth = [_worth_usd(it, prospects[best].expected_usd, jobs_left) for it in prospects]
    tried_next = max(range(len(prospects)), key=lambda at: (worth[at], -at))
    return tried_next if worth[tried_next] > 0 else best


def _worth_usd(candidate: Prospect, known_usd: float, jobs_left: int) -> float:
    """What a try may save on all later jobs, less its expected extra cost on this one."""
    if candidate.tried:
        return 0.0
    return (known_usd - candidate.optimistic_usd) * (jobs_left - 1) - (candidate.expected_usd - known_usd)
