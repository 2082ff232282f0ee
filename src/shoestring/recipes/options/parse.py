"""The options of a recipe, read once and strictly: a misspelt or out-of-range option is an error, never ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import filterfalse

from shoestring.errors import SpecError
from shoestring.kernel.spec import RunSpec
from shoestring.units import parse_duration_s
from shoestring.values import Value, as_number, as_whole, did_you_mean, is_reference

_FORMER_VALUES = {("placement", "as_printed"): "spottune_as_printed"}
"""Values that were renamed: (option, former value). Accepted, but neither documented nor shown in hints."""


def with_current_values(options: Mapping[str, Value]) -> dict[str, Value]:
    """The options with current names for values that were renamed. A new run records these; an old run may have
    recorded the former ones, so two runs are compared by them."""
    return {name: _current(name, value) for name, value in options.items()}


def _current(name: str, value: Value) -> Value:
    return _FORMER_VALUES.get((name, value), value) if isinstance(value, str) else value


class Options:
    """Read each option by name, then call `finish()`: an option that was not read is an error."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        """The spec they belong to."""
        self._recipe = spec.recipe
        self._given = with_current_values(spec.options)
        self._known: list[str] = []

    def is_given(self, name: str) -> bool:
        """Is it given at all? Then the caller must read it, or refuse it."""
        self._known.append(name)
        return name in self._given

    def word(self, name: str, known: Sequence[str]) -> str:
        """One of the known values; the first is the default."""
        value = self._take(name, known[0])
        if value not in known:
            raise SpecError(
                f"options.{name}={value!r} is unknown", hint=did_you_mean(value, filterfalse(is_reference, known))
            )
        return str(value)

    def text(self, name: str, default: str) -> str:
        value = self._take(name, default)
        if not isinstance(value, str):
            raise SpecError(f"options.{name}={value!r} is not text", hint="write it in quotes")
        return value

    def whole(self, name: str, default: int, *, least: int) -> int:
        value = as_whole(self._take(name, default), f"options.{name}")
        if value < least:
            raise SpecError(f"options.{name}={value} is too small", hint=f"it must be at least {least}")
        return value

    def number(self, name: str, default: float) -> float:
        return as_number(self._take(name, default), f"options.{name}")

    def share(self, name: str, default: float, *, least: float = 0.0, most: float = 1.0) -> float:
        value = as_number(self._take(name, default), f"options.{name}")
        if not least <= value <= most:
            raise SpecError(f"options.{name}={value:g} is out of range", hint=f"it must be from {least:g} to {most:g}")
        return value

    def seconds(self, name: str, default: float) -> float:
        seconds = parse_duration_s(self._take(name, default), f"options.{name}")
        if seconds <= 0:
            raise SpecError(
                f"options.{name}={self._given.get(name)!r} is not a positive time", hint='e.g. 900 or "15m"'
            )
        return seconds

    def finish(self) -> None:
        for name in self._given:
            if name not in self._known:
                raise SpecError(
                    f"options.{name}={self._given[name]!r}: the recipe {self._recipe} has no such option",
                    hint=did_you_mean(name, self._known),
                )

    def _take(self, name: str, default: object) -> object:
        self._known.append(name)
        return self._given.get(name, default)
