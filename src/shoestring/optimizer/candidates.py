"""The configurations that an optimizer chooses from, as rows of numbers from 0 to 1.

A range is one number. A choice is one number for each of its options, and these share one length-scale in every model:
`parameter[j]` is the parameter of column j.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoestring.errors import SpecError
from shoestring.space.space import Space, from_plain
from shoestring.values import Config, Value, as_value

Numbers = NDArray[np.float64]
Rows = NDArray[np.intp]
Key = tuple[tuple[str, Value, bool], ...]

MOST_LISTED = 100_000
"""Spaces with more configurations than this are sampled instead of listed."""
LOG_RATIO = 10.0
"""A table column of positive numbers that spans more than this is encoded by its logarithm."""


@dataclass(frozen=True)
class Candidates:
    """Each configuration once."""

    configs: Sequence[Config]
    x: Numbers
    parameter: Rows

    def __len__(self) -> int:
        return len(self.configs)

    @property
    def parameters(self) -> int:
        return int(self.parameter.max()) + 1 if len(self.parameter) else 0

    @cached_property
    def row_of(self) -> dict[Key, int]:
        return {key(config): row for row, config in enumerate(self.configs)}

    def row(self, config: Mapping[str, Value]) -> int:
        """Where this configuration is, or a SpecError."""
        row = self.row_of.get(key(config))
        if row is None:
            raise SpecError(
                f"{dict(config)!r} is not among the {len(self)} candidates",
                hint="tell a suggestion of ask(), or a configuration of the space",
            )
        return row


def key(config: Mapping[str, Value]) -> Key:
    """Equal for equal configurations, in whatever order they are written; True is not 1."""
    return tuple([(name, value, isinstance(value, bool)) for name, value in sorted(config.items())])


def listed(space: object, only: Iterable[Config] | None = None) -> Candidates | None:
    """All configurations of a space, or some `only`, or those of a table (a list of configurations); None if they are
    too many to be listed."""
    if isinstance(space, Sequence) and not isinstance(space, str):
        return of_table(space if only is None else list(only))
    whole = from_plain(space)
    if only is not None:
        chosen = list(only)
        for config in chosen:
            whole.check(config)
        return of_space(whole, chosen)
    return None if whole.size > MOST_LISTED else of_space(whole, whole.grid(MOST_LISTED))


def of_space(space: Space, configs: Iterable[Config]) -> Candidates:
    """These configurations of a space, encoded as the space does."""
    once = list({key(config): config for config in configs}.values())
    if not once:
        raise SpecError("there are no candidates", hint="give at least one configuration of the space")
    columns = [
        number
        for number, param in enumerate(param for param in space.params.values() if param.width)
        for _ in range(param.width + bool(param.when))
    ]
    x = np.array([space.encode(config) for config in once], dtype=np.float64).reshape(len(once), len(columns))
    return Candidates(once, x, np.array(columns, dtype=np.intp))


def of_table(rows: Sequence[object]) -> Candidates:
    """A table of configurations: columns of numbers become ranges, all others choices; columns that never vary are
    left out. Rows that occur twice are one candidate."""
    if not rows:
        raise SpecError("there are no candidates", hint="give a space, or a list of at least one configuration")
    for row in rows:
        if not isinstance(row, Mapping):
            raise SpecError(f"candidate {row!r} is not a configuration", hint="write each as {'lr': 0.1, 'batch': 16}")
        if set(row) != set(rows[0]):  # type: ignore[call-overload]
            raise SpecError(
                f"candidate {dict(row)!r} has other parameters than the first", hint="name the same parameters in each"
            )
    configs: list[Config] = [{str(name): as_value(v, str(name)) for name, v in row.items()} for row in rows]  # type: ignore[attr-defined]
    configs = list({key(config): config for config in configs}.values())
    blocks: list[Numbers] = []
    parameter: list[int] = []
    for name in configs[0]:
        block = _encoded([config[name] for config in configs])
        parameter += [len(blocks)] * block.shape[1]
        blocks += [block] if block.shape[1] else []
    x = np.hstack(blocks) if blocks else np.zeros((len(configs), 0))
    return Candidates(configs, x, np.array(parameter, dtype=np.intp))


def _encoded(column: Sequence[Value]) -> Numbers:
    """One column of a table as numbers from 0 to 1: one for a range, one for each option of a choice."""
    options = list(dict.fromkeys((value, isinstance(value, bool)) for value in column))
    if len(options) == 1:
        return np.zeros((len(column), 0))
    if all(isinstance(value, int | float) and not boolean for value, boolean in options):
        numbers = np.array([float(value) for value in column])  # type: ignore[arg-type]
        low, high = float(numbers.min()), float(numbers.max())
        if low > 0 and high / low > LOG_RATIO:
            numbers, low, high = np.log(numbers), math.log(low), math.log(high)
        return ((numbers - low) / (high - low)).reshape(-1, 1)
    place = {option: index for index, option in enumerate(options)}
    return np.eye(len(options))[[place[value, isinstance(value, bool)] for value in column]]
