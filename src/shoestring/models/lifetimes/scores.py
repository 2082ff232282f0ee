"""How good is a lifetime model? Scored by cross-validation, on held-out machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoestring.errors import SpecError
from shoestring.models.lifetimes.fit import DEADLINE_WINDOW_S, log_likelihoods
from shoestring.models.lifetimes.kaplan_meier import product_limit
from shoestring.models.lifetimes.model import Floats, LifetimeModel
from shoestring.models.lifetimes.records import LifetimeRecords

DAY_S = 86400.0

Learner = Callable[[LifetimeRecords], LifetimeModel]


@dataclass(frozen=True)
class LifetimeScores:
    log_likelihood: float
    """Mean over machines, in nats: higher is better."""
    ks: float
    """Kolmogorov-Smirnov: the largest distance between predicted and observed cdf; 0 is perfect."""
    each: Floats
    """The log-likelihood of every machine, for differences between models."""


def folds(seen: LifetimeRecords, count: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Machines in so many folds of about equal size. Those launched on one day stay together: their lifetimes are
    correlated, and a model fitted to some of them would have an advantage on the others."""
    days = np.floor(seen.launched_at / DAY_S)
    alone = -1.0 - np.arange(len(seen))
    groups = np.where(np.isnan(days), alone, days)
    if len(np.unique(groups)) < count:
        groups = alone
    if len(seen) < count:
        raise SpecError(f"{len(seen)} machines cannot be split into {count} folds", hint="choose fewer with --folds")
    rng = np.random.default_rng(seed)
    names, sizes = np.unique(groups, return_counts=True)
    order = rng.permutation(len(names))
    parts: list[list[float]] = [[] for _ in range(count)]
    held = np.zeros(count)
    for at in sorted(order.tolist(), key=lambda at: -sizes[at]):
        smallest = int(np.argmin(held))
        parts[smallest].append(float(names[at]))
        held[smallest] += sizes[at]
    return [np.flatnonzero(np.isin(groups, part)) for part in parts]


def cross_validated(learn: Learner, seen: LifetimeRecords, parts: list[NDArray[np.int64]]) -> LifetimeScores:
    """Each fold is predicted by a model fitted to the others."""
    each = np.zeros(len(seen))
    gone, before = np.zeros(len(seen)), np.zeros(len(seen))
    for model, part in _held_out(learn, seen, parts):
        test = seen.pick(part)
        each[part] = log_likelihoods(model, test)
        gone[part], before[part] = _predicted(model, test)
    return LifetimeScores(float(each.mean()), ks_of_shares(gone, before, seen.revoked), each)


def _predicted(model: LifetimeModel, seen: LifetimeRecords) -> tuple[Floats, Floats]:
    """The cdf at the age at which each machine ended, and just before. As in the likelihood, the hour from the limit on
    counts as one point: a model with its step at the limit and one that rises within the hour are both right."""
    if seen.limit_s is None:
        return model.cdf(seen.seconds), 1.0 - model.reached(seen.seconds)
    ages = np.minimum(seen.seconds, seen.limit_s)
    gone = np.where(seen.at_limit, model.cdf(seen.limit_s + DEADLINE_WINDOW_S), 1.0 - model.reached(ages))
    return gone, 1.0 - model.reached(ages)


def ks_of_shares(gone: Floats, before: Floats, revoked: NDArray[np.bool_]) -> float:
    """ks = max |F_observed(u) - u| over u = F(age at the end): u is uniform if the model is true.

    `gone` is the predicted cdf of each machine at the age at which it ended, `before` the same without a step at that
    very age. Machines that were not preempted are censored (Kaplan-Meier): their u is at least this. So machines
    predicted by different models can be scored together.
    """
    shares, alive = product_limit(gone, revoked)
    seen_after, seen_before = 1.0 - alive, 1.0 - np.concatenate(([1.0], alive[:-1]))
    predicted_before = np.array([before[revoked & (gone == share)].mean() for share in shares])
    return float(max(np.abs(seen_after - shares).max(), np.abs(seen_before - predicted_before).max()))


def _held_out(
    learn: Learner, seen: LifetimeRecords, parts: list[NDArray[np.int64]]
) -> Iterator[tuple[LifetimeModel, NDArray[np.int64]]]:
    all_rows = np.arange(len(seen))
    for part in parts:
        yield learn(seen.pick(np.setdiff1d(all_rows, part))), part
