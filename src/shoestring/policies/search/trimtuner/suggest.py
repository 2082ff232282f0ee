"""TrimTuner's background task: what to run next, by models of all observations.

Pure: an optimiser is rebuilt from plain data and asked. The memory of its method is part of the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from shoestring.kernel.background import background_task
from shoestring.space.constraints import COST, SECONDS, Constraint
from shoestring.space.space import Space
from shoestring.values import Config

if TYPE_CHECKING:
    from shoestring.optimizer.optimizer import Optimizer


@background_task("trimtuner.suggest")
def suggest(given: Any) -> Any:
    """Suggestions, fewer than requested if nothing is left to try, and the memory of the method."""
    optimizer = optimizer_of(given)
    suggestions = []
    for number in range(given["asks"]):
        if optimizer.exhausted:
            break
        suggestion = optimizer.ask(last=number + 1 == given.get("left"))  # runs of the first release did not say
        suggestions.append({"config": suggestion.config, "fraction": suggestion.fraction, "why": suggestion.why})
    return {"suggestions": suggestions, "memory": optimizer.memory()}


def optimizer_of(given: Any) -> Optimizer:
    """The optimiser after all observations in the input."""
    from shoestring.optimizer.observations import Observation, Suggestion
    from shoestring.optimizer.optimizer import Optimizer

    problem = given["problem"]
    goal = {"minimize" if problem["minimize"] else "maximize": problem["metric"]}
    constraints = [msgspec.convert(constraint, Constraint) for constraint in problem["constraints"]]
    optimizer = Optimizer(
        msgspec.convert(problem["space"], Space),
        constraints=constraints,
        fractions=problem["fractions"],
        usd_per_hour=_price(given["prices"]),
        seed=problem["seed"],
        method=problem["method"],
        **goal,
    )
    wanted = [SECONDS, *([] if problem["free"] else [COST]), *(constraint.metric for constraint in constraints)]
    for seen in given["observations"]:
        values = {name: seen["told"].get(name, math.nan) for name in wanted}
        objective = seen["told"].get(problem["metric"], math.nan)
        optimizer.learn(Observation(seen["config"], seen["fraction"], objective, values, seen["killed"]))
    for run in given["pending"]:
        optimizer.expect(Suggestion(run["config"], run["fraction"]))
    if given["memory"] is not None:
        optimizer.recall(given["memory"])
    return optimizer


def _price(prices: Any) -> Callable[[Config], float] | None:
    """The hourly price of a configuration's machines; None if it names none."""
    if prices is None:
        return None
    names, count = prices["names"], prices["count"]
    of_one = {tuple(values): usd for *values, usd in prices["usd_per_hour"]}

    def usd_per_hour(config: Config) -> float:
        machines = config.get(count) or 1
        usd: float = of_one[tuple(config.get(name) for name in names)]
        return usd * float(machines)

    return usd_per_hour
