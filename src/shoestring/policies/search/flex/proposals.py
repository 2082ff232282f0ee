"""Configurations that might be tried next, as rows of places on the unit interval, one for each parameter.

Rows are cheap: hundreds are looked at for every trial that is begun, and only the one chosen becomes a configuration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoestring.policies.search.samplers.tpe import as_row
from shoestring.space.parameters import Choice, Int, Parameter
from shoestring.space.space import Space
from shoestring.values import Config

Numbers = NDArray[np.float64]

STEPS_ASIDE = (0.07, 0.2)
"""Standard deviations of a step aside in every range, half of the rows each: to polish, and to look around."""
OTHER_OPTION = 0.2
"""How often a step aside takes any option of a choice."""


def anywhere(space: Space, count: int, rng: np.random.Generator) -> Numbers:
    return rng.random((count, len(space.params)))


def around(space: Space, configs: Sequence[Config], count: int, rng: np.random.Generator) -> Numbers:
    """Steps aside from configurations that did well. What they lack is drawn anew."""
    centres = np.array([_places(space, config) for config in configs])[rng.integers(len(configs), size=count)]
    steps = rng.standard_normal(centres.shape) * rng.choice(STEPS_ASIDE, size=(count, 1))
    aside = np.abs(centres + steps)
    aside = np.clip(np.where(aside > 1.0, 2.0 - aside, aside), 0.0, 1.0)
    anew, options = rng.random(centres.shape), np.array([isinstance(p, Choice) for p in space.params.values()])
    kept = np.where(rng.random(centres.shape) < OTHER_OPTION, anew, centres)
    return np.where(np.isnan(centres), anew, np.where(options, kept, aside))


def encoded(space: Space, rows: Numbers) -> Numbers:
    """What `Space.encode` gives for the configurations at these rows, for all of them at once."""
    active: dict[str, NDArray[np.bool_]] = {}
    columns: list[Numbers] = []
    for (name, param), places in zip(space.params.items(), rows.T, strict=True):
        here = np.ones(len(rows), dtype=bool)
        for parent, allowed in param.when.items():
            values = [space.params[parent].at(place) for place in rows[:, list(space.params).index(parent)]]
            here &= active[parent] & np.array([value in allowed for value in values])
        active[name] = here
        if param.when and param.width:
            columns.append(here.astype(float))
        columns.extend(column * here for column in _numbers(param, places))
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))


def config_at(space: Space, row: Numbers) -> Config:
    config: Config = {}
    for (name, param), place in zip(space.params.items(), row.tolist(), strict=True):
        if not param.when or param.active(config):
            config[name] = param.at(place)
    return config


def _numbers(param: Parameter, places: Numbers) -> list[Numbers]:
    if isinstance(param, Choice):
        chosen = np.minimum((places * param.size).astype(int), param.size - 1)
        return [(chosen == option).astype(float) for option in range(param.size)]
    if isinstance(param, Int):
        return [_of_whole_numbers(param, places)]
    return [places] if param.width else []


def _of_whole_numbers(param: Int, places: Numbers) -> Numbers:
    if not param.log:
        numbers: Numbers = np.minimum((places * param.size).astype(int), param.size - 1) / (param.size - 1)
        return numbers
    ends = math.log(param.low - 0.5), math.log(param.high + 0.5)
    values = np.clip(np.round(np.exp((1.0 - places) * ends[0] + places * ends[1])), param.low, param.high)
    fractions: Numbers = np.log(values / param.low) / math.log(param.high / param.low)
    return fractions


def _places(space: Space, config: Config) -> list[float]:
    """Where on each unit interval the configuration lies; NaN where it has none."""
    row = as_row(space, config)
    return [
        (place + 0.5) / param.size if isinstance(param, Choice) else place
        for param, place in zip(space.params.values(), row, strict=True)
    ]
