"""Methods with full runs only that recommend their best measurement: random search, and Optuna's samplers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.trimtuner_play import Ask, Evaluation
from benchmarks.trimtuner_tables import Table
from shoestring.space.space import Choice, Float, Int, Parameter

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

START_RUNS = 4
"""Random full runs before a model is used: as many as the paper gives EIc."""


class MeasuredBest:
    """The full runs so far, and the best feasible one."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.full = len(table.fractions) - 1
        self.seen: dict[int, Evaluation] = {}

    def tell(self, candidate: int, fraction: int, seen: Evaluation) -> None:  # noqa: ARG002 - always all of it
        self.seen[candidate] = seen

    def best(self) -> int | None:
        sign = 1 if self.table.direction == "maximize" else -1
        reached = {candidate: sign * seen.objective for candidate, seen in self.seen.items() if not seen.killed}
        finite = {candidate: value for candidate, value in reached.items() if math.isfinite(value)}
        return max(finite, key=finite.__getitem__) if finite else None

    def unseen(self) -> list[int]:
        return [candidate for candidate in range(len(self.table.configs)) if candidate not in self.seen]


class RandomSearch(MeasuredBest):
    """Every candidate once, in a random order."""

    def __init__(self, table: Table, seed: int) -> None:
        super().__init__(table)
        self.order = iter(np.random.default_rng(seed).permutation(len(table.configs)).tolist())

    def ask(self) -> Ask | None:
        candidate = next(self.order, None)
        return None if candidate is None else Ask(candidate, self.full)


class OptunaSearch(MeasuredBest):
    """An Optuna sampler, with the limit as its constraint."""

    def __init__(self, table: Table, seed: int, sampler: str) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        super().__init__(table)
        self.study = optuna.create_study(direction=table.direction, sampler=_sampler(sampler, seed))
        self.suggested = {name: _distribution(param) for name, param in table.space.params.items()}
        self.failed = optuna.trial.TrialState.FAIL
        self.running: Any = None

    def ask(self) -> Ask | None:
        """Its suggestion becomes the nearest candidate that was not run yet, which it then sees as its trial: a table
        has only one result of a candidate."""
        left = self.unseen()
        if not left:
            return None
        wish = self.study.ask(self.suggested)
        self.study.tell(wish, state=self.failed)
        apart = ((self.table.points[left] - self.table.space.encode(wish.params)) ** 2).sum(axis=1)
        candidate = left[int(apart.argmin())]
        self.study.enqueue_trial(self.table.configs[candidate])
        self.running = self.study.ask(self.suggested)
        return Ask(candidate, self.full)

    def tell(self, candidate: int, fraction: int, seen: Evaluation) -> None:
        """A run without a result counts as the worst seen; killed, it violated the limit by an unknown amount: by 1."""
        super().tell(candidate, fraction, seen)
        self.running.set_user_attr("over", [1.0 if seen.killed else seen.usd / self.table.limit_usd - 1])
        value = seen.objective
        if not math.isfinite(value):
            reached = [other.objective for other in self.seen.values() if math.isfinite(other.objective)]
            worst = min if self.table.direction == "maximize" else max
            value = worst(reached, default=0.0)
        self.study.tell(self.running, value)


def _sampler(name: str, seed: int) -> BaseSampler:
    import warnings

    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constraints are called experimental
        if name == "gp":
            return optuna.samplers.GPSampler(
                seed=seed, n_startup_trials=START_RUNS, deterministic_objective=True, constraints_func=_over
            )
        return optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=START_RUNS, multivariate=True, constraints_func=_over
        )


def _over(trial: Any) -> list[float]:
    over: list[float] = trial.user_attrs["over"]
    return over


def _distribution(param: Parameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    match param:
        case Choice(options=options):
            return CategoricalDistribution(options)
        case Float(low=low, high=high, log=log):
            return FloatDistribution(low, high, log=log)
        case Int(low=low, high=high, log=log):
            return IntDistribution(low, high, log=log)
    raise TypeError(f"no table has a {param}")
