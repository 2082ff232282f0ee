"""The options of a recipe, read once and strictly: what is misspelt or out of range is said, never ignored."""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.errors import SpecError
from shoestring.kernel.spec import RunSpec
from shoestring.units import parse_duration_s
from shoestring.values import as_number, as_whole, did_you_mean


class Options:
    """Ask for each option by name, then `finish()`: whatever nobody asked for is an error."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        """What they belong to."""
        self._recipe = spec.recipe
        self._given = spec.options
        self._known: list[str] = []

    def asked(self, name: str) -> bool:
        """Is it given at all? It then has to be asked for, or refused."""
        self._known.append(name)
        return name in self._given

    def word(self, name: str, known: Sequence[str]) -> str:
        """One of some words; the first is the default."""
        value = self._take(name, known[0])
        if value not in known:
            raise SpecError(f"options.{name}={value!r} is unknown", hint=did_you_mean(value, known))
        return str(value)

    def text(self, name: str, default: str) -> str:
        value = self._take(name, default)
        if not isinstance(value, str):
            raise SpecError(f"options.{name}={value!r} is no text", hint="write it in quotes")
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
            raise SpecError(f"options.{name}={value:g} is no share", hint=f"it must be from {least:g} to {most:g}")
        return value

    def seconds(self, name: str, default: float) -> float:
        seconds = parse_duration_s(self._take(name, default), f"options.{name}")
        if seconds <= 0:
            raise SpecError(f"options.{name}={self._given.get(name)!r} is no time at all", hint='e.g. 900 or "15m"')
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
