"""Posteriors of the synthetic table after some runs, and after one more."""

from __future__ import annotations

import copy
import math

import numpy as np

from shoestring.optimizer.as_printed.gp import PrintedPosteriors
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.outcome_model import OutcomePosterior
from shoestring.optimizer.posterior import Posteriors
from tests.optimizer.synthetic import FRACTIONS, optimizer, run


def believed(runs: int = 12, kind: type[Posteriors] = Posteriors, **changes: object) -> Posteriors:
    """After this many runs of random configurations and fractions."""
    asked = optimizer(**changes)
    configs = asked._history().candidates.configs
    rng = np.random.default_rng(3)
    for row, fraction in zip(rng.integers(len(configs), size=runs), rng.choice(FRACTIONS, size=runs), strict=True):
        run(asked, Suggestion(configs[row], float(fraction)))
    return kind(asked._history(), {})


def printed(runs: int = 12, **changes: object) -> Posteriors:
    return believed(runs, PrintedPosteriors, **changes)


def after(posterior: OutcomePosterior, row: int, fraction: float, surprise: float) -> OutcomePosterior:
    """The same posterior, conditioned on a run of this row that measured so many deviations more than expected."""
    process, x = posterior._gp, posterior._candidates.x
    here = process.slice(process.near(x[[row]]), fraction)
    value = float(here.mean[0]) + surprise * math.sqrt(float(here.variance[0]) + here.noise)
    twin = copy.copy(posterior)
    twin._gp = process.condition_on(x[row], fraction, value)
    twin._near, twin._slices, twin._alike = None, {}, {}
    return twin
