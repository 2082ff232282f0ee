"""The posteriors given a history: how good each candidate is, what it costs, and whether it is feasible."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.gp.kernel import KernelParameters
from shoestring.optimizer.history import Flags, History
from shoestring.optimizer.joint_model import ModelledConstraint
from shoestring.optimizer.observations import FULL, Observation
from shoestring.optimizer.outcome_model import ERROR, METRIC, SPENDING, OutcomeData, OutcomePosterior, Trend
from shoestring.optimizer.transforms import Transform, metric_transform, objective_transform
from shoestring.space.constraints import COST, SECONDS, Constraint

OBJECTIVE = "objective"
HOUR_S = 3600.0
LEAST_SPENT = 1e-9
"""Seconds or dollars below this count as this: a run reported to have taken no time has no logarithm."""
LARGEST_LOG = 700.0
"""The exponential of a larger number overflows."""
_LOG = Transform(True, floor=LEAST_SPENT)


@dataclass(frozen=True)
class OutcomeModels:
    """How the objective, the spending and other metrics are modelled."""

    objective_transform: Callable[[Numbers, bool], Transform] = objective_transform
    objective: Trend = ERROR
    spending: Trend = SPENDING
    metric: Trend = METRIC


class Posteriors:
    """One posterior for each outcome that counts, fitted to all observations; pending runs count as predicted."""

    kinds = OutcomeModels()

    def __init__(self, history: History, starts: Mapping[str, KernelParameters]) -> None:
        self.history = history
        self._starts = starts
        self._spending = _spending_name(history)
        names = {self._spending, *(self._outcome_of(constraint) for constraint in history.problem.constraints)}
        self._of: dict[str, OutcomePosterior] = {}
        self.objective = self._objective()
        for name in sorted(name for name in names if name is not None):
            posterior = self._spent(name) if name in (SECONDS, COST) else self._metric(name)
            if posterior is not None:
                self._of[name] = posterior
        for row, fraction in history.pending:
            for posterior in (self.objective, *self._of.values()):
                posterior.expecting(row, fraction)

    @property
    def shapes(self) -> dict[str, KernelParameters]:
        """Hyper-parameters, from which the next fit begins."""
        return {OBJECTIVE: self.objective.shape, **{name: posterior.shape for name, posterior in self._of.items()}}

    def expected_cost(self, fraction: float, rows: Rows | None = None) -> Numbers:
        """E[cost(x, s)] = exp(mean + deviation^2 / 2): dollars, or seconds where dollars are unknown, or the fraction.

        The mean of a lognormal, not its median: a run that may be very expensive is to be avoided. On a data fraction
        its cost is capped: there the run is ended in time.
        """
        posterior = self._of.get(self._spending or "")
        if posterior is None:
            return np.full(len(self.history.candidates) if rows is None else len(rows), fraction)
        spent, most = posterior.at(fraction, rows), self._most(fraction, rows)
        deviation = spent.measured_deviation
        amount: Numbers = np.exp(np.minimum(spent.mean + 0.5 * deviation**2, LARGEST_LOG))
        if most is not None:
            room = (np.log(most) - spent.mean) / deviation
            amount = amount * ndtr(room - deviation) + most * ndtr(-room)
        return amount * self._unit_price(rows)

    def median_cost(self, fraction: float) -> Numbers:
        """exp(mean) of a run of each candidate that is not ended early: much faster to compute than the mean."""
        posterior = self._of.get(self._spending or "")
        if posterior is None:
            return np.full(len(self.history.candidates), fraction)
        median: Numbers = np.exp(posterior.mean_at(fraction))
        return median * self._unit_price(None)

    def least_expected_cost(self, fraction: float) -> Numbers:
        """A lower bound of `expected_cost`: the median of the lognormal. Where runs are ended early, half of the median
        or of the cap, for half of the runs take at least the median or reach the cap."""
        median, most = self.median_cost(fraction), self._most(fraction, None)
        return median if most is None else 0.5 * np.minimum(median, most * self._unit_price(None))

    def _most(self, fraction: float, rows: Rows | None) -> Numbers | None:
        """The cap of a run on a data fraction, in the unit in which spending is learned."""
        end_at = self.history.ends(fraction) if fraction < FULL else {}
        if self.history.usd_per_hour is None:
            alone = end_at.get(self._spending or "")
            return None if alone is None else np.array(max(alone, LEAST_SPENT))
        seconds = np.minimum(end_at.get(SECONDS, math.inf), end_at.get(COST, math.inf) / self._unit_price(rows))
        return np.maximum(seconds, LEAST_SPENT) if end_at else None

    def _unit_price(self, rows: Rows | None) -> Numbers | float:
        """Dollars per second, or 1 where prices are unknown."""
        if self.history.usd_per_hour is None:
            return 1.0
        price: Numbers = self.history.usd_per_hour if rows is None else self.history.usd_per_hour[rows]
        return price / HOUR_S

    def spent(self, seen: Observation) -> float:
        """On a run, in the unit of `expected_cost`; 0 if unknown."""
        if self._spending is None:
            return seen.fraction
        amount = seen.cost if self.history.usd_per_hour is not None else seen.metrics[self._spending]
        return 0.0 if math.isnan(amount) else amount

    def outlook(self, constraint: Constraint) -> tuple[Numbers, Numbers, Numbers]:
        """The transformed metric of a full-size run of each candidate: mean, deviation and the limit."""
        posterior = self._of.get(self._outcome_of(constraint))
        count = len(self.history.candidates)
        if posterior is None:  # never measured: as likely satisfied as not
            return np.zeros(count), np.ones(count), np.zeros(count)
        ahead = posterior.at(FULL)
        return ahead.mean, ahead.measured_deviation, self._level(constraint, posterior)

    def modelled_constraints(self) -> list[ModelledConstraint]:
        """The constraints whose metrics were ever measured, with their posteriors."""
        known = [(one, self._of.get(self._outcome_of(one))) for one in self.history.problem.constraints]
        return [
            ModelledConstraint(posterior, self._level(one, posterior), one.at_most)
            for one, posterior in known
            if posterior is not None
        ]

    def _level(self, constraint: Constraint, posterior: OutcomePosterior) -> Numbers:
        """The transformed limit of each candidate, in the unit of its model, which may be seconds and not dollars."""
        limit = np.full(len(self.history.candidates), constraint.limit)
        if constraint.metric == COST and self.history.usd_per_hour is not None:
            limit = constraint.limit * HOUR_S / self.history.usd_per_hour
        return posterior.transform.of(limit)

    def log_satisfied(self, constraint: Constraint) -> Numbers:
        """ln P(x satisfies the constraint at full size) = ln Phi(+-(limit - mean) / deviation), by the model alone."""
        mean, deviation, limit = self.outlook(constraint)
        room = (limit - mean) / deviation
        chance: Numbers = log_ndtr(room if constraint.at_most else -room)
        return chance

    def log_feasible(self) -> Numbers:
        """The sum over all constraints, taken to be independent. A measurement on the full data overrules the model."""
        chance = np.zeros(len(self.history.candidates))
        for constraint in self.history.problem.constraints:
            chance += self.log_satisfied(constraint)
        chance[list(self.history.feasible)] = 0.0
        chance[self.history.infeasible] = -math.inf
        return chance

    def predicted(self, constraint: Constraint, row: int) -> float:
        """The metric itself of a full-size run of this candidate."""
        posterior = self._of.get(self._outcome_of(constraint))
        if posterior is None:
            return math.nan
        value = posterior.transform.value(float(posterior.at(FULL).mean[row]))
        if constraint.metric == COST and self.history.usd_per_hour is not None:
            value *= float(self.history.usd_per_hour[row]) / HOUR_S
        return value

    def _outcome_of(self, constraint: Constraint) -> str:
        """Where prices are known, dollars follow from seconds: one model for both."""
        priced = self.history.usd_per_hour is not None and constraint.metric == COST
        return SECONDS if priced else constraint.metric

    def _objective(self) -> OutcomePosterior:
        """A run that diverged counts as the worst observed; one that was killed has no objective."""
        values = np.array([seen.objective for seen in self.history.observations])
        killed = np.array([seen.killed for seen in self.history.observations])
        transform = self.kinds.objective_transform(values[np.isfinite(values)], self.history.problem.minimize)
        levels = transform.of(values)
        levels[np.isnan(values)] = np.max(levels, initial=-math.inf, where=np.isfinite(levels))
        whole = np.isfinite(values) | ~killed
        return self._posterior(
            OBJECTIVE, whole, levels, np.zeros(len(values), dtype=bool), transform, self.kinds.objective
        )

    def _spent(self, name: str) -> OutcomePosterior | None:
        values = self._values(name)
        observed = np.isfinite(values)
        killed = np.array([seen.killed for seen in self.history.observations])
        return (
            self._posterior(name, observed, _LOG.of(values), killed, _LOG, self.kinds.spending)
            if observed.any()
            else None
        )

    def _metric(self, name: str) -> OutcomePosterior | None:
        values = self._values(name)
        observed = np.isfinite(values)
        if not observed.any():
            return None
        limit = next(constraint.limit for constraint in self.history.problem.constraints if constraint.metric == name)
        transform = metric_transform(values[observed], limit)
        return self._posterior(
            name, observed, transform.of(values), np.zeros(len(values), dtype=bool), transform, self.kinds.metric
        )

    def _values(self, name: str) -> Numbers:
        return np.array([seen.metrics.get(name, math.nan) for seen in self.history.observations])

    def _posterior(
        self, name: str, observed: Flags, levels: Numbers, at_least: Flags, transform: Transform, trend: Trend
    ) -> OutcomePosterior:
        history = self.history
        rows = np.array(history.rows, dtype=np.intp)[observed]
        log_s = np.log([seen.fraction for seen in history.observations])[observed]
        measured = OutcomeData(rows, log_s, levels[observed], at_least[observed])
        smallest = min(history.problem.smallest, float(np.exp(log_s.min(initial=0.0))))
        return OutcomePosterior(measured, transform, trend, history.candidates, smallest, self._starts.get(name))


def _spending_name(history: History) -> str | None:
    """What the cost of a run is learned from: seconds where prices are known, else what every run reported."""
    names = [SECONDS] if history.usd_per_hour is not None else [COST, SECONDS]
    return next((name for name in names if all(name in seen.metrics for seen in history.observations)), None)
