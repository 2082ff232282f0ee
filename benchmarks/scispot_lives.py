"""Real lifetimes of preemptible VMs, split so that models can be scored on machines they were not fitted on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import datasets
from shoestring.models.lifetimes.fit import fit
from shoestring.models.lifetimes.groups import scaled
from shoestring.models.lifetimes.kaplan_meier import KaplanMeier
from shoestring.models.lifetimes.model import HOUR_S, Floats, LifetimeModel
from shoestring.models.lifetimes.records import LifetimeRecords, read_lifetimes
from shoestring.models.lifetimes.saved import SavedLifetimes, fit_saved
from shoestring.models.lifetimes.scores import folds
from shoestring.models.lifetimes.survival_table import SurvivalTable

FILE = "google_preemptible*.csv*"
DAY_S = 24 * HOUR_S
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Split:
    """Models fitted on four fifths of the days, and the machines of the other fifth."""

    saved: SavedLifetimes
    printed: LifetimeModel
    """The paper's model by the paper's procedure."""
    held_out: LifetimeRecords

    @property
    def fitted(self) -> SurvivalTable:
        return SurvivalTable.of(self.saved.pooled, until_s=DAY_S)

    @property
    def truth(self) -> LifetimeModel:
        return self.truth_of(None)

    def truth_of(self, machine: str | None) -> LifetimeModel:
        """The Kaplan-Meier estimate of held-out machines; of one type, if given."""
        seen = self.held_out
        if machine is not None:
            seen = seen.pick(np.array([name == machine for name in seen.machine]))
        return KaplanMeier.of(seen.seconds, seen.revoked, seen.limit_s)

    def model_of(self, machine: str) -> LifetimeModel:
        return scaled(self.saved.pooled, self.saved.multiplier(machine))


def splits(count: int = FOLDS) -> Iterator[Split]:
    """Days stay together: preemptions of machines launched on one day are correlated."""
    path, *_ = datasets.files(FILE)
    datasets.announce("lifetimes", [path.name.split(".")[0]])
    seen = read_lifetimes(path)
    everyone = np.arange(len(seen))
    for part in folds(seen, FOLDS)[:count]:
        learned = seen.pick(np.setdiff1d(everyone, part))
        yield Split(fit_saved(learned), fit("bathtub_printed", learned), seen.pick(part))


class Draws:
    """Thousands of held-out lifetimes for replays: the same for every contestant."""

    def __init__(self, model: LifetimeModel, seed: int, count: int = 20_000) -> None:
        rng = np.random.default_rng(seed)
        grid = np.arange(0.0, DAY_S + 1.0, 30.0)
        gone = 1.0 - model.survival(grid)
        lifetimes: Floats = np.interp(rng.random(count), gone, grid)
        self._lives = np.sort(np.minimum(lifetimes, DAY_S))

    def older_than(self, rng: np.random.Generator, age_s: float) -> float:
        """The lifetime of a machine that has reached an age."""
        first = int(np.searchsorted(self._lives, age_s, side="right"))
        return DAY_S if first >= len(self._lives) else float(self._lives[rng.integers(first, len(self._lives))])
