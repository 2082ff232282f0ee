"""One parameter of a search space: a range, a choice or a constant, as plain data.

Pure. A parameter maps the unit interval onto its values (`at`); sampling and grids choose the points in it.

`when` makes it conditional: `uniform(0.5, 0.99, when={"optimizer": "sgd"})` exists only in configurations whose
optimizer is sgd. It is a keyword rather than a method so that Python and files use the same word.

`role` makes it decide on which machines a trial runs: type, count, zone, spot or on-demand. To user code and to
models it is a parameter like the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, cast

import msgspec

from shoestring.errors import SpecError
from shoestring.values import Config, Value, as_number, as_value, as_values, as_whole

When = Mapping[str, object]
"""Parent parameter -> the value, or the list of values, with which this parameter exists."""

Role = Literal["", "machine", "count", "zone", "spot"]
WORDS_OF: dict[Role, str] = {"machine": "machine_type", "count": "machine_count", "zone": "zone", "spot": "on_spot"}
"""The functions that make parameters with a role, in Python and in files."""

MOST_EXACT = 2**53
"""Integers up to here are exact as floats, which sampling uses."""


class _Param(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="type"):
    when: dict[str, tuple[Value, ...]] = {}
    role: Role = ""
    """Which property of a trial's machines it decides, if any."""

    def active(self, config: Config) -> bool:
        """Does the parameter exist with these values? An absent parent is inactive, and so is its child."""
        return all(parent in config and config[parent] in allowed for parent, allowed in self.when.items())


class Float(_Param, frozen=True, gc=False, tag="float"):
    low: float
    high: float
    log: bool = False

    @property
    def size(self) -> float:
        return math.inf

    @property
    def width(self) -> int:
        """How many numbers `encode` returns."""
        return 1

    def at(self, u: float) -> float:
        if u <= 0.0:
            return self.low
        if u >= 1.0:
            return self.high
        # weights, not low + u * (high - low): the difference of two finite bounds may overflow
        if self.log:
            value = math.exp((1.0 - u) * math.log(self.low) + u * math.log(self.high))
        else:
            value = (1.0 - u) * self.low + u * self.high
        return min(max(value, self.low), self.high)

    def grid(self, points: int) -> list[Value]:
        # twelve digits, so that a log grid reads 0.001 and not 0.0010000000000000002
        rounded = (float(f"{self.at(u):.12g}") for u in _evenly(points))
        return list(dict.fromkeys(min(max(value, self.low), self.high) for value in rounded))

    def encode(self, value: Value) -> list[float]:
        return [_fraction(cast(float, value), self.low, self.high, self.log)]

    def holds(self, value: Value) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def validate(self, field: str) -> None:
        _validate_range(self, float, field)

    def __str__(self) -> str:
        return f"{'log' if self.log else 'uniform'}({self.low!r}, {self.high!r})"


class Int(_Param, frozen=True, gc=False, tag="int"):
    """Whole numbers, both ends included."""

    low: int
    high: int
    log: bool = False

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def width(self) -> int:
        return 1

    def at(self, u: float) -> int:
        if self.log:  # each number has the interval half way to its neighbours
            value = round(math.exp((1.0 - u) * math.log(self.low - 0.5) + u * math.log(self.high + 0.5)))
        else:
            value = self.low + int(u * self.size)
        return min(max(value, self.low), self.high)

    def grid(self, points: int) -> list[Value]:
        if self.size <= points:
            return list(range(self.low, self.high + 1))
        line = Float(self.low, self.high, self.log)
        return list(dict.fromkeys(round(line.at(u)) for u in _evenly(points)))

    def encode(self, value: Value) -> list[float]:
        return [_fraction(cast(int, value), self.low, self.high, self.log)]

    def holds(self, value: Value) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high

    def validate(self, field: str) -> None:
        _validate_range(self, int, field)
        if max(abs(self.low), abs(self.high)) > MOST_EXACT:
            raise SpecError(
                f"{field}: {self} goes beyond 2**53, where whole numbers are not exact any more",
                hint="take a smaller range, or log() if a float will do",
            )

    def __str__(self) -> str:
        kind = WORDS_OF.get(self.role, "integer")
        return f"{kind}({self.low!r}, {self.high!r}{', log=True' if self.log else ''})"


