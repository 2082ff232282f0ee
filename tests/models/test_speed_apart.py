"""How unsure it is by how much one place is faster than another, and what one more job would tell."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoestring.kernel.records import Pace
from shoestring.kernel.types import JobId, Listing, Offer
from shoestring.models.speed.model import SpeedModel
from shoestring.models.speed.prior import SpeedPrior


def listing(machine: str, vcpus: float) -> Listing:
    offer = Offer(provider="aws", zone="a", machine=machine, spot=True)
    return Listing(offer=offer, vcpus=vcpus, memory_gb=8, on_demand_usd_per_hour=0.1 * vcpus)


SMALL, LARGE = listing("small", 2), listing("large", 16)
BOTH = [(SMALL, 1), (LARGE, 1)]
S, L = ("small", 1), ("large", 1)
PRIOR = SpeedPrior()


def test_before_anything_is_timed_it_is_the_priors_gain_by_size_and_both_machines() -> None:
    apart = SpeedModel.of([SMALL, LARGE], {}).apart(BOTH)
    by_hand = math.hypot(PRIOR.of_core_gain * math.log(8), PRIOR.of_machines, PRIOR.of_machines)
    assert apart.log_sd(L, S) == pytest.approx(by_hand)
    assert apart.log_sd(S, S) == 0.0


def test_what_will_be_timed_soon_counts_as_an_observation() -> None:
    """By brute force: the posterior of u = (all, gain, small, large) after one observation of each place."""
    model = SpeedModel.of([SMALL, LARGE], {})
    rows = np.array([[1, -math.log(8) / 2, 1, 0], [1, math.log(8) / 2, 0, 1]])
    spreads = np.array([PRIOR.of_all, PRIOR.of_core_gain, PRIOR.of_machines, PRIOR.of_machines])
    precision = np.diag(spreads**-2.0)
    noise = PRIOR.of_trials**2 + PRIOR.of_pairs**2 + PRIOR.of_steps**2
    after = np.linalg.inv(precision + rows.T @ rows / noise)
    difference = rows[1] - rows[0]
    by_hand = math.sqrt(difference @ after @ difference)
    assert model.apart(BOTH, soon={S, L}).log_sd(L, S) == pytest.approx(by_hand)


def test_what_one_more_job_would_tell_is_the_variance_that_it_removes() -> None:
    model = SpeedModel.of([SMALL, LARGE], {JobId("j0"): {S: Pace(1, 60.0)}})
    before, after = model.apart(BOTH), model.apart(BOTH, soon={L})
    removed = before.log_sd(L, S) ** 2 - after.log_sd(L, S) ** 2
    assert before.log_sd_learned(L, S) == pytest.approx(math.sqrt(removed))


def test_with_every_job_timed_there_is_less_to_learn() -> None:
    timed = {JobId(f"j{n}"): {(S if n % 2 else L): Pace(1, 60.0)} for n in range(12)}
    few = SpeedModel.of([SMALL, LARGE], dict(list(timed.items())[:4])).apart(BOTH)
    many = SpeedModel.of([SMALL, LARGE], timed).apart(BOTH)
    assert many.log_sd_learned(L, S) < few.log_sd_learned(L, S) < few.log_sd(L, S)
