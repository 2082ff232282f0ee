"""What trials have reported about their speed, as sums that are updated in place with every new pace.

The sums are whole numbers of tiny units. Subtracting a trial's old evidence and adding its new one then gives exactly
what a fresh count would give, in whatever order: the cached sums cannot drift from the derived ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shoestring.kernel.records import Pace, Where
from shoestring.kernel.types import JobId, Listing, SegmentId
from shoestring.kernel.view import RunView
from shoestring.models.speed.prior import CORE_GAIN, ESTIMATED_ON_CPUS, SpeedPrior, prior_step_s, size_of

_UNITS = 2**48
"""Finer than the precision of the inputs; Python integers do not overflow."""
MOST_GAIN = 1.2
"""Of more slots, for one trial. More than 1 is possible: its data may then fit into caches."""
LEAST_SPREAD = 0.02
"""Between trials: no two take exactly as long."""


class TrialEvidence(NamedTuple):
    """What one trial reported, as normal observations."""

    wheres: tuple[Where, ...]
    steps: tuple[float, ...]
    logs: tuple[float, ...]
    """ln(seconds per step / prior guess)."""
    inverse: tuple[tuple[float, ...], ...]
    """Of the covariance that the shared unknowns do not explain: the trial's own speed, pairs and noise."""


@dataclass(slots=True)
class _Sums:
    """Over the trials that were timed in one place."""

    trials: int = 0
    logs: int = 0
    squares: int = 0
    pull: int = 0
    """Of the inverse covariances times the logarithms."""


