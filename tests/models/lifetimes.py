"""Lifetimes of machines, for tests of what is built on lifetime models."""

from __future__ import annotations

import math

import numpy as np

from shoestring.models.lifetimes.families import Weibull

HOUR_S = 3600.0
YOUNG_DIE_FIRST = Weibull(scale_s=197 * HOUR_S, shape=0.33, limit_s=24 * HOUR_S)
"""Like Google's preemptible machines."""


def life_s(rng: np.random.Generator, older_than_s: float = 0.0) -> float:
    """The lifetime of one such machine that has reached an age: sampled here, independently of the code under test."""
    lived = (older_than_s / YOUNG_DIE_FIRST.scale_s) ** YOUNG_DIE_FIRST.shape + rng.exponential()
    return min(YOUNG_DIE_FIRST.scale_s * lived ** (1 / YOUNG_DIE_FIRST.shape), YOUNG_DIE_FIRST.limit_s or math.inf)
