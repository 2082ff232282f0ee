"""Which machines, and how many of them, for the jobs of a bag: the least expected dollars per job.

Small machines are cheap to lose, but a job needs more of them, and a gang ends with the first preemption; large ones
save communication and are preempted more often. How long the job takes on each is not known beforehand: the first jobs
of a bag try the candidates that could still be best, and the others use what they found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from shoestring.models.lifetimes.makespan import makespan_s, printed_makespan_s
from shoestring.models.lifetimes.model import LifetimeModel
from shoestring.models.lifetimes.survival_table import SurvivalTable

HOUR_S = 3600.0
_PHI = NormalDist()


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
    """A candidate in dollars per job: what is expected now, and how far from it a try may move that, compared with the
    cheapest candidate. After a try the expected cost is log-normal, with the same mean."""

    expected_usd: float
    log_sd: float = 0.0
    """Of the expected cost after a try; 0: nothing is hoped for, or a try is under way."""
    tried: bool = False
    """Was a job timed there?"""


def next_to_use(prospects: Sequence[Prospect], jobs_after: Sequence[float]) -> int:
    """Which candidate the next job uses: the cheapest, or the one most worth a try. `jobs_after`: for each, how many
    jobs would begin after a try there is over."""
    best = min(range(len(prospects)), key=lambda at: (prospects[at].expected_usd, at))
    known_usd = prospects[best].expected_usd
    worth = [worth_of_a_try_usd(it, known_usd, jobs) for it, jobs in zip(prospects, jobs_after, strict=True)]
    tried_next = max(range(len(prospects)), key=lambda at: (worth[at], -at))
    return tried_next if worth[tried_next] > 0 else best


def worth_of_a_try_usd(candidate: Prospect, known_usd: float, jobs_after: float) -> float:
    """jobs_after * EI - (E[c] - b): what a try is expected to save on later jobs, less its extra cost on one. c is the
    cost of a job there, as expected after the try, and b = `known_usd` that on the cheapest candidate."""
    if candidate.log_sd == 0 or math.isinf(candidate.expected_usd):
        return 0.0
    return jobs_after * expected_improvement_usd(candidate, known_usd) - (candidate.expected_usd - known_usd)


def expected_improvement_usd(candidate: Prospect, known_usd: float) -> float:
    """EI = E[max(0, b - c)] = b Phi(d) - E[c] Phi(d - s), d = ln(b / E[c]) / s + s / 2, c log-normal with log_sd s.

    After a try the later jobs use whichever proved cheaper: a candidate can only gain.
    """
    b, mean, s = known_usd, candidate.expected_usd, candidate.log_sd
    if s == 0 or not (0 < mean < math.inf and 0 < b < math.inf):
        return max(0.0, b - mean) if mean < math.inf else 0.0
    d = math.log(b / mean) / s + s / 2
    return max(0.0, b * _PHI.cdf(d) - mean * _PHI.cdf(d - s))