class Evidence:
    """Of all trials: each by itself, and sums of the inverse covariances and of those times the logarithms."""

    def __init__(
        self, listings: Iterable[Listing], prior: SpeedPrior, worker: int = 1, estimated_s: float | None = None
    ) -> None:
        """`worker`: slots of the trial that the prior's step time is of. `estimated_s`: in its place, an estimate
        of the user, of a step on one slot of four CPUs."""
        self.prior, self.worker = prior, worker
        self.estimated = estimated_s is not None
        self.listings = {listing.offer.machine: listing for listing in listings}
        sizes = [math.log(size_of(listing, 1)) for listing in self.listings.values()]
        self.middle = math.fsum(sizes) / max(1, len(sizes))
        """Mean logarithm of the CPUs of a slot: its gain is centred there, so that its uncertainty favours no end."""
        self._cpu_seconds = (
            prior.step_s * math.exp(CORE_GAIN * self.middle) * worker**prior.slot_gain
            if estimated_s is None
            else estimated_s * ESTIMATED_ON_CPUS**CORE_GAIN
        )
        self.trials: dict[JobId, TrialEvidence] = {}
        self.spread = prior.of_trials
        """Between trials, standard deviation of the logarithm."""
        self.version = 0
        """Grows whenever anything below changes."""
        self._sums: dict[Where, _Sums] = {}
        self._inverse: dict[tuple[Where, Where], int] = {}
        self._guesses: dict[Where, float] = {}

    @property
    def wheres(self) -> list[Where]:
        """Where any trial was observed, in a fixed order."""
        return sorted(where for where, sums in self._sums.items() if sums.trials)

    def usual_listing(self) -> Listing:
        """Of the machine type on which most trials were observed; until one was, of that nearest to the mean size."""
        on: Counter[str] = Counter()
        for (machine, _), sums in self._sums.items():
            on[machine] += sums.trials
        return min(
            self.listings.values(),
            key=lambda x: (-on[x.offer.machine], abs(math.log(size_of(x, 1)) - self.middle), x.offer.machine),
        )

    def guess_s(self, listing: Listing, slots: int) -> float:
        return prior_step_s(listing, slots, self._cpu_seconds, self.prior.slot_gain)

    def precision(self, one: Where, other: Where) -> float:
        return self._inverse.get((one, other), 0) / _UNITS

    def pulled(self, where: Where) -> float:
        return self._sums[where].pull / _UNITS

    def update(self, paces_of: Mapping[JobId, Mapping[Where, Pace]]) -> None:
        """Replace what is known of these trials. A changed spread between trials changes the weights of all."""
        for job, paces in paces_of.items():
            self._replace(job, self._read(paces))
        spread = self._learned_spread()
        if spread != self.spread:
            self.spread = spread
            for job, before in list(self.trials.items()):
                self._replace(job, before._replace(inverse=self._inverse_of(before.steps)))

    def _replace(self, job: JobId, now: TrialEvidence | None) -> None:
        before = self.trials.get(job)
        if now == before:
            return
        self.version += 1
        if before is not None:
            self._add(before, -1)
        if now is not None:
            self._add(now, 1)
            self.trials[job] = now
        else:
            del self.trials[job]

    def _add(self, observed: TrialEvidence, sign: int) -> None:
        units, wheres, logs = sign * _UNITS, observed.wheres, observed.logs
        for where, log, row in zip(wheres, logs, observed.inverse, strict=True):
            sums = self._sums.get(where)
            if sums is None:
                sums = self._sums[where] = _Sums()
            sums.trials += sign
            sums.logs += round(log * units)
            sums.squares += round(log * log * units)
            pull = 0.0
            for other, other_log, weight in zip(wheres, logs, row, strict=True):
                pull += weight * other_log
                self._inverse[where, other] = self._inverse.get((where, other), 0) + round(weight * units)
            sums.pull += round(pull * units)

    def _read(self, paces: Mapping[Where, Pace]) -> TrialEvidence | None:
        """None if the trial never ran on a machine of the listings."""
        wheres = tuple(where for where in sorted(paces) if where[0] in self.listings)
        if not wheres:
            return None
        steps = tuple(paces[where].steps for where in wheres)
        return TrialEvidence(wheres, steps, tuple(self._logs_of(wheres, paces)), self._inverse_of(steps))

    def _inverse_of(self, steps: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
        """Of diag(noise) + spread^2, written out: most trials ran on one machine, or two."""
        prior, own = self.prior, self.spread**2
        if len(steps) == 1:
            return ((1 / (prior.of_pairs**2 + prior.of_steps**2 / steps[0] + own),),)
        noise = [prior.of_pairs**2 + prior.of_steps**2 / each for each in steps]
        shared = own / (1 + own * math.fsum(1 / each for each in noise))
        return tuple(
            tuple((one == other) / noise[one] - shared / (noise[one] * noise[other]) for other in range(len(noise)))
            for one in range(len(noise))
        )

    def _logs_of(self, wheres: Iterable[Where], paces: Mapping[Where, Pace]) -> Iterator[float]:
        """Of one trial, narrowest first on each machine type. What would be a loss by more slots, or far more gain than
        slots, is a hiccup of the machine, not scaling."""
        first: dict[str, tuple[int, float]] = {}
        for where in wheres:
            (machine, slots), pace = where, paces[where]
            if where not in self._guesses:
                self._guesses[where] = self.guess_s(self.listings[machine], slots)
            log = math.log(pace.seconds / pace.steps / self._guesses[where])
            narrow, narrow_log = first.setdefault(machine, (slots, log))
            wider, gain = math.log(slots / narrow), self.prior.slot_gain
            yield min(narrow_log + gain * wider, max(narrow_log + (gain - MOST_GAIN) * wider, log))

    def _learned_spread(self) -> float:
        """From the deviations of trials that ran in the same place; the prior counts as one. Of few sizes, so that it
        rarely changes."""
        compared, squares = 1, self.prior.of_trials**2
        for sums in self._sums.values():
            if (trials := sums.trials) > 1:
                compared += trials - 1
                squares += (sums.squares * _UNITS * trials - sums.logs**2) / (trials * _UNITS**2)
        ratio = math.sqrt(squares / compared) / self.prior.of_trials
        return max(LEAST_SPREAD, self.prior.of_trials * 2 ** (round(2 * math.log2(max(ratio, 1e-6))) / 2))


class ReportsSoFar:
    """The evidence of a run, updated only for those trials whose paces may have changed: a study of ten thousand
    trials is evaluated thousands of times. A memo of the run's state, see `RunView.memo`."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._settled_read = 0
        self._running: dict[JobId, tuple[SegmentId, int]] = {}
        self._waiting: dict[JobId, float] = {}

    def read_on(self, view: RunView) -> None:
        """A pace grows while a segment is open, with every step, and is kept when it closes. The job then waits, or has
        settled since the last call, or was settled but still running at that time."""
        running = {segment.job: (segment.id, segment.step) for segment in view.segments.values()}
        paced = ((job, paces) for job in view.waiting if (paces := view.jobs[job].paces))
        waiting = {job: sum(pace.steps for pace in paces.values()) for job, paces in paced}
        changed = {job for job, _ in running.items() - self._running.items()}
        changed |= self._running.keys() - running.keys()
        changed |= {job for job, _ in waiting.items() - self._waiting.items()}
        changed |= {entry.job for entry in view.settled[self._settled_read :]}
        self._settled_read, self._running, self._waiting = len(view.settled), running, waiting
        if changed:
            self.evidence.update({job: view.paces(view.jobs[job]) for job in sorted(changed)})
