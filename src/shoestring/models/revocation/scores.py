"""How good are predicted chances? Brier score and skill, AUC, calibration; accuracy and F1 for comparison.

Accuracy and F1 follow the base rate: where 3 % are revoked, "never" is right 97 times in a hundred. Compare by skill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from shoestring.models.revocation.price_arrays import Flags, Floats

BINS = 10


@dataclass(frozen=True)
class RevocationScores:
    count: int
    base_rate: float
    brier: float
    brier_of_base_rate: float
    """Of predicting the base rate of these very labels every time: it is not known beforehand, so beating it counts."""
    skill: float
    """1 - brier / brier_of_base_rate: 1 is perfect, 0 as good as the base rate, below 0 worse."""
    auc: float
    """P(a revoked machine had a higher chance than one that was not); NaN where all or none were revoked."""
    calibration_error: float
    """Mean |chance - frequency| over ten bins of equally many queries."""
    accuracy: float
    f1: float


def scores(chances: Floats, revoked: Flags) -> RevocationScores:
    base = float(revoked.mean())
    brier = float(np.mean((chances - revoked) ** 2))
    of_base_rate = base * (1.0 - base)
    predicted = chances >= 0.5
    hits, misses = int(np.sum(predicted & revoked)), int(np.sum(predicted != revoked))
    return RevocationScores(
        count=len(revoked),
        base_rate=base,
        brier=brier,
        brier_of_base_rate=of_base_rate,
        skill=1.0 - brier / of_base_rate if of_base_rate > 0 else float("nan"),
        auc=_auc(chances, revoked),
        calibration_error=float(sum(share * abs(mean - seen) for share, mean, seen in calibration(chances, revoked))),
        accuracy=float(np.mean(predicted == revoked)),
        f1=2 * hits / (2 * hits + misses) if hits else 0.0,
    )


def calibration(chances: Floats, revoked: Flags) -> list[tuple[float, float, float]]:
    """(share of the queries, mean chance, frequency) of each bin, by ascending chance."""
    order = np.argsort(chances, kind="stable")
    bins = [part for part in np.array_split(order, BINS) if len(part)]
    return [(len(part) / len(order), float(chances[part].mean()), float(revoked[part].mean())) for part in bins]


def _auc(chances: Floats, revoked: Flags) -> float:
    positives = int(revoked.sum())
    negatives = len(revoked) - positives
    if not positives or not negatives:
        return float("nan")
    ranks = rankdata(chances)
    return float((ranks[revoked].sum() - positives * (positives + 1) / 2) / (positives * negatives))
