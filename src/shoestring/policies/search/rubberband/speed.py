"""How fast trials train on one instance type, and how that scales with their slots: a guess, then measurements.

The guess is a time per step and a power of the slots. A trial that trained on two widths shows almost exactly how they
compare; one that was only measured on a wide one is compared with other trials, from which it may differ by itself.
Each is weighted by its inverse variance, the guess too. Speed is assumed to grow with nearly one power of the slots: a
width that was measured often may differ from it, untried widths follow it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean, stdev

from shoestring.kernel.records import Job

ENOUGH = 4
"""Trials that must have been measured before their spread is used."""
LEAST_SPREAD = 0.02
OF_ITSELF = 0.03
"""How much the speed of one trial varies (standard deviation of the logarithm)."""
UNSURE = 0.2
"""Standard deviation of the power in the guess."""
BEND = 0.05
"""Standard deviation of the power of a single width around that of all."""


@dataclass(frozen=True)
class Guess:
    step_s: float = 60.0
    """One step of one worker."""
    scaling: float = 0.8
    """Twice the slots are 2 ** scaling times as fast."""
    spread: float = 0.2
    """Standard deviation of the step times of trials, relative to their mean."""


GUESS = Guess()


@dataclass(frozen=True)
class Speed:
    step_s: float
    scaling: float
    spread: float
    logs: tuple[tuple[int, float], ...] = ()
    """(workers, logarithm of the speed-up) of the measured widths, narrowest first."""
    slowest: float = 1.0
    """The step time of the slowest promoted trial, as a multiple of the mean."""

    def on(self, workers: int) -> float:
        """How much faster than one worker."""
        below, log = 1, 0.0
        for width, seen in self.logs:
            if width <= workers:
                below, log = width, seen
        return math.exp(log + self.scaling * math.log(workers / below))


def learned(jobs: Collection[Job], promoted: Collection[Job], machine: str, worker_slots: int, guess: Guess) -> Speed:
    """The speed on this instance type by the trials so far, combined with the guess where there is little data.

    The speed-up of wider trials is learned from all trials; the time of a step from the `promoted` ones, because good
    trials may be the slower ones.
    """
    seen = {job.id: by_workers for job in jobs if (by_workers := _step_logs(job, machine, worker_slots))}
    if not seen:
        return Speed(guess.step_s, guess.scaling, guess.spread)
    power, logs = _speedups(list(seen.values()), guess)
    alone = {job: fmean(log + logs[workers] for workers, log in by_workers.items()) for job, by_workers in seen.items()}
    theirs = [alone[job.id] for job in promoted if job.id in alone] or list(alone.values())
    step_s = fmean(map(math.exp, theirs))
    return Speed(
        step_s=step_s,
        scaling=power,
        spread=_spread(theirs if len(theirs) >= ENOUGH else list(alone.values()), guess),
        logs=tuple(logs.items()),
        slowest=math.exp(max(theirs)) / step_s if promoted else 1.0,
    )


def _step_logs(job: Job, machine: str, worker_slots: int) -> dict[int, float]:
    """For one trial on this machine: the logarithm of its seconds per step, by workers, fewest first."""
    return {
        slots // worker_slots: math.log(pace.seconds / pace.steps)
        for (where, slots), pace in sorted(job.paces.items())
        if where == machine and pace.steps and pace.seconds > 0
    }


def _speedups(seen: list[dict[int, float]], guess: Guess) -> tuple[float, dict[int, float]]:
    """The power of the slots with which speed grows, and the log speed-up of every measured width."""
    first = min(min(by_workers) for by_workers in seen)
    others = [by_workers[first] for by_workers in seen if first in by_workers]
    gains = [gain for by_workers in seen for gain in _gains(by_workers, first, fmean(others), _spread(others, guess))]
    powers = [(log / math.log(wide / narrow), sd / math.log(wide / narrow)) for narrow, wide, log, sd in gains]
    power = _weighted([(guess.scaling, UNSURE), *powers])
    found: dict[int, float] = {1: 0.0}
    for workers in sorted({workers for by_workers in seen for workers in by_workers} - {1}):
        expected = (power * math.log(workers), BEND * math.log(workers))
        shown = [(found[narrow] + log, sd) for narrow, wide, log, sd in gains if wide == workers]
        found[workers] = _weighted([expected, *shown])
    return power, found


def _gains(
    by_workers: dict[int, float], first: int, others: float, spread: float
) -> list[tuple[int, int, float, float]]:
    """The evidence of one trial: (narrow, wide, log speed-up, its standard deviation)."""
    narrow = min(by_workers)
    if narrow == first or len(by_workers) > 1:
        return [
            (narrow, wide, by_workers[narrow] - log, OF_ITSELF) for wide, log in by_workers.items() if wide > narrow
        ]
    return [(first, narrow, others - by_workers[narrow], spread)]


def _spread(logs: list[float], guess: Guess) -> float:
    return max(LEAST_SPREAD, stdev(logs) if len(logs) >= ENOUGH else guess.spread)


def _weighted(evidence: list[tuple[float, float]]) -> float:
    """The inverse-variance weighted mean of (value, standard deviation) pairs."""
    weights = [sd**-2 for _, sd in evidence]
    return sum(value * weight for (value, _), weight in zip(evidence, weights, strict=True)) / sum(weights)
