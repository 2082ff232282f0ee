"""What a step costs on a machine that may be taken away: the number by which offers are compared.

The printed price forgets three things: a machine pays for its start before it trains, what was not saved is lost with
it, and nobody who dies before the first step has been cheap. Here dollars and steps of one stay are both expected
values, so a machine that is always taken away early has few dollars, and fewer steps.

Everything takes arrays: thousands of offers, trials and moments are looked at together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]

HOUR_S = 3600.0
LEAST_RATE = 1e-12
"""Per second. Below it nobody is ever taken away, and the formulas would divide by nothing."""


def printed_usd_per_step(step_s: ArrayLike, chance: ArrayLike, usd_per_hour: ArrayLike) -> Numbers:
    """`chance` is that of being taken away within the hour, which is then free.  Paper: SpotTune Eq. 2"""
    usd: Numbers = np.asarray(step_s, dtype=float) * printed_usd_of_an_hour(chance, usd_per_hour) / HOUR_S
    return usd


def printed_usd_of_an_hour(chance: ArrayLike, usd_per_hour: ArrayLike) -> Numbers:
    """Paper: SpotTune Eq. 1"""
    usd: Numbers = (1.0 - np.asarray(chance, dtype=float)) * np.asarray(usd_per_hour, dtype=float)
    return usd


def rate_per_s(chance: ArrayLike, within_s: float = HOUR_S) -> Numbers:
    """The constant rate at which machines are taken away, if this is the chance of it within so long."""
    rate: Numbers = -np.log1p(-np.clip(np.asarray(chance, dtype=float), 0.0, 1.0 - 1e-12)) / within_s
    return rate


@dataclass(frozen=True)
class Overheads:
    """Seconds that train nothing, on every machine alike, and what it is worth to lose none."""

    provision_s: float = 90.0
    """From asking for a machine to the grant: not billed."""
    start_s: float = 30.0
    """From the grant until the first step: the start of the program and the restore of its checkpoint."""
    save_s: float = 1.0
    every_s: float = 600.0
    """Of training between two saves."""
    saved_on_notice: bool = True
    """Does the notice leave time to save? If not, half of what lies between two saves is lost on average."""
    hour_usd: float = 0.0
    """What it is worth to the user to have a trial done an hour earlier. Where machines that are taken away are free,
    nothing else tells one that dies before its first step from one that lives."""

    @property
    def per_trained_s(self) -> float:
        """Paid seconds for each second of training, the saves included."""
        return 1.0 + self.save_s / self.every_s

    @property
    def lost_s(self) -> float:
        """Training that a revocation takes with it."""
        return 0.0 if self.saved_on_notice else self.every_s / 2.0


USUAL = Overheads()


def useful_s(rate: ArrayLike, stay_s: ArrayLike, overheads: Overheads, cut_s: ArrayLike = 0.0) -> Numbers:
    """Expected seconds of training that stay done, of one machine that is given back after `stay_s` at the latest. Of
    the step that it is in when it is taken away, `cut_s` were for nothing."""
    lam = np.maximum(np.asarray(rate, dtype=float), LEAST_RATE)
    stay = np.asarray(stay_s, dtype=float)
    trained = np.exp(-lam * overheads.start_s) * _expected_stay_s(lam, np.maximum(0.0, stay - overheads.start_s))
    taken_while_training = np.exp(-lam * overheads.start_s) - np.exp(-lam * np.maximum(stay, overheads.start_s))
    # somebody taken soon after the start has less to lose than half of an interval
    lost_s = np.maximum(np.asarray(cut_s, dtype=float), overheads.lost_s)
    lost = np.minimum(taken_while_training * lost_s, trained / 2.0)
    useful: Numbers = np.maximum(0.0, trained / overheads.per_trained_s - lost)
    return useful


def stay_usd(rate: ArrayLike, stay_s: ArrayLike, usd_per_hour: ArrayLike, refund_within_s: ArrayLike = 0.0) -> Numbers:
    """Expected bill of that machine. Whoever is taken away before `refund_within_s` pays nothing."""
    lam = np.maximum(np.asarray(rate, dtype=float), LEAST_RATE)
    stay = np.asarray(stay_s, dtype=float)
    free = np.minimum(np.asarray(refund_within_s, dtype=float), stay)
    # the mean of min(life, stay) where that is not refunded: whoever lives to the end of the free time pays it all
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
    """Expected dollars for a step that counts, over one stay on a machine: until the trial is done, the machine is
    taken away, or `at_most_s` are over. Infinite where no step would ever come of it. A step longer than `notice_s`
    cannot be finished after the notice: half of one is lost on average.  Paper: SpotTune Eq. 2, corrected

    Differs from the paper: dollars and steps are both expected over the whole stay, and nothing is free that is not
    refunded. In print a machine that is surely taken away within the hour costs nothing whatever it does, and wins.
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
    """The mean of min(life, stay), lives ending at a constant rate."""
    stay: Numbers = -np.expm1(-rate * stay_s) / rate
    return stay
