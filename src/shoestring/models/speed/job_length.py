"""How long a job of a bag takes, from finished jobs: measured where some ran, extrapolated to other machines.

Jobs of one bag run the same program, so earlier ones predict the length of later ones (the paper's Figure 1). Lengths
are kept per machine type and slots as running sums, so a bag of 100,000 jobs is never read twice. How much faster jobs
are on more slots is learned too: the speed-up on two machines is evidence for four.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from shoestring.kernel.types import JobId, Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import GAIN, SpeedPrior, StepTime, size_of

PRIOR = SpeedPrior()
Where = tuple[str, int]
"""A machine type and how many of its slots."""


@dataclass(slots=True)
class _Seen:
    """Logarithms of seconds per step: their number, mean, and summed squares of deviations."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    slot_size: float = 1.0
    """CPUs of one of the slots."""

    def add(self, log_s: float) -> None:
        self.count += 1
        change = log_s - self.mean
        self.mean += change / self.count
        self.squares += change * (log_s - self.mean)


class _Gain(NamedTuple):
    """Of more slots: twice as many are 2^mean times as fast."""

    mean: float
    sd: float


@dataclass
class JobLengths:
    """Derived from `RunView.settled` alone, so that it can be dropped and computed again at any time."""

    _read: int = 0
    _seen: dict[Where, _Seen] = field(default_factory=dict)

    @staticmethod
    def of(view: RunView) -> JobLengths:
        """All that the run has observed so far."""
        lengths = view.memo("job lengths", JobLengths)
        lengths._read_on(view)
        return lengths

    def tried(self, listing: Listing, slots: int) -> bool:
        return (listing.offer.machine, slots) in self._seen

    def step_time(self, listing: Listing, slots: int) -> StepTime | None:
        """Of one step of one more job on so many slots of such a machine. None until a job has finished somewhere."""
        seen = self._seen.get((listing.offer.machine, slots))
        if seen is not None:
            return StepTime(math.exp(seen.mean), self._spread())
        if not self._seen:
            return None
        slot_size = size_of(listing, 1)

        def larger_and_wider(where: Where) -> tuple[float, float]:
            return math.log(slot_size / self._seen[where].slot_size), math.log(slots / where[1])

        def distance(where: Where) -> tuple[float, bool]:
            larger, wider = larger_and_wider(where)
            return abs(larger) + abs(wider), where[0] != listing.offer.machine

        nearest = min(self._seen, key=distance)
        (larger, wider), gain = larger_and_wider(nearest), self._gain_of_slots()
        guess = math.hypot(self._spread(), PRIOR.of_machines, PRIOR.of_the_bend * larger, gain.sd * wider)
        return StepTime(math.exp(self._seen[nearest].mean - GAIN * larger - gain.mean * wider), guess)

    def _spread(self) -> float:
        """Standard deviation between jobs, on all machines together. With few jobs the prior dominates."""
        jobs = sum(seen.count for seen in self._seen.values())
        return math.sqrt((sum(seen.squares for seen in self._seen.values()) + PRIOR.of_trials**2) / jobs)

    def _gain_of_slots(self) -> _Gain:
        """From machine types on which jobs ran with several numbers of slots: linear regression of the logarithms,
        with a normal prior."""
        precision = PRIOR.of_the_bend**-2
        pull = GAIN * precision
        variance = self._spread() ** 2
        for _, wheres in groupby(sorted(self._seen), key=lambda where: where[0]):
            points = [
                (math.log(where[1]), seen.mean, 1 / (variance / seen.count + PRIOR.of_pairs**2))
                for where in wheres
                for seen in (self._seen[where],)
            ]
            weight = sum(w for _, _, w in points)
            middle = sum(w * x for x, _, w in points) / weight
            precision += sum(w * (x - middle) ** 2 for x, _, w in points)
            pull -= sum(w * (x - middle) * log_s for x, log_s, w in points)
        return _Gain(pull / precision, precision**-0.5)

    def _read_on(self, view: RunView) -> None:
        for settled in view.settled[self._read :]:
            if settled.status == "finished":
                for (machine, slots), pace in view.jobs[settled.job].paces.items():
                    if pace.steps and pace.seconds > 0:
                        seen = self._seen.setdefault((machine, slots), _Seen(slot_size=_slot_size(view, machine)))
                        seen.add(math.log(pace.seconds / pace.steps))
        self._read = len(view.settled)


def _slot_size(view: RunView, machine: str) -> float:
    return size_of(next(x for x in view.spec.listings if x.offer.machine == machine), 1)


def work_left_s(view: RunView, job_id: JobId, listing: Listing, slots: int) -> float | None:
    """Seconds of work that a job still needs there. One that runs longer than expected counts as needing a tenth of a
    step more: how much it really needs is unknown."""
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
