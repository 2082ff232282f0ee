"""How long a job takes on preemptible machines, if each loss restarts it from the beginning.

Renewal, for any number of losses: an attempt on a fresh machine takes the machine's lifetime, or the job's length if
that is shorter; if the machine was lost, the job begins again. The printed forms allow one loss at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shoestring.models.lifetimes.model import Floats
from shoestring.models.lifetimes.survival_table import SurvivalTable


def makespan_s(
    lifetimes: SurvivalTable, work_s: ArrayLike, *, age_s: ArrayLike = 0.0, restart_s: float = 0.0
) -> Floats:
    """E(age) = stay(age) + P(lost | age) (restart + E(0)): expected seconds from the start of a job on a machine of
    this age to its end, lost attempts included. Infinite where no machine lasts as long as the job.
    Paper: SciSpot Eq. 8-9, corrected

    Differs from the paper: any number of losses; each later attempt is on a fresh machine, `restart_s` after the loss.
    """
    first = lifetimes.stays_s(work_s, age_s)
    lost = 1.0 - lifetimes.reaches(work_s, age_s)
    again = restart_s + fresh_makespan_s(lifetimes, work_s, restart_s)
    with np.errstate(invalid="ignore"):
        return first + np.where(lost > 0, lost * again, 0.0)


def fresh_makespan_s(lifetimes: SurvivalTable, work_s: ArrayLike, restart_s: float = 0.0) -> Floats:
    """The same on a new machine: E = stay + P(lost) (restart + E), solved for E."""
    done = lifetimes.reaches(work_s)
    spent = lifetimes.stays_s(work_s) + (1.0 - done) * restart_s
    makespan: Floats = np.divide(spent, done, out=np.full(np.shape(done), np.inf), where=done > 0)
    return makespan


def wasted_s(lifetimes: SurvivalTable, work_s: ArrayLike) -> Floats:
    """E[work lost | loss] = (stay - work * P(done)) / P(lost).  Paper: SciSpot Eq. 6-7"""
    work = np.asarray(work_s, dtype=np.float64)
    lost = 1.0 - lifetimes.reaches(work)
    gone = lifetimes.stays_s(work) - work * (1.0 - lost)
    return np.divide(gone, lost, out=np.zeros(np.shape(lost)), where=lost > 0)


def printed_makespan_s(lifetimes: SurvivalTable, work_s: ArrayLike) -> Floats:
    """E = T + integral of t f(t) from 0 to T, T = work_s.  Paper: SciSpot Eq. 8-9"""
    return printed_makespan_at_age_s(lifetimes, work_s, 0.0)


def printed_makespan_at_age_s(lifetimes: SurvivalTable, work_s: ArrayLike, age_s: ArrayLike) -> Floats:
    """E = T + integral of t f(t) from s to s + T, T = work_s, s = age_s.  Paper: SciSpot Eq. 10"""
    work, age = np.asarray(work_s, dtype=np.float64), np.asarray(age_s, dtype=np.float64)
    end = age + work
    # by parts: t f(t) integrates to s S(s) - e S(e) + the integral of S between them
    lost = (
        age * lifetimes.alive_at(age)
        - end * lifetimes.alive_at(end)
        + lifetimes.lived_until(end)
        - lifetimes.lived_until(age)
    )
    return work + lost
