"""The search space: its configurations, and how to sample, list, check and encode them.

Pure: the random generator is an argument. A space is plain data, written into the journal as part of the spec.

    from_plain({
        "optimizer": choice("sgd", "adam"),
        "lr": log(1e-4, 1.0),
        "momentum": uniform(0.5, 0.99, when={"optimizer": "sgd"}),      # exists only with sgd
    })

The same in a file: `optimizer: [sgd, adam]`, `lr: {log: [1e-4, 1]}`,
`momentum: {float: [0.5, 0.99], when: {optimizer: sgd}}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from shoestring.errors import SpecError
from shoestring.space.parameters import (
    WORDS_OF,
    Choice,
    Constant,
    Float,
    Int,
    Parameter,
    Role,
    as_condition,
    choice,
    constant,
    integer,
    log,
    machine_count,
    machine_type,
    on_spot,
    uniform,
    validate_role,
    zone,
)
from shoestring.values import Config, Value, as_number, as_value, as_values, as_whole, did_you_mean

__all__ = [
    "Choice",
    "Config",
    "Constant",
    "Float",
    "Int",
    "Parameter",
    "Space",
    "Value",
    "check_names",
    "choice",
    "constant",
    "from_plain",
    "integer",
    "log",
    "machine_count",
    "machine_type",
    "on_spot",
    "uniform",
    "zone",
]

if TYPE_CHECKING:
    from random import Random

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ELSE = "\0any other value"
"""Stands for all values of a parent that no condition names. Never equal to a real one: those have no NUL."""


class Space(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Named parameters, validated when made and sorted parents first, so that one pass decides which are active."""

    params: dict[str, Parameter] = {}

    def __post_init__(self) -> None:
        check_names(self.params)
        for name, param in self.params.items():
            if not isinstance(param, Parameter):
                raise SpecError(
                    f"space.{name}: {param!r} is not a parameter", hint="use uniform, log, integer or choice"
                )
            param.validate(f"space.{name}")
            validate_role(param, f"space.{name}")
        _refuse_duplicate_roles(self.params)
        for name, param in self.params.items():
            self._validate_condition(name, param)
        msgspec.structs.force_setattr(self, "params", _parents_first(self.params))

    @cached_property  # used at every turn of a run
    def roles(self) -> dict[Role, str]:
        """Which parameter decides which property of a trial's machines. Empty for hyper-parameters alone."""
        return {param.role: name for name, param in self.params.items() if param.role}

    def sample(self, rng: Random) -> Config:
        """A configuration at random; parameters that do not apply are absent."""
        config: Config = {}
        random = rng.random
        for name, param in self.params.items():
            if not param.when or param.active(config):
                config[name] = param.at(random())
        return config

    def grid(self, points_per_range: int = 5) -> Iterator[Config]:
        """All combinations, ranges as that many points, ends included. The last parameter varies fastest."""
        return self._combinations(self._grids(points_per_range))

    def grid_size(self, points_per_range: int = 5) -> int:
        """How many configurations `grid` gives, without making them."""
        grids = self._grids(points_per_range)
        return int(self._count(lambda name: len(grids[name]), lambda name, value: value in grids[name]))

    @property
    def size(self) -> float:
        """How many different configurations there are: a whole number, or infinity as soon as a float range applies."""
        try:
            return self._count(lambda name: self.params[name].size, lambda _name, _value: True)
        except OverflowError:  # a whole number too large to be multiplied by infinity
            return math.inf

    @property
    def dimensions(self) -> int:
        """Length of what `encode` returns."""
        return sum(param.width + _flagged(param) for param in self.params.values())

    def encode(self, config: Config) -> list[float]:
        """The configuration as numbers from 0 to 1, for models.

        A range gives its fraction (of the logarithm, if it is a log range), a choice one number per option, a constant
        nothing. A conditional parameter has one more number in front, 1 if active; inactive, all its numbers are 0.
        """
        numbers: list[float] = []
        for name, param in self.params.items():
            present = name in config
            if _flagged(param):
                numbers.append(1.0 if present else 0.0)
            numbers += param.encode(config[name]) if present else [0.0] * param.width
        return numbers

    def check(self, config: Mapping[str, Value]) -> None:
        """Raises SpecError if this is not a configuration of the space, and names the parameter."""
        for name in config:
            if name not in self.params:
                raise SpecError(f"{name!r} is not a parameter of the space", hint=did_you_mean(name, self.params))
        values = dict(config)
        for name, param in self.params.items():
            active = param.active(values)
            if not active and name in config:
                raise SpecError(
                    f"{name}={config[name]!r} is given, but it only exists {_condition(param)}", hint="leave it out"
                )
            if active and name not in config:
                raise SpecError(f"{name} is missing", hint=f"give it a value of {param}")
            if active and not param.holds(config[name]):
                raise SpecError(f"{name}={config[name]!r} is not in the space", hint=f"it must be a value of {param}")

    def _grids(self, points_per_range: int) -> dict[str, list[Value]]:
        if points_per_range < 1:
            raise SpecError(f"points_per_range={points_per_range!r} leaves no points", hint="give 1 or more")
        return {name: param.grid(points_per_range) for name, param in self.params.items()}

    def _validate_condition(self, name: str, param: Parameter) -> None:
        field = f"space.{name}"
        for parent, allowed in param.when.items():
            known = self.params.get(parent)
            if known is None:
                others = [other for other in self.params if other != name]
                raise SpecError(
                    f"{field}: depends on {parent!r}, which is not a parameter", hint=did_you_mean(parent, others)
                )
            if isinstance(known, Float):
                raise SpecError(
                    f"{field}: depends on {parent}, a range of floats, which never equals a value exactly",
                    hint="let it depend on a choice or a whole number",
                )
            if not allowed:
                raise SpecError(f"{field}: depends on {parent} having one of no values", hint="name at least one value")
            for value in allowed:
                if not known.holds(value):
                    raise SpecError(f"{field}: {parent} is never {value!r}", hint=f"{parent} is {known}")

    def _combinations(self, grids: dict[str, list[Value]]) -> Iterator[Config]:
        names = list(self.params)
        unfinished: list[tuple[int, Config]] = [(0, {})]
        while unfinished:
            position, config = unfinished.pop()
            if position == len(names):
                yield config
                continue
            name = names[position]
            if self.params[name].active(config):
                unfinished.extend((position + 1, {**config, name: value}) for value in reversed(grids[name]))
            else:
                unfinished.append((position + 1, config))

    def _count(self, many: Callable[[str], float], has: Callable[[str, Value], bool]) -> float:
        """The number of configurations, from how `many` values each parameter has.

        Only values named in a condition are distinguished, and families that share no condition multiply: a space with
        dozens of conditional parameters is counted without enumerating it.
        """
        decisive: dict[str, set[Value]] = {}
        for param in self.params.values():
            for parent, allowed in param.when.items():
                decisive.setdefault(parent, set()).update(value for value in allowed if has(parent, value))

        def count(names: Sequence[str], config: Config) -> float:
            if not names:
                return 1
            name, rest = names[0], names[1:]
            if not self.params[name].active(config):
                return count(rest, config)
            named = decisive.get(name, set())
            total = sum(count(rest, {**config, name: value}) for value in named)
            others = many(name) - len(named)
            return total + others * count(rest, {**config, name: _ELSE}) if others else total

        product: float = 1
        for family in _families(self.params):
            product *= count(family, {})
        return product


