"""Constrained expected accuracy: how good a run is likely to be, and whether it is likely to keep the limits."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.incumbent import log_value
from shoestring.optimizer.joint_model import JointBeliefs
from shoestring.optimizer.observations import FULL


def cea(beliefs: JointBeliefs, fraction: float, rows: Rows | None = None) -> Numbers:
    """The predicted accuracy of a run times the chance that it keeps all limits, of these rows or of all candidates.

    Paper: TrimTuner Eq. 6
    Differs from the paper: objectives that are no accuracy have a value as well, one over a loss for example.
    """
    value: Numbers = np.exp(log_value(beliefs, beliefs.objective.at(fraction, rows).mean))
    return value * chance_kept(beliefs, fraction, rows)


def chance_kept(beliefs: JointBeliefs, fraction: float = FULL, rows: Rows | None = None) -> Numbers:
    """That a run keeps all limits, which count as independent, by the models alone."""
    count = len(beliefs.history.candidates) if rows is None else len(rows)
    chance = np.ones(count)
    for limit in beliefs.limits():
        ahead = limit.posterior.at(fraction, rows)
        level = limit.level if rows is None else limit.level[rows]
        room = (level - ahead.mean) / ahead.measured_deviation
        chance *= ndtr(room if limit.at_most else -room)
    return chance
