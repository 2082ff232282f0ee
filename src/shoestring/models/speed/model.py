"""How long a step of a trial takes on a machine: a guess from the machine's size, then what trials reported.

The matrix M[machine][trial] of the paper. Most of its entries are never observed, for a trial runs on few machines. So
the model is linear in logarithms, each term with a normal prior:

    ln(step_s) = ln(guess) + all + bend * ln(size) + machine + trial + pair(trial, machine) + noise

Every report then updates all of them, by as much as it is more precise than the prior: a trial observed on one machine
is known, nearly, on a machine that others were observed on. The posterior is exact (everything is normal), the same
whatever the order of the reports, and has a variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoestring.kernel.records import Pace
from shoestring.kernel.types import JobId, Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.evidence import Evidence, ReportsSoFar, TrialEvidence, Where, paces_of

Numbers = NDArray[np.floating[Any]]

GAIN = 0.7
"""Of more CPUs: twice as many are 2^0.7 times as fast. With 1, which few programs reach, all trials of a study would go
to the largest machines before any has been timed."""
CPUS_PER_GPU = 16.0
"""A guess, as good as any: machines of both kinds are seldom compared before one of each was observed."""


@dataclass(frozen=True)
class SpeedPrior:
    """Prior before any observation. Spreads are standard deviations of logarithms: 0.2 is a fifth."""

    cpu_seconds: float = 60.0
    """C0: expected seconds of a step on a single CPU."""
    of_all: float = 2.0
    """Vague: hardly anything is known of how long a step takes."""
    of_the_bend: float = 0.25
    """Twice the CPUs may be half the time, or hardly less: the paper's own Figure 6 is not linear."""
    of_machines: float = 0.2
    of_trials: float = 0.5
    """Batch size and width make steps of one study differ."""
    of_pairs: float = 0.05
    """That a machine suits one trial better than another."""
    of_steps: float = 0.1
    """Between steps of one trial on one machine: the most that the paper observed (section IV-A5)."""


class StepTime(NamedTuple):
    """Posterior of the seconds per step: log-normal, ln(s) ~ N(ln(median_s), log_sd^2)."""

    median_s: float
    log_sd: float

    @property
    def expected_s(self) -> float:
        """E[s] = median_s * exp(log_sd^2 / 2): an uncertain step time counts as longer."""
        return self.median_s * math.exp(self.log_sd**2 / 2)

    def at_most_s(self, sigmas: float = 2.0) -> float:
        """median_s * exp(sigmas * log_sd): an upper confidence bound."""
        return self.median_s * math.exp(sigmas * self.log_sd)


# -- prior -------------------------------------------------------------------------------------------------------------
def size_of(listing: Listing, slots: int) -> float:
    """CPUs of so many slots of a machine; on one with GPUs, the CPUs that its GPUs count for."""
    whole = CPUS_PER_GPU * listing.gpus if listing.gpus else listing.vcpus
    return max(whole, 1e-3) * slots / listing.slots


def prior_step_s(listing: Listing, slots: int, cpu_seconds: float) -> float:
    """Seconds per step on a machine without observations: C0 / CPU^0.7.  Paper: SpotTune Alg. 1 l.12.

    Differs from the paper: divided. M is in seconds per step, and larger machines are not the slower ones.
    """
    guess: float = cpu_seconds / size_of(listing, slots) ** GAIN
    return guess


def printed_prior_step_s(listing: Listing, slots: int, cpu_seconds: float) -> float:
    """The same as printed, C0 x CPU: small machines look fast.  Paper: SpotTune Alg. 1 l.12 as printed."""
    return cpu_seconds * size_of(listing, slots)


# -- posterior ---------------------------------------------------------------------------------------------------------
def coefficient_of_variation(step_s: Sequence[float]) -> float:
    """std / mean of the step times.  Paper: SpotTune section IV-A5."""
    return float(np.std(step_s) / np.mean(step_s))


def learned_speeds(view: RunView, prior: SpeedPrior | None = None) -> SpeedModel:
    """The speed model from the reports of a run so far. Call it once per decision, and only if it matters."""
    reader = _Reader(view.spec.listings, prior or SpeedPrior())
    reports = view.memo(("speeds", reader.prior), lambda: ReportsSoFar(reader.read))
    reports.read_on(view)
    return SpeedModel(view.spec.listings, _Reported(view), reader.prior, reports.evidence)


class _Reported(Mapping[JobId, Mapping[Where, Pace]]):
    """The paces of every trial of a run, computed on access."""

    def __init__(self, view: RunView) -> None:
        self._view = view

    def __getitem__(self, job: JobId) -> Mapping[Where, Pace]:
        return paces_of(self._view.jobs[job], self._view.segments)

    def __iter__(self) -> Iterator[JobId]:
        return iter(self._view.jobs)

    def __len__(self) -> int:
        return len(self._view.jobs)


