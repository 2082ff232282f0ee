"""How long a job of a bag takes, from those that are done: where it was seen, and by guess on other machines.

Jobs of one bag run the same program, so earlier ones tell what later ones will take (the paper's Figure 1). Lengths
are kept per machine type and slots as running sums, so a bag of 100,000 jobs is never gone through again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from shoestring.kernel.types import JobId, Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed import GAIN, SpeedPrior, StepTime, size_of

PRIOR = SpeedPrior()
Where = tuple[str, int]
"""A machine type and how many of its slots."""


@dataclass(slots=True)
class _Seen:
    """Logarithms of seconds per step: their number, mean, and summed squares of deviations."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    size: float = 1.0

    def add(self, log_s: float) -> None:
        self.count += 1
        change = log_s - self.mean
        self.mean += change / self.count
        self.squares += change * (log_s - self.mean)

    @property
    def spread(self) -> float:
        """Between jobs; with few of them, not less than the prior says."""
        return math.sqrt((self.squares + PRIOR.of_trials**2) / self.count)


@dataclass
class JobLengths:
    """Derived from `RunView.rests` and nothing else, so that it may be forgotten and made again at any time."""

    _read: int = 0
    _seen: dict[Where, _Seen] = field(default_factory=dict)

    @staticmethod
    def of(view: RunView) -> JobLengths:
        """All that the run knows by now."""
        lengths = view.memo("job lengths", JobLengths)
        lengths._read_on(view)
        return lengths

    def tried(self, listing: Listing, slots: int) -> bool:
        return (listing.offer.machine, slots) in self._seen

    def step_time(self, listing: Listing, slots: int) -> StepTime | None:
        """Of one step of one more job on so many slots of such a machine. None until a job is done somewhere."""
        seen = self._seen.get((listing.offer.machine, slots))
        if seen is not None:
            return StepTime(math.exp(seen.mean), seen.spread)
        if not self._seen:
            return None
        size = size_of(listing, slots)
        nearest = min(self._seen.values(), key=lambda other: abs(math.log(size / other.size)))
        ratio = math.log(size / nearest.size)
        guess = math.hypot(nearest.spread, PRIOR.of_machines, PRIOR.of_the_bend * ratio)
        return StepTime(math.exp(nearest.mean - GAIN * ratio), guess)

    def _read_on(self, view: RunView) -> None:
        for rest in view.rests[self._read :]:
            if rest.status == "finished":
                for (machine, slots), pace in view.jobs[rest.job].paces.items():
                    if pace.steps and pace.seconds > 0:
                        seen = self._seen.setdefault((machine, slots), _Seen(size=_size(view, machine, slots)))
                        seen.add(math.log(pace.seconds / pace.steps))
        self._read = len(view.rests)


def _size(view: RunView, machine: str, slots: int) -> float:
    listing = next(x for x in view.spec.listings if x.offer.machine == machine)
    return size_of(listing, slots)


def work_left_s(view: RunView, job_id: JobId, listing: Listing, slots: int) -> float | None:
    """Seconds of work that a job still needs there. One that runs longer than expected is taken to need a tenth more:
    how much it really needs nobody knows."""
    job = view.jobs[job_id]
    step = JobLengths.of(view).step_time(listing, slots)
    if step is None:
        return None
    segment = None if job.segment is None else view.segments[job.segment]
    done = job.saved_step if segment is None else segment.step
    left_s = step.expected_s * max(0, job.until_step - done)
    if segment is not None and segment.running_since is not None:
        left_s -= view.now - max(segment.running_since, segment.step_at)
    return max(left_s, 0.1 * step.expected_s)
