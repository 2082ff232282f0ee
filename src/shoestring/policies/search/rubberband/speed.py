"""How fast the trials of a stage train on one machine type: what a plan needs of `models.speed`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from statistics import fmean, stdev

from shoestring.kernel.records import Job
from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import learned_speeds
from shoestring.models.speed.prior import SLOT_GAIN, STEP_S, SpeedPrior

ENOUGH = 4
"""Trials that must have been measured before their spread is used."""
LEAST_SPREAD = 0.02


@dataclass(frozen=True)
class Guess:
    step_s: float = STEP_S
    """One step of one worker."""
    scaling: float = SLOT_GAIN
    """Twice the slots are 2 ** scaling times as fast."""
    spread: float = 0.2
    """Standard deviation of the step times of trials, relative to their mean."""

    @property
    def prior(self) -> SpeedPrior:
        return SpeedPrior(step_s=self.step_s, slot_gain=self.scaling, of_trials=max(LEAST_SPREAD, self.spread))


GUESS = Guess()


@dataclass(frozen=True)
class Speed:
    step_s: float
    """One step of one worker, mean of the trials."""
    on: Callable[[int], float]
    """How much faster so many workers are than one."""
    spread: float
    slowest: float = 1.0
    """The step time of the slowest promoted trial, as a multiple of the mean."""


def guessed(guess: Guess) -> Speed:
    return Speed(guess.step_s, lambda workers: workers**guess.scaling, guess.spread)


def learned(state: RunView, promoted: Collection[Job], listing: Listing, guess: Guess) -> Speed:
    """The speed on this machine type by the trials so far; the guess, until one was timed there.

    The speed-up of wider trials is learned from all trials; the time of a step from the `promoted` ones, because good
    trials may be the slower ones.
    """
    model, worker = learned_speeds(state, guess.prior, (listing,)), state.spec.slots
    if not model.trials:
        return guessed(guess)
    alone = {job: model.median_s(job, listing, worker) for job in model.trials}
    theirs = [alone[job.id] for job in promoted if job.id in alone] or list(alone.values())
    step_s = fmean(theirs)
    return Speed(
        step_s,
        lambda workers: model.speedup(listing, workers * worker),
        _spread(theirs if len(theirs) >= ENOUGH else list(alone.values()), guess),
        max(theirs) / step_s if promoted else 1.0,
    )


def _spread(step_s: list[float], guess: Guess) -> float:
    return max(LEAST_SPREAD, stdev(map(math.log, step_s)) if len(step_s) >= ENOUGH else guess.spread)
