"""Constrained expected accuracy: how good a run is likely to be, and how likely it satisfies the constraints."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.incumbent import log_value
from shoestring.optimizer.joint_model import JointPosteriors
from shoestring.optimizer.observations import FULL


def cea(posteriors: JointPosteriors, fraction: float, rows: Rows | None = None) -> Numbers:
    """CEA(x, s) = A(x, s) * product over constraints i of P(q_i(x, s) satisfies i), of these rows or of all candidates.

    A is the predicted accuracy, s the data fraction.

    Paper: TrimTuner Eq. 6
    Differs from the paper: objectives that are no accuracy have a value as well, one over a loss for example.
    """
    value: Numbers = np.exp(log_value(posteriors, posteriors.objective.at(fraction, rows).mean))
    return value * chance_feasible(posteriors, fraction, rows)


def chance_feasible(posteriors: JointPosteriors, fraction: float = FULL, rows: Rows | None = None) -> Numbers:
    """product over constraints i of P(q_i(x, s) satisfies i): taken to be independent, by the models alone."""
    count = len(posteriors.history.candidates) if rows is None else len(rows)
    chance = np.ones(count)
    for constraint in posteriors.modelled_constraints():
        ahead = constraint.posterior.at(fraction, rows)
        level = constraint.level if rows is None else constraint.level[rows]
        room = (level - ahead.mean) / ahead.measured_deviation
        chance *= ndtr(room if constraint.at_most else -room)
    return chance
