"""How long a step of a trial takes on a machine: a guess from the machine's size, then what trials reported.

The matrix M[machine][trial] of the paper. Most of its entries are never observed, for a trial runs on few machines. So
the model is linear in logarithms, each term with a normal prior:

    ln(step_s) = ln(guess) + all + core_gain * ln(CPUs of a slot) + (slot_gain + that of a width) * ln(slots) + machine
                 + trial + pair(trial, width on a machine) + noise

Every report then updates all of them, by as much as it is more precise than the prior: a trial observed on one machine
is known, nearly, on a machine that others were observed on, and one observed on two widths tells how all of them scale.
The posterior is exact (everything is normal), the same whatever the order of the reports, and has a variance.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, pstdev

from shoestring.kernel.records import Pace, Where
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import JobId, Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.apart import Apart
from shoestring.models.speed.evidence import Evidence, ReportsSoFar, TrialEvidence
from shoestring.models.speed.normal import cholesky, solved_backward, solved_forward, squared
from shoestring.models.speed.prior import STEP_S, SpeedPrior, StepTime, printed_prior_step_s, size_of

Row = tuple[tuple[int, float], ...]
"""Of a sparse vector: (column, value)."""
USUAL = SpeedPrior()


def coefficient_of_variation(step_s: Sequence[float]) -> float:
    """std / mean of the step times.  Paper: SpotTune section IV-A5."""
    return pstdev(step_s) / fmean(step_s)


def learned_speeds(view: RunView, prior: SpeedPrior = USUAL, listings: tuple[Listing, ...] | None = None) -> SpeedModel:
    """The speed model from the reports of a run so far; with `listings`, of what ran on those alone."""
    reports = view.memo(
        ("speeds", prior, listings),
        lambda: ReportsSoFar(
            Evidence(
                view.spec.listings if listings is None else listings, prior, view.spec.slots, _estimated_s(view.spec)
            )
        ),
    )
    reports.read_on(view)
    models: dict[object, SpeedModel] = view.memo("speed models", dict)
    known = models.get((prior, listings))
    if known is None or known.version != reports.evidence.version:
        known = models[prior, listings] = SpeedModel(reports.evidence)
    return known


def _estimated_s(spec: RunSpec) -> float | None:
    """A step of a job of a bag by the user's estimate of the whole job, on one slot of four CPUs."""
    return spec.job_takes_s / spec.max_steps if spec.job_takes_s else None


