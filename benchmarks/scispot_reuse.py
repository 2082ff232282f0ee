"""How often jobs fail, by reuse policy: the paper's Figures 5, 7, 8 and 9."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.scispot_lives import Split
from shoestring.models.lifetimes.groups import scaled
from shoestring.models.lifetimes.model import HOUR_S, Floats, LifetimeModel
from shoestring.models.lifetimes.reuse import printed_reuse_saves_s, reuse_saves_s
from shoestring.models.lifetimes.survival_table import SurvivalTable

SETUP_S = 120.0
LENGTHS_H = (0.25, 0.5, *map(float, range(1, 13)))
AGES_S = np.arange(0.0, 24.0, 0.25) * HOUR_S

Rule = Callable[[Split, float], Floats]
"""For a job of this length and every age of `AGES_S`: is the old machine used?"""


def _ours(split: Split, work_s: float) -> Floats:
    return reuse_saves_s(split.fitted, work_s, AGES_S, SETUP_S) >= 0


def _printed(split: Split, work_s: float) -> Floats:
    lifetimes = SurvivalTable.of(split.printed, until_s=24 * HOUR_S)
    return printed_reuse_saves_s(lifetimes, work_s, AGES_S) >= 0


def _with(model: Callable[[Split], LifetimeModel]) -> Rule:
    """Our rule on another model than the fitted one."""

    def rule(split: Split, work_s: float) -> Floats:
        lifetimes = SurvivalTable.of(model(split), until_s=24 * HOUR_S)
        return reuse_saves_s(lifetimes, work_s, AGES_S, SETUP_S) >= 0

    return rule


WRONG: dict[str, Rule] = {
    "ours, three times the hazard": _with(lambda split: scaled(split.saved.pooled, 3.0)),
    "ours, a third of the hazard": _with(lambda split: scaled(split.saved.pooled, 1 / 3)),
    "ours, Eq. 1 by least squares": _with(lambda split: split.printed),
}
"""The paper's Figure 9: what a badly fitted model costs."""
RULES: dict[str, Rule] = {
    "memoryless": lambda _, __: np.ones(len(AGES_S), dtype=bool),
    "age + job < 24 h": lambda _, work_s: AGES_S + work_s < 24 * HOUR_S,
    "Eq. 10 as printed": _printed,
    "ours": _ours,
    **WRONG,
}


def failures(splits: Sequence[Split], rule: Rule, hours: float) -> Floats:
    """By the age of the held machine: the share of jobs lost, on held-out machines."""
    work_s = hours * HOUR_S
    shares = []
    for split in splits:
        truth = SurvivalTable.of(split.truth, until_s=24 * HOUR_S)
        old, new = 1.0 - truth.reaches(work_s, AGES_S), 1.0 - float(truth.reaches(work_s))
        shares.append(np.where(rule(split, work_s), old, new))
    return np.mean(shares, axis=0)


def by_length(splits: Sequence[Split]) -> dict[str, dict[float, float]]:
    """Mean over the ages of machines."""
    return {name: {h: float(failures(splits, rule, h).mean()) for h in LENGTHS_H} for name, rule in RULES.items()}