def check_names(names: Iterable[object]) -> None:
    """Names become arguments, environment variables and {placeholders}, so they are identifiers in any case."""
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SpecError(
                f"{name!r} cannot name a parameter",
                hint="use letters, digits and _, not starting with a digit: learning_rate, not learning-rate",
            )
        if name.upper() in seen:
            raise SpecError(
                f"{seen[name.upper()]} and {name} would be the same environment variable", hint="rename one of them"
            )
        seen[name.upper()] = name


def from_plain(plain: object) -> Space:
    """The space as users write it: parameters of this module, or the plain forms that YAML and TOML can hold.

    {log: [1e-4, 1]}, {float: [0, 1]}, {int: [1, 8]}, {int: [1, 1024], log: true}, {choice: [a, b]} or just [a, b],
    {constant: 3} or just 3; in each mapping also `when: {optimizer: sgd}`, with a value or a list of values. Machines:
    {machine_type: [m5.large, c5.large]}, {machine_count: [1, 4]}, {zone: [us-east-1a]}, {on_spot: [true, false]}, and
    `all` for everything in the run's market.
    """
    if isinstance(plain, Space):
        return plain
    if not isinstance(plain, Mapping):
        raise SpecError(f"space={plain!r} does not name parameters", hint="write it as space={'lr': log(1e-4, 1.0)}")
    return Space(params={name: _parameter(name, value) for name, value in plain.items()})


