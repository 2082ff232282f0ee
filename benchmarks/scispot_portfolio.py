"""A portfolio of markets, as in ExoSphere: mean savings against their covariance.

Each market's return is the share of the on-demand price that it saves; risk is the covariance of these returns over
time. It uses prices alone: neither the speed of a job on a machine nor the preemption risk of a gang.
"""

from __future__ import annotations

import numpy as np

from shoestring.errors import SpecError
from shoestring.models.lifetimes.model import Floats

_ROUNDS = 500


def shares(returns: Floats, aversion: float = 1.0) -> Floats:
    """How much of the work each market gets: the shares that make mean - aversion x variance largest.

    `returns` has a row per moment and a column per market. Shares are not negative and sum to 1.
    """
    if returns.ndim != 2 or not len(returns) or not np.isfinite(returns).all():
        raise SpecError("returns of markets must be a table of numbers, a row per moment and a column per market")
    if not aversion >= 0:
        raise SpecError(f"aversion={aversion!r} to risk must be zero or more")
    mean = returns.mean(axis=0)
    deviations = returns - mean
    covariance = deviations.T @ deviations / len(returns)
    # Frank-Wolfe on the simplex: each round moves towards the best single market, as far as pays. No solver needed.
    weights = np.full(len(mean), 1.0 / len(mean))
    for _ in range(_ROUNDS):
        slope = mean - 2.0 * aversion * covariance @ weights
        towards = -weights
        towards[int(slope.argmax())] += 1.0
        gain = float(slope @ towards)
        if gain <= 1e-12:
            break
        bend = 2.0 * aversion * float(towards @ covariance @ towards)
        weights = weights + (1.0 if bend <= gain else gain / bend) * towards
    return weights