class Choice(_Param, frozen=True, gc=False, tag="choice"):
    options: tuple[Value, ...]
    """Empty only with a role, until the run's market is known: then it is everything offered there."""

    @property
    def size(self) -> int:
        return len(self.options) or 1

    @property
    def width(self) -> int:
        return len(self.options)

    def at(self, u: float) -> Value:
        try:
            return self.options[min(int(u * len(self.options)), len(self.options) - 1)]
        except IndexError:
            raise _without_market(self) from None

    def grid(self, points: int) -> list[Value]:  # noqa: ARG002 - every option is used, however coarse the grid
        if not self.options:
            raise _without_market(self)
        return list(self.options)

    def encode(self, value: Value) -> list[float]:
        return [1.0 if option == value else 0.0 for option in self.options]

    def holds(self, value: Value) -> bool:
        return not self.options or any(_same(value, option) for option in self.options)

    def validate(self, field: str) -> None:
        if not self.options and not self.role:
            raise SpecError(f"{field}: a choice without options", hint="give at least one option, e.g. choice(32, 64)")
        seen: set[Value] = set()
        for option in self.options:
            if as_value(option, field) in seen:
                raise SpecError(f"{field}: {self} has the option {option!r} twice", hint="leave one of them out")
            seen.add(option)

    def __str__(self) -> str:
        return f"{WORDS_OF.get(self.role, 'choice')}({', '.join(map(repr, self.options))})"


