"""Lemma 1 and Figure 4 of the paper: do preemptions that must not overlap gather at the ends of the day?

N preemptions of w seconds each in [0, L], none overlapping, all places equally likely: a Tonks gas. The lemma says that
one begins at either end with density 1 / (L - N w), above the mean 1 / L.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.scispot_lives import DAY_S, Split
from shoestring.models.lifetimes.model import HOUR_S, Floats

PREEMPTIONS, TAKES_S = 100, 120.0
NEAR_S = 60.0


@dataclass(frozen=True)
class Ends:
    simulated: float
    """Density near both ends, as a multiple of 1 / L."""
    lemma: float
    real: float
    """Of real machines, in their first hour: preemptions before the limit, as a multiple of the mean over the day."""
    together: float
    """Share of real preemptions before the limit with another within a minute: the lemma has none."""


def begins_s(rng: np.random.Generator) -> Floats:
    """Exact: sorted uniform places in what is left free, each shifted by the preemptions before it."""
    free = np.sort(rng.uniform(0.0, DAY_S - PREEMPTIONS * TAKES_S, PREEMPTIONS))
    return free + TAKES_S * np.arange(PREEMPTIONS)


def ends(splits: list[Split], repeats: int) -> Ends:
    rng = np.random.default_rng(4)
    drawn = np.concatenate([begins_s(rng) for _ in range(repeats)])
    last = DAY_S - TAKES_S  # where one may begin at the latest
    near = np.mean(drawn < NEAR_S) + np.mean(drawn > last - NEAR_S)
    ages, gone_at = [], []
    for split in splits:
        seen = split.held_out
        ages.append(seen.seconds[seen.by_chance])
        gone_at.append((seen.launched_at + seen.seconds)[seen.by_chance])
    age, at = np.concatenate(ages), np.sort(np.concatenate(gone_at))
    at = at[np.isfinite(at)]
    gaps = np.diff(at)
    alone = np.concatenate(([np.inf], gaps)), np.concatenate((gaps, [np.inf]))
    return Ends(
        float(near / (2 * NEAR_S) * DAY_S),
        DAY_S / (DAY_S - PREEMPTIONS * TAKES_S),
        float(np.mean(age < HOUR_S) * 24),
        float(np.mean(np.minimum(*alone) < 60.0)),
    )