class _Reader:
    """From paces to evidence, relative to the prior guess."""

    def __init__(self, listings: Iterable[Listing], prior: SpeedPrior) -> None:
        self.prior = prior
        self.listings = {listing.offer.machine: listing for listing in listings}

    def read(self, paces: Mapping[Where, Pace]) -> TrialEvidence | None:
        """None if the trial never ran on a machine of the listings."""
        prior, wheres = self.prior, tuple(where for where in sorted(paces) if where[0] in self.listings)
        if not wheres:
            return None
        noise = [prior.of_pairs**2 + prior.of_steps**2 / paces[where].steps for where in wheres]
        # The inverse of diag(noise) + of_trials^2, written out: most trials ran on one machine, or two.
        shared = prior.of_trials**2 / (1 + prior.of_trials**2 * math.fsum(1 / each for each in noise))
        inverse = tuple(
            tuple((one == other) / noise[one] - shared / (noise[one] * noise[other]) for other in range(len(noise)))
            for one in range(len(noise))
        )
        return TrialEvidence(wheres, tuple(self._log(where, paces[where]) for where in wheres), inverse)

    def guess_s(self, listing: Listing, slots: int) -> float:
        return prior_step_s(listing, slots, self.prior.cpu_seconds)

    def _log(self, where: Where, pace: Pace) -> float:
        machine, slots = where
        return math.log(pace.seconds / pace.steps / self.guess_s(self.listings[machine], slots))


class SpeedModel:
    """M[machine][trial].  Paper: SpotTune Alg. 1 l.36.

    Differs from the paper: an entry is not overwritten by the last pace; all entries learn from every pace.
    """

    def __init__(
        self,
        listings: Iterable[Listing],
        seen: Mapping[JobId, Mapping[Where, Pace]],
        prior: SpeedPrior | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        """`evidence`: the sums over `seen`, if they are known already."""
        self._prior = prior or SpeedPrior()
        self._reader = _Reader(listings, self._prior)
        self._seen = seen
        whole = [math.log(size_of(listing, listing.slots)) for listing in self._reader.listings.values()]
        # The bend is centred on the mean size of the listings, so that its uncertainty favours neither end.
        self._middle = math.fsum(whole) / max(1, len(whole))
        evidence = evidence or Evidence(filter(None, map(self._reader.read, seen.values())))
        self._column = {where: 2 + index for index, where in enumerate(evidence.wheres)}
        self._mean, self._covariance = self._shared(evidence)
        self._times: dict[tuple[JobId | None, Where], StepTime] = {}

    def step_time(self, job: JobId | None, listing: Listing, slots: int) -> StepTime:
        """Of this trial on so many slots of this machine; None is a future trial like the others."""
        key = job, (listing.offer.machine, slots)
        if key not in self._times:  # the same in every zone
            self._times[key] = self._step_time(job, listing, slots)
        return self._times[key]

    def _step_time(self, job: JobId | None, listing: Listing, slots: int) -> StepTime:
        prior, where = self._prior, (listing.offer.machine, slots)
        row, own = self._row(listing, slots), prior.of_trials**2 + prior.of_pairs**2
        if where not in self._column:
            own += prior.of_machines**2
        mean = float(row @ self._mean)
        observed = self._reader.read(self._seen[job]) if job is not None and job in self._seen else None
        if observed is not None:
            same_pair = np.array([prior.of_pairs**2 if seen == where else 0.0 for seen in observed.wheres])
            covariance = prior.of_trials**2 + same_pair
            weights, rows = np.array(observed.inverse) @ covariance, self._rows(observed.wheres)
            mean += float(weights @ (observed.logs - rows @ self._mean))
            own -= float(weights @ covariance)
            row = row - weights @ rows
        variance = own + float(row @ self._covariance @ row)
        return StepTime(self._reader.guess_s(listing, slots) * math.exp(mean), math.sqrt(max(variance, 0.0)))

    def _rows(self, wheres: Iterable[Where]) -> Numbers:
        listings = self._reader.listings
        return np.array([self._row(listings[machine], slots) for machine, slots in wheres])

    def _row(self, listing: Listing, slots: int) -> Numbers:
        """The regressors of a step there: all steps, the bend, and each machine observed."""
        row = np.zeros(2 + len(self._column))
        row[0], row[1] = 1.0, math.log(size_of(listing, slots)) - self._middle
        column = self._column.get((listing.offer.machine, slots))
        if column is not None:
            row[column] = 1.0
        return row

    def _shared(self, evidence: Evidence) -> tuple[Numbers, Numbers]:
        """Posterior of the unknowns that all trials share: mean and covariance."""
        prior = self._prior
        spreads = np.array([prior.of_all, prior.of_the_bend, *[prior.of_machines] * len(self._column)])
        precision, mean = np.diag(spreads**-2), np.zeros(len(spreads))
        mean[0] = -(prior.of_all**2) / 2  # so that the guess is the expected value, whatever its variance
        pull = precision @ mean
        if self._column:
            rows, (inverses, pulls) = self._rows(self._column), evidence.sums()
            precision += rows.T @ inverses @ rows
            pull += rows.T @ pulls
        covariance = np.linalg.inv(precision)
        return covariance @ pull, covariance


@dataclass(frozen=True)
class SpeedAsPrinted:
    """M as printed: the last pace of this trial on this machine, else C0 x CPU."""

    seen: Mapping[JobId, Mapping[Where, Pace]]
    cpu_seconds: float = 60.0

    def step_time(self, job: JobId | None, listing: Listing, slots: int) -> StepTime:
        pace = self.seen.get(job, {}).get((listing.offer.machine, slots)) if job is not None else None
        if pace is None or pace.steps == 0:
            return StepTime(printed_prior_step_s(listing, slots, self.cpu_seconds), 0.0)
        return StepTime(pace.seconds / pace.steps, 0.0)
