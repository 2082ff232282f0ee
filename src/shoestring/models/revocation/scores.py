"""How good are chances? Brier score and what it is worth, ranking, calibration; accuracy and F1 for comparison.

Accuracy and F1 follow the base rate: where 3 % are revoked, "never" is right 97 times in a hundred. Judge by skill.
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
    """Of saying the base rate of these very answers every time: nobody could have known it, so beating it counts."""
    skill: float
    """1 - brier / brier_of_base_rate: 1 is perfect, 0 as good as the base rate, below 0 worse."""
    auc: float
    """How often a machine that was taken away had the higher chance; NaN where all or none were."""
    calibration_error: float
    """How far chances and frequencies are apart on average, over ten bins of equally many answers."""
    accuracy: float
    f1: float

    @property
    def brier_ratio(self) -> float:
        return self.brier / self.brier_of_base_rate if self.brier_of_base_rate > 0 else float("nan")


def scores(chances: Floats, revoked: Flags) -> RevocationScores:
    base = float(revoked.mean())
    brier = float(np.mean((chances - revoked) ** 2))
    dull = base * (1.0 - base)
    said = chances >= 0.5
    hits, misses = int(np.sum(said & revoked)), int(np.sum(said != revoked))
    return RevocationScores(
        count=len(revoked),
        base_rate=base,
        brier=brier,
        brier_of_base_rate=dull,
        skill=1.0 - brier / dull if dull > 0 else float("nan"),
        auc=_auc(chances, revoked),
        calibration_error=float(sum(share * abs(said - seen) for share, said, seen in calibration(chances, revoked))),
        accuracy=float(np.mean(said == revoked)),
        f1=2 * hits / (2 * hits + misses) if hits else 0.0,
    )


def calibration(chances: Floats, revoked: Flags) -> list[tuple[float, float, float]]:
    """(share of the answers, mean chance, frequency) of each bin, from the least chances to the greatest."""
    order = np.argsort(chances, kind="stable")
    bins = [part for part in np.array_split(order, BINS) if len(part)]
    return [(len(part) / len(order), float(chances[part].mean()), float(revoked[part].mean())) for part in bins]


def _auc(chances: Floats, revoked: Flags) -> float:
    taken = int(revoked.sum())
    kept = len(revoked) - taken
    if not taken or not kept:
        return float("nan")
    ranks = rankdata(chances)
    return float((ranks[revoked].sum() - taken * (taken + 1) / 2) / (taken * kept))
