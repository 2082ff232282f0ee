"""The optimizer for one Optuna search space and one set of constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError
from shoestring.for_optuna.outcomes import FULL, OBJECTIVE, Reading
from shoestring.for_optuna.translation import Distributions, Translation
from shoestring.space.constraints import Constraint
from shoestring.values import Config, Value

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from shoestring.optimizer.observations import Answer, Suggestion

Price = Callable[[dict[str, Any]], float] | float
PLAN = "shoestring:plan"
"""The system attribute with the parameters assigned to a trial, in Optuna's internal representation: it may not have
suggested all of them yet, and other workers must know what it is about to run."""


@dataclass(frozen=True)
class SamplerRequest:
    """The options of the sampler."""

    constraints: tuple[Constraint, ...]
    fractions: tuple[float, ...]
    """Ascending; the last is the full data."""
    usd_per_hour: Price | None
    seed: int

    @property
    def reading(self) -> Reading:
        return Reading(self.constraints, self.usd_per_hour is not None, len(self.fractions) > 1)


class Chooser:
    """Ask and tell in terms of a study. Trials outside of the space are skipped."""

    def __init__(
        self, space: Distributions, minimize: bool, request: SamplerRequest, constraint_names: tuple[str, ...]
    ) -> None:
        from shoestring.optimizer.optimizer import SharedOptimizer

        self._translation = Translation(space)
        self._size = self._translation.space.size
        self._reading = request.reading
        self._constraint_names = constraint_names
        self._constraints = (*request.constraints, *(Constraint(name, 0.0) for name in constraint_names))
        self._sign = 1.0 if minimize else -1.0
        self._worst = math.nan
        self._told: list[FrozenTrial] = []
        self._learned = 0
        self._run_whole: set[tuple[Value, ...]] = set()
        self._optimizer = SharedOptimizer(
            self._translation.space,
            minimize=OBJECTIVE if minimize else None,
            maximize=None if minimize else OBJECTIVE,
            constraints=self._constraints,
            fractions=request.fractions,
            usd_per_hour=None if request.usd_per_hour is None else self._price(request.usd_per_hour),
            seed=request.seed,
        )

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        return self._translation.distributions

    def learn(self, finished: Sequence[FrozenTrial]) -> None:
        """Tell the trials that are new since the last call, at the end of `finished`. Failed ones count as the worst of
        the others, so the others are told first."""
        for trial in sorted(finished[self._learned :], key=lambda trial: trial.state.name == "FAIL"):
            run = self._run(trial)
            if run is not None:
                self._tell(run, trial)
        self._learned = len(finished)

    def ask(self, running: Iterable[FrozenTrial]) -> tuple[dict[str, Any], float]:
        """Parameters and a data fraction; no parameters if every configuration has been run on the full data."""
        pending = [run for run in map(self._run, running) if run is not None]
        taken = {_values(run.config) for run in pending if run.fraction == FULL}
        if len(self._run_whole) + len(taken - self._run_whole) >= self._size:
            return {}, FULL
        suggestion = self._optimizer.ask_beside(pending)
        return self._translation.params(suggestion.config), suggestion.fraction

    def best(self) -> Answer:
        """The optimizer's recommendation, with all parameters that a trial of it had, also those that only some trials
        have. Because of these, trials that are equal to the optimizer may differ: of feasible full-data runs the best
        counts, and not the last."""
        answer = self._optimizer.best()
        proved = self._proved() if answer.measured else None
        if proved is not None:
            return proved
        like_it = (
            trial.params for trial in reversed(self._told) if self._translation.config(trial.params) == answer.config
        )
        return replace(answer, config=next(like_it, self._translation.params(answer.config)))

    def _proved(self) -> Answer | None:
        from shoestring.optimizer.observations import Answer, ConstraintOutlook

        proved = [
            (self._sign * seen.objective, trial.number, seen, trial)
            for seen, trial in zip(self._optimizer.observations, self._told, strict=True)
            if seen.fraction == FULL and not seen.killed and all(map(seen.satisfies, self._constraints))
            if math.isfinite(seen.objective)
        ]
        if not proved:
            return None
        *_, seen, trial = min(proved)
        outlooks = tuple(
            ConstraintOutlook(constraint, seen.metrics[constraint.metric], True, 1.0)
            for constraint in self._constraints
        )
        return Answer(trial.params, seen.objective, True, outlooks)

    def _tell(self, run: Suggestion, trial: FrozenTrial) -> None:
        outcome = self._reading.outcome(trial, self._worst, self._constraint_names)
        self._optimizer.tell(run, killed=outcome.killed, **outcome.metrics)
        self._told.append(trial)
        if math.isfinite(objective := outcome.metrics[OBJECTIVE]):
            beyond = math.isnan(self._worst) or self._sign * (objective - self._worst) > 0.0
            self._worst = objective if beyond else self._worst
        if run.fraction == FULL:
            self._run_whole.add(_values(run.config))

    def _run(self, trial: FrozenTrial) -> Suggestion | None:
        """The run of a trial: its parameters, and the assigned ones that it has not suggested yet."""
        from shoestring.optimizer.observations import Suggestion

        plan = {
            name: self.distributions[name].to_external_repr(value)
            for name, value in trial.system_attrs.get(PLAN, {}).items()
            if name in self.distributions
        }
        config = self._translation.config(plan | trial.system_attrs.get("fixed_params", {}) | trial.params)
        return None if config is None else Suggestion(config, self._reading.fraction(trial))

    def _price(self, usd_per_hour: Price) -> Callable[[Config], float]:
        def of_config(config: Config) -> float:
            params = self._translation.params(config)
            try:
                price = usd_per_hour(params) if callable(usd_per_hour) else usd_per_hour
            except KeyError as error:
                raise SpecError(
                    f"usd_per_hour uses {error}, and not every trial has such a parameter",
                    hint=f"it receives {', '.join(params)}",
                ) from None
            if not 0.0 < price < math.inf:
                raise SpecError(f"usd_per_hour is {price} for {params!r}", hint="give a price above 0")
            return price

        return of_config


def _values(config: Config) -> tuple[Value, ...]:
    """The configurations of one space all have the same parameters in the same order."""
    return tuple(config.values())