class Constant(_Param, frozen=True, gc=False, tag="constant"):
    """Passed to the user's code, invisible to a search."""

    value: Value

    @property
    def size(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return 0

    def at(self, u: float) -> Value:  # noqa: ARG002
        return self.value

    def grid(self, points: int) -> list[Value]:  # noqa: ARG002
        return [self.value]

    def encode(self, value: Value) -> list[float]:  # noqa: ARG002
        return []

    def holds(self, value: Value) -> bool:
        return _same(value, self.value)

    def validate(self, field: str) -> None:
        as_value(self.value, field)

    def __str__(self) -> str:
        return f"constant({self.value!r})"


Parameter = Float | Int | Choice | Constant


def uniform(low: float, high: float, *, when: When | None = None) -> Float:
    """x ~ U(low, high)."""
    return Float(as_number(low, "uniform"), as_number(high, "uniform"), when=as_condition(when))


def log(low: float, high: float, *, when: When | None = None) -> Float:
    """ln x ~ U(ln low, ln high): for learning rates and other scales."""
    return Float(as_number(low, "log"), as_number(high, "log"), log=True, when=as_condition(when))


def integer(low: int, high: int, *, log: bool = False, when: When | None = None) -> Int:
    """A whole number from low to high, both included."""
    return Int(as_whole(low, "integer"), as_whole(high, "integer"), log=log, when=as_condition(when))


def choice(*options: Value, when: When | None = None) -> Choice:
    """One of the options, which have no order; a single list of them works too."""
    return Choice(as_values(options[0] if len(options) == 1 else options, "choice"), when=as_condition(when))


def constant(value: Value, *, when: When | None = None) -> Constant:
    """The same value in every configuration."""
    return Constant(as_value(value, "constant"), when=as_condition(when))


def machine_type(*names: str, when: When | None = None) -> Choice:
    """The type of a trial's machines: one of those named, or of all in the run's market."""
    return Choice(_listed(names, "machine_type"), when=as_condition(when), role="machine")


def machine_count(low: int, high: int | None = None, *, when: When | None = None) -> Int | Constant:
    """How many machines a trial runs on, all of one type in one zone; a single number for all trials alike."""
    least = as_whole(low, "machine_count")
    most = least if high is None else as_whole(high, "machine_count")
    if least == most:
        return Constant(least, when=as_condition(when), role="count")
    return Int(least, most, when=as_condition(when), role="count")


def zone(*names: str, when: When | None = None) -> Choice:
    """Where a trial's machines are: one of the zones named, or of all in the run's market."""
    return Choice(_listed(names, "zone"), when=as_condition(when), role="zone")


def on_spot(*options: bool, when: When | None = None) -> Choice:
    """Spot machines (True) or on-demand ones (False)? Without options both, as far as the market has them."""
    return Choice(_listed(options, "on_spot"), when=as_condition(when), role="spot")


def _listed(options: tuple[object, ...], field: str) -> tuple[Value, ...]:
    """As for a choice, a single list of them works too."""
    return as_values(options[0] if len(options) == 1 else options, field)


def as_condition(when: object) -> dict[str, tuple[Value, ...]]:
    """A condition as users write it (a value or a list of values for each parent), normalised."""
    if when is None:
        return {}
    if not isinstance(when, Mapping):
        raise SpecError(f"when={when!r} does not name a parameter", hint="write it as when={'optimizer': 'sgd'}")
    return {str(parent): as_values(allowed, f"when {parent}") for parent, allowed in when.items()}


def _evenly(points: int) -> list[float]:
    return [0.5] if points == 1 else [index / (points - 1) for index in range(points)]


def _fraction(value: float, low: float, high: float, log: bool) -> float:
    """Where in the range the value lies, from 0 to 1. Halved, since the difference of finite bounds may overflow."""
    if log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    span = high / 2 - low / 2
    return min(max((value / 2 - low / 2) / span, 0.0), 1.0) if span else 0.0  # bounds so close that halves are equal


def _same(value: Value, option: Value) -> bool:
    """Equal, and the same on a command line: in Python True == 1."""
    return value == option and isinstance(value, bool) == isinstance(option, bool)


def validate_role(param: Parameter, field: str) -> None:
    """Raises SpecError if the values do not suit the role."""
    match param.role, param:
        case "", _:
            return
        case "count", Int(low=least) | Constant(value=int(least)) if not isinstance(least, bool):
            if least < 1:
                raise SpecError(f"{field}: a trial cannot run on {least} machines", hint="the fewest is 1")
        case "count", _:
            raise SpecError(f"{field}: {param} is not a number of machines", hint="write it as machine_count(1, 4)")
        case "spot", Choice(options=options) if all(isinstance(option, bool) for option in options):
            return
        case "spot", _:
            raise SpecError(f"{field}: {param} is not true or false", hint="write it as on_spot(True, False)")
        case role, Choice(options=options) if all(isinstance(option, str) and option for option in options):
            return
        case role, _:
            raise SpecError(f"{field}: {param} names no {role}", hint=f"write it as {WORDS_OF[role]}('...', '...')")


def _without_market(param: Choice) -> SpecError:
    return SpecError(f"{param} means everything in the market, and there is no market here", hint="name the options")


def _validate_range(param: Float | Int, kind: type, field: str) -> None:
    low, high = param.low, param.high
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, int | kind) or not math.isfinite(bound):
            raise SpecError(f"{field}: {param} has the bound {bound!r}", hint="both bounds must be finite numbers")
    if low == high:
        raise SpecError(f"{field}: {param} is a range of one value", hint=f"write constant({low!r})")
    if low > high:
        raise SpecError(f"{field}: {param} is empty, {low!r} being above {high!r}", hint="put the lower bound first")
    if param.log and low <= 0:
        raise SpecError(
            f"{field}: {param} starts at {low!r}, and a log range must start above 0",
            hint="raise the lower bound, or use a linear range",
        )
