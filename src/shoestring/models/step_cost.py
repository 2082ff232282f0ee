"""What a step costs on a preemptible machine: the number by which offers are compared.

The printed price ignores three things: start-up is paid before training begins, unsaved work is lost with the machine,
and a machine preempted before its first step is never cheap. Here dollars and steps of one stay are both expected
values, so a machine that is always preempted early costs few dollars, and trains fewer steps still.

Everything takes arrays: thousands of offers, trials and times are computed together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]

HOUR_S = 3600.0
LEAST_RATE = 1e-12
"""Per second. Below it a machine is never preempted, and the formulas would divide by zero."""


def printed_usd_per_step(step_s: ArrayLike, chance: ArrayLike, usd_per_hour: ArrayLike) -> Numbers:
    """usd = step_s * (1 - chance) * usd_per_hour / 3600; `chance`: preempted within the hour.  Paper: SpotTune Eq. 2"""
    usd: Numbers = np.asarray(step_s, dtype=float) * printed_usd_of_an_hour(chance, usd_per_hour) / HOUR_S
    return usd


def printed_usd_of_an_hour(chance: ArrayLike, usd_per_hour: ArrayLike) -> Numbers:
    """usd = (1 - chance) * usd_per_hour: a machine preempted within the hour is free.  Paper: SpotTune Eq. 1"""
    usd: Numbers = (1.0 - np.asarray(chance, dtype=float)) * np.asarray(usd_per_hour, dtype=float)
    return usd


def rate_per_s(chance: ArrayLike, within_s: float = HOUR_S) -> Numbers:
    """rate = -ln(1 - chance) / within_s: the constant preemption rate with this chance within `within_s`."""
    rate: Numbers = -np.log1p(-np.clip(np.asarray(chance, dtype=float), 0.0, 1.0 - 1e-12)) / within_s
    return rate


@dataclass(frozen=True)
class Overheads:
    """Seconds without training, the same on every machine, and what an hour is worth to the user."""

    provision_s: float = 90.0
    """From the request of a machine to the grant: not billed."""
    start_s: float = 30.0
    """From the grant until the first step: the start of the program and the restore of its checkpoint."""
    save_s: float = 1.0
    every_s: float = 600.0
    """Of training between two saves."""
    saved_on_notice: bool = True
    """Does the notice leave time to save? If not, half of what lies between two saves is lost on average."""
    hour_usd: float = 0.0
    """What it is worth to the user to have a trial done an hour earlier. Where preempted machines are free of charge,
    nothing else makes one that is preempted before its first step look worse than one that stays."""

    @property
    def per_trained_s(self) -> float:
        """Paid seconds for each second of training, the saves included."""
        return 1.0 + self.save_s / self.every_s

    @property
    def lost_s(self) -> float:
        """Training lost in a preemption."""
        return 0.0 if self.saved_on_notice else self.every_s / 2.0


USUAL = Overheads()


def useful_s(rate: ArrayLike, stay_s: ArrayLike, overheads: Overheads, cut_s: ArrayLike = 0.0) -> Numbers:
    """Expected seconds of training that are kept, on one machine that is released after `stay_s` at the latest. A
    preemption loses `cut_s` of the step under way."""
    lam = np.maximum(np.asarray(rate, dtype=float), LEAST_RATE)
    stay = np.asarray(stay_s, dtype=float)
    trained = np.exp(-lam * overheads.start_s) * _expected_stay_s(lam, np.maximum(0.0, stay - overheads.start_s))
    preempted_in_training = np.exp(-lam * overheads.start_s) - np.exp(-lam * np.maximum(stay, overheads.start_s))
    # a machine preempted soon after its start has less to lose than half an interval
    lost_s = np.maximum(np.asarray(cut_s, dtype=float), overheads.lost_s)
    lost = np.minimum(preempted_in_training * lost_s, trained / 2.0)
    useful: Numbers = np.maximum(0.0, trained / overheads.per_trained_s - lost)
    return useful


def stay_usd(rate: ArrayLike, stay_s: ArrayLike, usd_per_hour: ArrayLike, refund_within_s: ArrayLike = 0.0) -> Numbers:
    """Expected bill of that machine. It is free of charge if preempted before `refund_within_s`."""
    lam = np.maximum(np.asarray(rate, dtype=float), LEAST_RATE)
    stay = np.asarray(stay_s, dtype=float)
    free = np.minimum(np.asarray(refund_within_s, dtype=float), stay)
    # the mean of min(life, stay) where that is not refunded: a machine that outlives the free time pays for all of it
    paid = np.exp(-lam * free) * (free + _expected_stay_s(lam, stay - free))
    usd: Numbers = np.asarray(usd_per_hour, dtype=float) / HOUR_S * paid
    return usd


def usd_per_useful_step(
    step_s: ArrayLike,
    steps_left: ArrayLike,
    chance: ArrayLike,
    usd_per_hour: ArrayLike,
    *,
    refund_within_s: ArrayLike = 0.0,
    at_most_s: ArrayLike = np.inf,
    notice_s: ArrayLike = np.inf,
    overheads: Overheads = USUAL,
) -> Numbers:
    """usd = E[dollars of a stay] / E[steps kept in it]; a stay lasts until the trial is done, the machine is preempted,
    or `at_most_s` are over. Infinite where no step would ever be kept. A step longer than `notice_s` cannot be
    finished after the notice: half of one is lost on average.  Paper: SpotTune Eq. 2, corrected

    Differs from the paper: dollars and steps are both expected over the whole stay, and nothing is free that is not
    refunded. In print a machine that is surely preempted within the hour costs nothing, whatever it does, and wins.
    """
    seconds = np.asarray(step_s, dtype=float)
    to_do_s = overheads.start_s + seconds * np.asarray(steps_left, dtype=float) * overheads.per_trained_s
    stay = np.minimum(to_do_s, at_most_s)
    rate = rate_per_s(chance)
    cut_s = np.where(seconds > np.asarray(notice_s, dtype=float), seconds / 2.0, 0.0)
    steps = useful_s(rate, stay, overheads, cut_s) / seconds
    waited_s = overheads.provision_s + _expected_stay_s(np.maximum(rate, LEAST_RATE), stay)
    usd = stay_usd(rate, stay, usd_per_hour, refund_within_s) + overheads.hour_usd / HOUR_S * waited_s
    with np.errstate(divide="ignore", invalid="ignore"):
        price: Numbers = np.where(steps > 0.0, usd / steps, np.inf)
    return price


def _expected_stay_s(rate: Numbers, stay_s: Numbers) -> Numbers:
    """E[min(life, stay)] = (1 - exp(-rate * stay)) / rate, at a constant preemption rate."""
    stay: Numbers = -np.expm1(-rate * stay_s) / rate
    return stay
