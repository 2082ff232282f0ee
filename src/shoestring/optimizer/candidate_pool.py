"""Where the candidates of a turn come from.

A space of a few thousand configurations is used whole. A larger or continuous one is sampled anew at every turn: half
evenly over all of it, half close to the best known. What was run or is pending is always in the sample, and comes
first, so that its rows stay the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from shoestring.optimizer.candidates import Candidates, Key, Numbers, key, listed, of_space
from shoestring.space.parameters import Choice, Float, Int, Parameter
from shoestring.space.space import Space, from_plain
from shoestring.values import Config, Value

MOST_WHOLE = 5_000
"""More candidates than this are sampled."""
DRAWN = 1024
"""Candidates of a sample: half of them over the whole space, half of them near the best."""
NEAREST, FARTHEST = 1e-3, 0.2
"""How far from the best these lie, in widths of a range: every order of magnitude between is as likely."""
MOST_DIMENSIONS = 1000
"""Of a Sobol sequence; spaces with more parameters are sampled uniformly at random."""


class Pool(Protocol):
    """Rows are those of `candidates` at any later turn."""

    size: float

    def remember(self, config: Mapping[str, Value]) -> int:
        """The row of a configuration that is run, or a SpecError if it is not in the space."""

    def candidates(self, turn: Sequence[int], best: Iterable[Config]) -> Candidates:
        """Those of this turn. Equal turns give equal candidates."""


def pool_of(space: object, only: Iterable[Config] | None) -> Pool:
    whole = listed(space, only)
    if whole is None:
        return Redrawn(_Endless(from_plain(space)))
    return Whole(whole) if len(whole) <= MOST_WHOLE else Redrawn(_Many(whole))


class Whole:
    """All candidates at every turn."""

    def __init__(self, candidates: Candidates) -> None:
        self._all = candidates
        self.size: float = len(candidates)

    def remember(self, config: Mapping[str, Value]) -> int:
        return self._all.row(config)

    def candidates(self, turn: Sequence[int], best: Iterable[Config]) -> Candidates:  # noqa: ARG002 - always all
        return self._all


class _Source(Protocol):
    size: float

    def check(self, config: Mapping[str, Value]) -> None: ...

    def draw(self, best: Sequence[Config], rng: np.random.Generator) -> list[Config]: ...

    def encoded(self, configs: Iterable[Config]) -> Candidates: ...


class Redrawn:
    """What was run, and a new sample at every turn."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._known: dict[Key, int] = {}
        self._configs: list[Config] = []
        self._latest: tuple[tuple[int, ...], Candidates] | None = None
        self.size = source.size

    def remember(self, config: Mapping[str, Value]) -> int:
        self._source.check(config)
        row = self._known.setdefault(key(config), len(self._configs))
        if row == len(self._configs):
            self._configs.append(dict(config))
        return row

    def candidates(self, turn: Sequence[int], best: Iterable[Config]) -> Candidates:
        now = (*turn, len(self._configs))
        if self._latest is None or self._latest[0] != now:
            drawn = self._source.draw(list(best), np.random.default_rng([3, *now]))
            self._latest = (now, self._source.encoded([*self._configs, *drawn]))
        return self._latest[1]


class _Many:
    """A long list: some sampled at random, and those nearest to the best."""

    def __init__(self, candidates: Candidates) -> None:
        self._all = candidates
        self.size: float = len(candidates)

    def check(self, config: Mapping[str, Value]) -> None:
        self._all.row(config)

    def draw(self, best: Sequence[Config], rng: np.random.Generator) -> list[Config]:
        rows = rng.choice(len(self._all), DRAWN // 2 if best else DRAWN, replace=False).tolist()
        for config in best:
            apart = ((self._all.x - self._all.x[self._all.row(config)]) ** 2).sum(axis=1)
            rows += np.argpartition(apart, DRAWN // 2 // len(best))[: DRAWN // 2 // len(best)].tolist()
        return [self._all.configs[row] for row in rows]

    def encoded(self, configs: Iterable[Config]) -> Candidates:
        rows = list(dict.fromkeys(self._all.row(config) for config in configs))
        return Candidates([self._all.configs[row] for row in rows], self._all.x[rows], self._all.parameter)


class _Endless:
    """A space with ranges: a shifted Sobol sequence over all of it, and steps of all lengths away from the best."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.size = math.inf

    def check(self, config: Mapping[str, Value]) -> None:
        self._space.check(config)

    def draw(self, best: Sequence[Config], rng: np.random.Generator) -> list[Config]:
        even = (self._sequence + rng.random(len(self._space.params))) % 1.0
        near = [u for config in best for u in self._near(config, DRAWN // 2 // len(best), rng)]
        return [self._at(u.tolist()) for u in [*even[: DRAWN // 2 if best else DRAWN], *near]]

    def encoded(self, configs: Iterable[Config]) -> Candidates:
        return of_space(self._space, configs)

    @cached_property
    def _sequence(self) -> Numbers:
        from scipy.stats import qmc  # slower to import than all else here, and few spaces need it

        dimensions = len(self._space.params)
        if dimensions > MOST_DIMENSIONS:
            return np.random.default_rng(0).random((DRAWN, dimensions))
        sequence: Numbers = qmc.Sobol(d=dimensions, scramble=False).random(DRAWN)
        return sequence

    def _near(self, config: Config, count: int, rng: np.random.Generator) -> Iterator[Numbers]:
        """Random steps away from this configuration, in all numbers; each choice is sometimes sampled anew."""
        params = self._space.params
        places = [_place(param, config[name]) if name in config else None for name, param in params.items()]
        chosen = np.array([isinstance(param, Choice) for param in params.values()], dtype=bool)
        choices, dimensions = int(chosen.sum()), len(places)
        nearest, farthest = math.log(NEAREST), math.log(FARTHEST)
        known = np.array(places, dtype=np.float64)
        for _ in range(count):
            length = math.exp(rng.uniform(nearest, farthest))
            u = known
            if None in places:
                u = np.array([rng.random() if place is None else place for place in places])
            stepped = np.minimum(np.maximum(u + length * rng.standard_normal(dimensions), 0.0), 1.0)
            anew, sampled = rng.random(dimensions) < 1.0 / max(1, choices + 1), rng.random(dimensions)
            yield np.where(chosen, np.where(anew, sampled, u), stepped) if choices else stepped

    def _at(self, u: list[float]) -> Config:
        config: Config = {}
        for (name, param), place in zip(self._space.params.items(), u, strict=True):
            if not param.when or param.active(config):
                config[name] = param.at(place)
        return config


def _place(param: Parameter, value: Value) -> float:
    """Where in the unit interval a value lies: `param.at` gives it back."""
    match param:
        case Float():
            return param.encode(value)[0]
        case Int() if param.log:
            low, high = math.log(param.low - 0.5), math.log(param.high + 0.5)
            return (math.log(int(value or 0)) - low) / (high - low)
        case Int():
            return (int(value or 0) - param.low + 0.5) / param.size
        case Choice():
            return (param.options.index(value) + 0.5) / param.size
    return 0.5
