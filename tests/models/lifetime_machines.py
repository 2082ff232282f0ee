"""Synthetic machines with known lifetimes, some of them released early."""

from __future__ import annotations

import numpy as np

from shoestring.models.lifetimes.model import HOUR_S, LifetimeModel
from shoestring.models.lifetimes.records import LifetimeRecord, LifetimeRecords

H = HOUR_S


def machines(
    model: LifetimeModel, count: int, *, given_back_after_s: float = 12 * H, seed: int = 1, days: int = 20
) -> LifetimeRecords:
    """Sampled from a model; each is released at a random time up to twice `given_back_after_s`."""
    rng = np.random.default_rng(seed)
    lifetimes = model.quantile(rng.random(count))
    stops = rng.uniform(0.0, 2 * given_back_after_s, count)
    launches = rng.uniform(0.0, days * 24 * H, count)
    return LifetimeRecords.of(
        LifetimeRecord(
            seconds=min(life, stop), revoked=bool(life <= stop), launched_at=launch, limit_s=model.limit_s, machine="m"
        )
        for life, stop, launch in zip(lifetimes.tolist(), stops.tolist(), launches.tolist(), strict=True)
    )
