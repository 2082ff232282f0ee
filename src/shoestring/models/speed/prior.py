"""What is assumed about the speed of trials before any was timed: one guess, for every policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from shoestring.kernel.types import Listing

STEP_S = 60.0
"""Of one worker, on a machine of the mean size on offer."""
CORE_GAIN = 0.7
"""Of more CPUs in a slot: twice as many are 2^0.7 times as fast. With 1, which few programs reach, all trials of a
study would go to the largest machines before any has been timed."""
SLOT_GAIN = 0.8
"""Of more slots: data-parallel training loses a little to communication at every doubling."""
ESTIMATED_ON_CPUS = 4.0
"""The CPUs of a slot for which users estimate how long a job takes."""
CPUS_PER_GPU = 16.0
"""A guess, as good as any: machines of both kinds are seldom compared before one of each was observed."""


@dataclass(frozen=True)
class SpeedPrior:
    """Spreads are standard deviations of logarithms: 0.2 is a fifth."""

    step_s: float = STEP_S
    slot_gain: float = SLOT_GAIN
    of_all: float = 2.0
    """Vague: hardly anything is known of how long a step takes. Once one was timed, only ratios of guesses count."""
    of_core_gain: float = 0.25
    """Twice the CPUs may be half the time, or hardly less: the paper's own Figure 6 is not linear."""
    of_slot_gain: float = 0.25
    of_machines: float = 0.2
    """Of a machine type, around what its size suggests."""
    of_widths: float = 0.05
    """Of the slot gain of one width on one machine type, around that of all."""
    of_trials: float = 0.5
    """Batch size and width make steps of one study differ. By how much is learned: this counts as one trial."""
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


def size_of(listing: Listing, slots: int) -> float:
    """CPUs of so many slots of a machine; on one with GPUs, the CPUs that its GPUs count for."""
    whole = CPUS_PER_GPU * listing.gpus if listing.gpus else listing.vcpus
    return max(whole, 1e-3) * slots / listing.slots


def prior_step_s(listing: Listing, slots: int, cpu_seconds: float, slot_gain: float = SLOT_GAIN) -> float:
    """Seconds per step on a machine without observations: C0 / (CPU^0.7 x slots^0.8), with the CPUs of one slot.
    Paper: SpotTune Alg. 1 l.12.

    Differs from the paper: divided. M is in seconds per step, and larger machines are not the slower ones.
    """
    guess: float = cpu_seconds / size_of(listing, 1) ** CORE_GAIN / slots**slot_gain
    return guess


def printed_prior_step_s(listing: Listing, slots: int, cpu_seconds: float) -> float:
    """The same as printed, C0 x CPU: small machines look fast.  Paper: SpotTune Alg. 1 l.12 as printed."""
    return cpu_seconds * size_of(listing, slots)
