"""All that is believed after a history: how good each candidate is, what it costs, and whether it keeps every limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.gp.kernel import KernelParameters
from shoestring.optimizer.history import Flags, History
from shoestring.optimizer.joint_model import Limit
from shoestring.optimizer.observations import FULL, Observation
from shoestring.optimizer.outcome_model import ERROR, METRIC, SPENDING, OutcomeData, OutcomePosterior, Trend
from shoestring.optimizer.transforms import Transform, metric_scale, objective_scale
from shoestring.space.constraints import COST, SECONDS, Constraint, ends

OBJECTIVE = "objective"
HOUR_S = 3600.0
LEAST_SPENT = 1e-9
"""Seconds or dollars below this are taken for it: a run that is said to have taken no time has no logarithm."""
LARGEST_LOG = 700.0
"""No larger number has an exponential that is one."""
_LOG = Transform(True, floor=LEAST_SPENT)


@dataclass(frozen=True)
class OutcomeModels:
    """How the objective, what is spent and other metrics are modelled."""

    objective_scale: Callable[[Numbers, bool], Transform] = objective_scale
    objective: Trend = ERROR
    spending: Trend = SPENDING
    metric: Trend = METRIC


class Beliefs:
    """One belief for each quantity that counts, fitted to all that was told; runs under way count as expected."""

    kinds = OutcomeModels()

    def __init__(self, history: History, starts: Mapping[str, KernelParameters]) -> None:
        self.history = history
        self._starts = starts
        self._spending = _spending_name(history)
        names = {self._spending, *(self._quantity_of(constraint) for constraint in history.problem.constraints)}
        self._of: dict[str, OutcomePosterior] = {}
        self.objective = self._objective()
        for name in sorted(name for name in names if name is not None):
            belief = self._spent(name) if name in (SECONDS, COST) else self._metric(name)
            if belief is not None:
                self._of[name] = belief
        for row, fraction in history.pending:
            for belief in (self.objective, *self._of.values()):
                belief.expecting(row, fraction)

    @property
    def shapes(self) -> dict[str, KernelParameters]:
        """Hyper-parameters, from which the next fit begins."""
        return {OBJECTIVE: self.objective.shape, **{name: belief.shape for name, belief in self._of.items()}}

    def expected_cost(self, fraction: float, rows: Rows | None = None) -> Numbers:
        """Of a run of each candidate: dollars, or seconds where nothing is known of dollars, or just the fraction.

        The mean of a lognormal, not its median: a run that may cost very much is one to be careful with. On a part of
        the data that is not so: there it is given up in time.
        """
        belief = self._of.get(self._spending or "")
        if belief is None:
            return np.full(len(self.history.candidates) if rows is None else len(rows), fraction)
        spent, most = belief.at(fraction, rows), self._most(fraction, rows)
        deviation = spent.measured_deviation
        amount: Numbers = np.exp(np.minimum(spent.mean + 0.5 * deviation**2, LARGEST_LOG))
        if most is not None:
            room = (np.log(most) - spent.mean) / deviation
            amount = amount * ndtr(room - deviation) + most * ndtr(-room)
        return amount * self._unit_price(rows)

    def median_cost(self, fraction: float) -> Numbers:
        """Of a run of each candidate that nobody ends, which is known much sooner than the mean."""
        belief = self._of.get(self._spending or "")
        if belief is None:
            return np.full(len(self.history.candidates), fraction)
        median: Numbers = np.exp(belief.mean_at(fraction))
        return median * self._unit_price(None)

    def least_expected_cost(self, fraction: float) -> Numbers:
        """No more than `expected_cost`: the median of the lognormal. Where runs are given up, half of it or of their
        end, for half of them take as much as the median or get to their end."""
        median, most = self.median_cost(fraction), self._most(fraction, None)
        return median if most is None else 0.5 * np.minimum(median, most * self._unit_price(None))

    def _most(self, fraction: float, rows: Rows | None) -> Numbers | None:
        """What a run on a part of the data takes before it is given up, in what spending is learned from."""
        end_at = ends(self.history.problem.constraints, fraction) if fraction < FULL else {}
        if self.history.usd_per_hour is None:
            alone = end_at.get(self._spending or "")
            return None if alone is None else np.array(max(alone, LEAST_SPENT))
        seconds = np.minimum(end_at.get(SECONDS, math.inf), end_at.get(COST, math.inf) / self._unit_price(rows))
        return np.maximum(seconds, LEAST_SPENT) if end_at else None

    def _unit_price(self, rows: Rows | None) -> Numbers | float:
        """Dollars of a second, or 1 where nothing is known of prices."""
        if self.history.usd_per_hour is None:
            return 1.0
        price: Numbers = self.history.usd_per_hour if rows is None else self.history.usd_per_hour[rows]
        return price / HOUR_S

    def spent(self, seen: Observation) -> float:
        """On a run, in the unit of `expected_cost`; nothing if nobody knows."""
        if self._spending is None:
            return seen.fraction
        amount = seen.cost if self.history.usd_per_hour is not None else seen.metrics[self._spending]
        return 0.0 if math.isnan(amount) else amount

    def outlook(self, constraint: Constraint) -> tuple[Numbers, Numbers, Numbers]:
        """The metric of a full-size run of each candidate, on its scale: mean, deviation and the limit."""
        belief = self._of.get(self._quantity_of(constraint))
        count = len(self.history.candidates)
        if belief is None:  # never measured: as likely kept as not
            return np.zeros(count), np.ones(count), np.zeros(count)
        ahead = belief.at(FULL)
        return ahead.mean, ahead.measured_deviation, self._level(constraint, belief)

    def limits(self) -> list[Limit]:
        """The constraints whose metrics were ever measured, as their models see them."""
        known = [(one, self._of.get(self._quantity_of(one))) for one in self.history.problem.constraints]
        return [Limit(belief, self._level(one, belief), one.at_most) for one, belief in known if belief is not None]

    def _level(self, constraint: Constraint, belief: OutcomePosterior) -> Numbers:
        """The limit of each candidate on the scale of its model, which may be one of seconds and not of dollars."""
        limit = np.full(len(self.history.candidates), constraint.limit)
        if constraint.metric == COST and self.history.usd_per_hour is not None:
            limit = constraint.limit * HOUR_S / self.history.usd_per_hour
        return belief.scale.of(limit)

    def log_kept(self, constraint: Constraint) -> Numbers:
        """The logarithm of the chance that a full-size run of each candidate keeps this limit, by the model alone."""
        mean, deviation, limit = self.outlook(constraint)
        room = (limit - mean) / deviation
        chance: Numbers = log_ndtr(room if constraint.at_most else -room)
        return chance

    def log_feasible(self) -> Numbers:
        """The same for all limits, which count as independent. A measurement on all of the data overrules the model."""
        chance = np.zeros(len(self.history.candidates))
        for constraint in self.history.problem.constraints:
            chance += self.log_kept(constraint)
        chance[list(self.history.feasible)] = 0.0
        chance[self.history.infeasible] = -math.inf
        return chance

    def predicted(self, constraint: Constraint, row: int) -> float:
        """The metric itself of a full-size run of this candidate."""
        belief = self._of.get(self._quantity_of(constraint))
        if belief is None:
            return math.nan
        value = belief.scale.value(float(belief.at(FULL).mean[row]))
        if constraint.metric == COST and self.history.usd_per_hour is not None:
            value *= float(self.history.usd_per_hour[row]) / HOUR_S
        return value

    def _quantity_of(self, constraint: Constraint) -> str:
        """Where prices are known, dollars follow from seconds: one model for both."""
        priced = self.history.usd_per_hour is not None and constraint.metric == COST
        return SECONDS if priced else constraint.metric

    def _objective(self) -> OutcomePosterior:
        """A run that diverged counts as the worst seen; one that was killed tells nothing of its objective."""
        values = np.array([seen.objective for seen in self.history.observations])
        killed = np.array([seen.killed for seen in self.history.observations])
        scale = self.kinds.objective_scale(values[np.isfinite(values)], self.history.problem.minimize)
        levels = scale.of(values)
        levels[np.isnan(values)] = np.max(levels, initial=-math.inf, where=np.isfinite(levels))
        whole = np.isfinite(values) | ~killed
        return self._belief(OBJECTIVE, whole, levels, np.zeros(len(values), dtype=bool), scale, self.kinds.objective)

    def _spent(self, name: str) -> OutcomePosterior | None:
        values = self._values(name)
        told = np.isfinite(values)
        killed = np.array([seen.killed for seen in self.history.observations])
        return self._belief(name, told, _LOG.of(values), killed, _LOG, self.kinds.spending) if told.any() else None

    def _metric(self, name: str) -> OutcomePosterior | None:
        values = self._values(name)
        told = np.isfinite(values)
        if not told.any():
            return None
        limit = next(constraint.limit for constraint in self.history.problem.constraints if constraint.metric == name)
        scale = metric_scale(values[told], limit)
        return self._belief(name, told, scale.of(values), np.zeros(len(values), dtype=bool), scale, self.kinds.metric)

    def _values(self, name: str) -> Numbers:
        return np.array([seen.metrics.get(name, math.nan) for seen in self.history.observations])

    def _belief(
        self, name: str, told: Flags, levels: Numbers, at_least: Flags, scale: Transform, trend: Trend
    ) -> OutcomePosterior:
        history = self.history
        rows = np.array(history.rows, dtype=np.intp)[told]
        log_s = np.log([seen.fraction for seen in history.observations])[told]
        measured = OutcomeData(rows, log_s, levels[told], at_least[told])
        smallest = min(history.problem.smallest, float(np.exp(log_s.min(initial=0.0))))
        return OutcomePosterior(measured, scale, trend, history.candidates, smallest, self._starts.get(name))


def _spending_name(history: History) -> str | None:
    """What the cost of a run is learned from: seconds where prices are known, else what every run told."""
    names = [SECONDS] if history.usd_per_hour is not None else [COST, SECONDS]
    return next((name for name in names if all(name in seen.metrics for seen in history.observations)), None)
