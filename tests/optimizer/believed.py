"""Beliefs of the made-up table after some runs, and what they would be after one more."""

from __future__ import annotations

import copy
import math

import numpy as np

from shoestring.optimizer.as_printed.gp import PrintedBeliefs
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.outcome_model import OutcomePosterior
from shoestring.optimizer.posterior import Beliefs
from tests.optimizer.made_up import FRACTIONS, optimizer, run


def believed(runs: int = 12, kind: type[Beliefs] = Beliefs, **changes: object) -> Beliefs:
    """After this many runs of configurations and fractions drawn by lot."""
    asked = optimizer(**changes)
    configs = asked._history().candidates.configs
    rng = np.random.default_rng(3)
    for row, fraction in zip(rng.integers(len(configs), size=runs), rng.choice(FRACTIONS, size=runs), strict=True):
        run(asked, Suggestion(configs[row], float(fraction)))
    return kind(asked._history(), {})


def printed(runs: int = 12, **changes: object) -> Beliefs:
    return believed(runs, PrintedBeliefs, **changes)


def after(belief: OutcomePosterior, row: int, fraction: float, surprise: float) -> OutcomePosterior:
    """The same belief, told that a run of this row measured so many deviations more than expected."""
    process, x = belief._gp, belief._candidates.x
    here = process.slice(process.near(x[[row]]), fraction)
    value = float(here.mean[0]) + surprise * math.sqrt(float(here.variance[0]) + here.noise)
    twin = copy.copy(belief)
    twin._gp = process.told(x[row], fraction, value)
    twin._near, twin._slices, twin._alike = None, {}, {}
    return twin
