"""Is a machine that is running better for a job than a new one, and how long is it worth keeping for the next?

Young machines are preempted first, and all are at the provider's limit. So a machine that survived its first hours is
worth more than a new one, until its remaining lifetime is shorter than the job.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shoestring.models.lifetimes.makespan import (
    fresh_makespan_s,
    makespan_s,
    printed_makespan_at_age_s,
    printed_makespan_s,
)
from shoestring.models.lifetimes.model import Floats
from shoestring.models.lifetimes.survival_table import SurvivalTable


def reuse_saves_s(lifetimes: SurvivalTable, work_s: ArrayLike, age_s: ArrayLike, setup_s: float) -> Floats:
    """setup_s + E(0) - E(age_s), E from `makespan_s`: expected seconds saved by running the job on a machine of this
    age instead of a new one, which takes `setup_s` to start. Negative: use a new one.  Paper: SciSpot Eq. 10, corrected

    Differs from the paper: a loss costs the work done on this machine, not the machine's age; its chance is conditional
    on the machine having reached this age; any number of losses; and a new machine is not ready at once.
    """
    new = setup_s + fresh_makespan_s(lifetimes, work_s, setup_s)
    here = makespan_s(lifetimes, work_s, age_s=age_s, restart_s=setup_s)
    # a job that no machine outlives cannot finish on either: this one at least is ready
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(new) & np.isinf(here), setup_s, new - here)


def printed_reuse_saves_s(lifetimes: SurvivalTable, work_s: ArrayLike, age_s: ArrayLike) -> Floats:
    """The sign decides.  Paper: SciSpot section 4.2"""
    return printed_makespan_s(lifetimes, work_s) - printed_makespan_at_age_s(lifetimes, work_s, age_s)


@dataclass(frozen=True, eq=False)
class TransitionPoints:
    """For each age: the job length from which on a new machine is better."""

    age_s: Floats
    longest_s: Floats
    """Infinite where every job length tried should stay."""

    def reuse(self, work_s: float, age_s: float) -> bool:
        at = int(np.searchsorted(self.age_s, age_s, side="right")) - 1
        return bool(work_s < self.longest_s[max(0, at)])


def transition_points(
    lifetimes: SurvivalTable, setup_s: float, *, ages: int = 96, longest_work_s: float | None = None
) -> TransitionPoints:
    """Computed once, then looked up for every job and machine.  Paper: SciSpot Fig. 5b"""
    age_s = np.linspace(0.0, lifetimes.end_s, ages, endpoint=False)
    work_s = np.arange(1, int((longest_work_s or lifetimes.end_s) / lifetimes.step_s)) * lifetimes.step_s
    worse = reuse_saves_s(lifetimes, work_s[None, :], age_s[:, None], setup_s) < 0
    longest_s = np.where(worse.any(axis=1), work_s[worse.argmax(axis=1)], np.inf)
    return TransitionPoints(age_s, longest_s)


def break_even_idle_s(lifetimes: SurvivalTable, work_s: ArrayLike, age_s: ArrayLike) -> Floats:
    """How long an idle machine of this age may be kept for a job of that length before it costs more than it saves.

    Both sides are paid machine time at one price: the idle seconds, and those that the job is expected to take longer
    on a new machine. The start-up of machines is not paid for, and not counted.
    """
    with np.errstate(invalid="ignore"):  # infinite on both where neither machine lives long enough: nothing to wait for
        longer = fresh_makespan_s(lifetimes, work_s) - makespan_s(lifetimes, work_s, age_s=age_s)
    return np.maximum(0.0, np.where(np.isfinite(longer), longer, 0.0))