class SpeedModel:
    """M[machine][trial].  Paper: SpotTune Alg. 1 l.36.

    Differs from the paper: an entry is not overwritten by the last pace; all entries learn from every pace.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.version = evidence.version
        self._evidence, self._prior = evidence, evidence.prior
        wheres = evidence.wheres
        machines = sorted({machine for machine, _ in wheres})
        self._machine = {machine: 3 + index for index, machine in enumerate(machines)}
        wider = [where for where in wheres if where[1] != evidence.worker]
        self._width = {where: 3 + len(machines) + index for index, where in enumerate(wider)}
        self._wheres = frozenset(wheres)
        self._known: dict[Where, Row] = {}
        self._means: dict[Where, float] = {}
        self._guesses: dict[Where, float] = {}
        self._factor, self._mean = self._shared() if wheres else ([], [])
        self._medians: dict[tuple[JobId | None, Where], float] = {}
        self._times: dict[tuple[JobId | None, Where], StepTime] = {}

    @staticmethod
    def of(
        listings: Iterable[Listing],
        seen: Mapping[JobId, Mapping[Where, Pace]],
        prior: SpeedPrior = USUAL,
        worker: int = 1,
    ) -> SpeedModel:
        """From these paces alone."""
        evidence = Evidence(listings, prior, worker)
        evidence.update(seen)
        return SpeedModel(evidence)

    # -- what was seen -------------------------------------------------------------------------------------------------
    @property
    def trials(self) -> Mapping[JobId, TrialEvidence]:
        """Those that have reported a step."""
        return self._evidence.trials

    @property
    def estimated(self) -> bool:
        """Has the user said how long a job takes?"""
        return self._evidence.estimated

    @property
    def wheres(self) -> Iterable[Where]:
        """Where any trial was timed."""
        return sorted(self._wheres)

    @property
    def spread(self) -> float:
        """Between trials, standard deviation of the logarithm."""
        return self._evidence.spread

    @cached_property
    def usual_listing(self) -> Listing:
        """Of the machine type on which most trials were timed."""
        return self._evidence.usual_listing()

    def timed(self, machine: str, slots: int) -> bool:
        """Was any trial timed there?"""
        return (machine, slots) in self._wheres

    # -- posterior -----------------------------------------------------------------------------------------------------
    def step_time(self, job: JobId | None, listing: Listing, slots: int) -> StepTime:
        """Of this trial on so many slots of this machine; None is a future trial like the others."""
        key = job, (listing.offer.machine, slots)
        if key not in self._times:  # the same in every zone
            if self.trials:
                made = StepTime(self.median_s(job, listing, slots), self._log_sd(job, listing, slots))
            else:
                made = self._guess(listing, slots)
            self._times[key] = made
        return self._times[key]

    def median_s(self, job: JobId | None, listing: Listing, slots: int) -> float:
        """The same without its variance, which takes longer."""
        key = job, (listing.offer.machine, slots)
        if not self.trials:
            return self._guess(listing, slots).median_s
        if key not in self._medians:
            mean = self._mean_at(listing, slots)
            observed = None if job is None else self.trials.get(job)
            if observed is not None:
                listings = self._evidence.listings
                for (machine, width), log, weight in zip(
                    observed.wheres, observed.logs, self._weights(observed, key[1]), strict=True
                ):
                    mean += weight * (log - self._mean_at(listings[machine], width))
            self._medians[key] = self._guess_s(listing, slots) * math.exp(mean)
        return self._medians[key]

    def speedup(self, listing: Listing, slots: int) -> float:
        """How many times faster a trial is on so many slots than on those of one worker."""
        return self.median_s(None, listing, self._evidence.worker) / self.median_s(None, listing, slots)

    def usual_s(self, listing: Listing, slots: int) -> float:
        """Of a future trial. Before any was timed it is the guess: its median is far below that, because the guess
        may be far too low."""
        return self.median_s(None, listing, slots) if self.trials else self._evidence.guess_s(listing, slots)

    def apart(self, places: Sequence[tuple[Listing, int]], soon: Collection[Where] = ()) -> Apart:
        """How unsure it is by how much one of these places is faster than another."""
        return Apart(self._evidence, places, soon)

    def _untimed_variance(self, listing: Listing, slots: int) -> float:
        """Of what no trial was timed on."""
        prior, where = self._prior, (listing.offer.machine, slots)
        own = 0.0 if where[0] in self._machine else prior.of_machines**2
        wider = 0.0 if where in self._width else math.log(slots / self._evidence.worker)
        return own + (prior.of_widths * wider) ** 2

    def _guess(self, listing: Listing, slots: int) -> StepTime:
        """Before any trial was timed. The guess is the expected value, whatever its variance."""
        prior = self._prior
        if self.estimated:
            return StepTime(self._evidence.guess_s(listing, slots), 0.0)
        larger = math.log(size_of(listing, 1)) - self._evidence.middle
        wider = math.log(slots / self._evidence.worker)
        log_sd = math.hypot(
            prior.of_all,
            prior.of_core_gain * larger,
            prior.of_slot_gain * wider,
            prior.of_widths * wider,
            *(prior.of_machines, prior.of_trials, prior.of_pairs),
        )
        return StepTime(self._evidence.guess_s(listing, slots) * math.exp(-(prior.of_all**2) / 2), log_sd)

    def _log_sd(self, job: JobId | None, listing: Listing, slots: int) -> float:
        prior, where = self._prior, (listing.offer.machine, slots)
        own = self.spread**2 + prior.of_pairs**2 + self._untimed_variance(listing, slots)
        row = [0.0] * len(self._mean)
        for column, value in self._row(listing, slots):
            row[column] += value
        observed = None if job is None else self.trials.get(job)
        if observed is not None:
            listings = self._evidence.listings
            for (machine, width), weight in zip(observed.wheres, self._weights(observed, where), strict=True):
                own -= weight * self._covariance((machine, width) == where)
                for column, value in self._row(listings[machine], width):
                    row[column] -= weight * value
        return math.sqrt(max(0.0, own + squared(solved_forward(self._factor, row))))

    def _weights(self, observed: TrialEvidence, where: Where) -> list[float]:
        """By how much each of a trial's deviations from the others is its deviation there."""
        covariance = [self._covariance(seen == where) for seen in observed.wheres]
        return [sum(map(float.__mul__, row, covariance)) for row in observed.inverse]

    def _covariance(self, same: bool) -> float:
        """Of one trial's deviations, in the same place or in two."""
        return self.spread**2 + (self._prior.of_pairs**2 if same else 0.0)

    def _mean_at(self, listing: Listing, slots: int) -> float:
        where = (listing.offer.machine, slots)
        mean = self._means.get(where)
        if mean is None:
            mean = self._means[where] = sum(value * self._mean[column] for column, value in self._row(listing, slots))
        return mean

    def _guess_s(self, listing: Listing, slots: int) -> float:
        where = (listing.offer.machine, slots)
        guess = self._guesses.get(where)
        if guess is None:
            guess = self._guesses[where] = self._evidence.guess_s(listing, slots)
        return guess

    def _row(self, listing: Listing, slots: int) -> Row:
        """The regressors of a step there: all steps, CPUs, slots, and what was observed of machine and width."""
        where = (listing.offer.machine, slots)
        if where not in self._known:
            wider = math.log(slots / self._evidence.worker)
            row = [(0, 1.0), (1, math.log(size_of(listing, 1)) - self._evidence.middle), (2, wider)]
            if where[0] in self._machine:
                row.append((self._machine[where[0]], 1.0))
            if where in self._width:
                row.append((self._width[where], wider))
            self._known[where] = tuple(row)
        return self._known[where]

    def _shared(self) -> tuple[list[list[float]], list[float]]:
        """Posterior of the unknowns that all trials share: the factor of the precision, and the mean."""
        prior, evidence = self._prior, self._evidence
        spreads = [math.inf, prior.of_core_gain, prior.of_slot_gain]
        spreads += [prior.of_machines] * len(self._machine) + [prior.of_widths] * len(self._width)
        size = len(spreads)
        precision = [[0.0] * size for _ in range(size)]
        pull = [0.0] * size
        for column, spread in enumerate(spreads):
            precision[column][column] = spread**-2
        rows = {where: self._row(evidence.listings[where[0]], where[1]) for where in self.wheres}
        for one, row in rows.items():
            pulled = evidence.pulled(one)
            for column, value in row:
                pull[column] += value * pulled
            for other, other_row in rows.items():
                weight = evidence.precision(one, other)
                if weight:
                    for column, value in row:
                        for other_column, other_value in other_row:
                            precision[column][other_column] += weight * value * other_value
        factor = cholesky(precision)
        return factor, solved_backward(factor, solved_forward(factor, pull))


@dataclass(frozen=True)
class SpeedAsPrinted:
    """M as printed: the last pace of this trial on this machine, else C0 x CPU."""

    seen: Mapping[JobId, Mapping[Where, Pace]]
    cpu_seconds: float = STEP_S

    def step_time(self, job: JobId | None, listing: Listing, slots: int) -> StepTime:
        pace = self.seen.get(job, {}).get((listing.offer.machine, slots)) if job is not None else None
        if pace is None or pace.steps == 0:
            return StepTime(printed_prior_step_s(listing, slots, self.cpu_seconds), 0.0)
        return StepTime(pace.seconds / pace.steps, 0.0)