def _parameter(name: str, plain: object) -> Parameter:
    if isinstance(plain, Parameter):
        return plain
    try:
        if isinstance(plain, Mapping):
            return _from_words(plain)
        if isinstance(plain, str) or not hasattr(plain, "__len__"):
            return Constant(as_value(plain))
        return Choice(as_values(plain))
    except SpecError as error:
        raise SpecError(f"space.{name}: {error}", hint=error.hint) from None


def _from_words(plain: Mapping[str, object]) -> Parameter:
    words = dict(plain)
    when = as_condition(words.pop("when", None))
    on_log_scale = isinstance(words.get("log"), bool) and bool(words.pop("log"))
    if len(words) != 1:
        raise SpecError(f"{plain!r} must name one kind of parameter", hint=f"one of {', '.join(_KINDS)}")
    ((kind, value),) = words.items()
    if kind not in _KINDS:
        raise SpecError(f"{kind!r} is not a kind of parameter", hint=did_you_mean(kind, _KINDS))
    if on_log_scale and kind not in _RANGES:
        raise SpecError(f"{plain!r}: only a range has a log scale", hint="leave log out")
    match kind:
        case "choice":
            return Choice(as_values(value), when=when)
        case "constant":
            return Constant(as_value(value), when=when)
        case "machine_type" | "zone" | "on_spot":
            options = () if value == "all" else as_values(value)
            return Choice(options, when=when, role=_ROLES[kind])
        case "machine_count" if not isinstance(value, Sequence) or isinstance(value, str):
            return machine_count(as_whole(value, kind), when=when)
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise SpecError(f"{kind}: {value!r} is not a range", hint=f"give the two ends: {kind}: [low, high]")
    low, high = value
    if kind == "machine_count":
        return machine_count(low, high, when=when)
    if kind in ("int", "integer"):
        return Int(as_whole(low, kind), as_whole(high, kind), on_log_scale, when=when)
    return Float(as_number(low, kind), as_number(high, kind), on_log_scale or kind == "log", when=when)


_RANGES = ("float", "log", "int", "uniform", "integer")
_ROLES = {word: role for role, word in WORDS_OF.items()}
_KINDS = (*_RANGES, "choice", "constant", *_ROLES)
"""Files may use the names of the Python functions as well as the short ones."""


def _refuse_duplicate_roles(params: dict[str, Parameter]) -> None:
    deciding: dict[Role, str] = {}
    for name, param in params.items():
        if param.role and (other := deciding.setdefault(param.role, name)) != name:
            raise SpecError(
                f"space: {other} and {name} are both a {WORDS_OF[param.role]}, and a trial can follow only one",
                hint="leave one of them out",
            )


def _parents_first(params: dict[str, Parameter]) -> dict[str, Parameter]:
    """In the order given, except that a parameter comes after those it depends on."""
    ordered: dict[str, Parameter] = {}
    waiting = dict(params)
    while waiting:
        ready = [name for name, param in waiting.items() if all(parent in ordered for parent in param.when)]
        if not ready:
            raise SpecError(
                f"space: {', '.join(waiting)} depend on each other in a circle",
                hint="a parameter cannot decide whether its own parent exists",
            )
        ordered.update((name, waiting.pop(name)) for name in ready)
    return ordered


def _families(params: dict[str, Parameter]) -> list[list[str]]:
    """Parameters tied together by conditions, each family parents first."""
    family: dict[str, list[str]] = {}
    for name, param in params.items():
        tied = {id(family[parent]): family[parent] for parent in param.when}
        merged = [member for members in tied.values() for member in members] + [name]
        family.update(dict.fromkeys(merged, merged))
    return list({id(members): members for members in family.values()}.values())


def _flagged(param: Parameter) -> bool:
    """Does its encoding include whether it is active? Not for a constant: its parents' encodings include it already."""
    return bool(param.when) and param.width > 0


def _condition(param: Parameter) -> str:
    """A condition as text: "with optimizer sgd or adam"."""
    return "with " + " and ".join(
        f"{parent} {' or '.join(map(repr, allowed))}" for parent, allowed in param.when.items()
    )
