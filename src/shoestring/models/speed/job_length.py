"""How long a job of a bag takes: jobs of one bag run the same program, so earlier ones predict the length of later ones
(the paper's Figure 1). Before the first has finished, the user's estimate counts (`job_takes`)."""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.kernel.types import JobId, Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import USUAL, SpeedModel, learned_speeds
from shoestring.models.speed.prior import SpeedPrior, StepTime
from shoestring.models.speed.progress import steps_left

OF_A_BAG = SpeedPrior(of_trials=0.2)
"""Trials of a study have other batch sizes and widths; jobs of a bag differ less. With the spread of trials, a first
job on a machine type would say little about the type."""


@dataclass(frozen=True)
class JobLengths:
    speeds: SpeedModel

    @staticmethod
    def of(view: RunView) -> JobLengths:
        """All that the run has observed so far."""
        return JobLengths(learned_speeds(view, OF_A_BAG if view.spec.until_exit else USUAL))

    def step_time(self, listing: Listing, slots: int, job: JobId | None = None) -> StepTime | None:
        """Of one step of this job, or of one more, on so many slots of such a machine. None until a job has been timed
        somewhere."""
        return self.speeds.step_time(job, listing, slots) if self.speeds.trials else None

    def expected_step_time(self, listing: Listing, slots: int, job: JobId | None = None) -> StepTime | None:
        """The same, by the user's estimate until a job has been timed; None without one."""
        return self.speeds.step_time(job, listing, slots) if self.speeds.trials or self.speeds.estimated else None


def work_left_s(view: RunView, job_id: JobId, listing: Listing, slots: int) -> float | None:
    """Seconds of work that a job still needs there. One that runs longer than expected counts as needing a tenth of a
    step more: how much it really needs is unknown."""
    job = view.jobs[job_id]
    step = JobLengths.of(view).expected_step_time(listing, slots, job_id)
    if step is None:
        return None
    segment = None if job.segment is None else view.segments[job.segment]
    done = job.saved_step if segment is None else segment.step
    left_s = step.expected_s * steps_left(view, job, done)
    if segment is not None and segment.running_since is not None:
        left_s -= view.now - max(segment.running_since, segment.step_at)
    return max(left_s, 0.1 * step.expected_s)
