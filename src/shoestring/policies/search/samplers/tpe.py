"""The Tree-structured Parzen Estimator: where do good trials lie, and bad ones do not?

The model splits the observed trials into the best share and the rest, fits a density l(x), g(x) to each, samples
candidates from l and takes the one with the largest l(x) / g(x). Parents are sampled before the parameters that depend
on them, and a parameter is modelled over the trials that had it.

Our own and not a library's: the core needs no dependency for it, it reads the journal's state instead of a storage of
its own, and a suggestion costs less than a millisecond where Optuna's takes about ten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar, cast

from shoestring.policies.search.samplers.parzen import Parzen, Row
from shoestring.space.parameters import Choice, Constant, Float, Int, Parameter
from shoestring.space.space import Space
from shoestring.values import Config, Value

T = TypeVar("T")
MOST_GOOD = 25
"""More would only blur what is best."""
MOST_OTHERS = 100
"""So many of the rest suffice; a suggestion must not become slower in a study of 100,000 trials."""


def as_row(space: Space, config: Config) -> Row:
    return tuple(_place(param, config[name]) if name in config else math.nan for name, param in space.params.items())


def good_count(observed: int, gamma: float) -> int:
    """How many of the observed trials count as good: at least one, so that the density has a kernel."""
    return min(max(1, math.ceil(gamma * observed)), MOST_GOOD)


def evenly(items: Sequence[T], most: int, *, after: int = 0) -> list[T]:
    """At most `most` of the items after the first `after`, evenly spaced: of a ranking, some of every rank."""
    count = len(items) - after
    taken = min(count, most)
    return [items[after + index * count // taken] for index in range(taken)]


def suggest(space: Space, good: Sequence[Row], others: Sequence[Row], rng: Random, *, candidates: int) -> Config:
    """The candidate with the largest density ratio, good to others."""
    import numpy as np

    params = list(space.params.values())
    liked, rest = Parzen(params, good), Parzen(params, others)
    sampled = [_candidate(space, liked, rng) for _ in range(candidates)]
    rows = np.array([row for _, row in sampled])
    return sampled[int(np.argmax(liked.log_density(rows) - rest.log_density(rows)))][0]


def _candidate(space: Space, liked: Parzen, rng: Random) -> tuple[Config, Row]:
    """Near one of the good trials, or anywhere. Parents come first in a space, so it is known what is active."""
    kernel = liked.draw_kernel(rng)
    config: Config = {}
    row = []
    for column, (name, param) in enumerate(space.params.items()):
        place = math.nan
        if not param.when or param.active(config):
            if isinstance(param, Constant):
                config[name] = param.value
            else:
                place = liked.draw_near(kernel, column, rng)
                if isinstance(param, Choice):
                    config[name] = param.options[int(place)]
                else:
                    config[name] = value = param.at(place)
                    place = _middle(param, value) if isinstance(param, Int) else place
        row.append(place)
    return config, tuple(row)


def _place(param: Parameter, value: Value) -> float:
    """NaN also for a value outside the space: a trial given by the user may be anything."""
    if not param.holds(value):
        return math.nan
    match param:
        case Choice():
            return float(param.options.index(value))
        case Float():
            try:
                return param.encode(value)[0]
            except ZeroDivisionError:  # the ends are two floats between which there is no other
                return 0.5
        case Int():
            return _middle(param, cast(float, value))
    return math.nan


def _middle(param: Int, value: float) -> float:
    """The middle of the part of the unit interval that `Int.at` maps to the value."""
    if param.log:
        low, high = math.log(param.low - 0.5), math.log(param.high + 0.5)
        return (math.log(value) - low) / (high - low)
    return (value - param.low + 0.5) / param.size
