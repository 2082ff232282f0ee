"""User values, from Python or from a file, converted for JSON, command lines and the environment.

Pure. A bad value raises a SpecError that names the field and the value; `field` is the user's name for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from shoestring.errors import SpecError

Value = str | int | float | bool | None
Config = dict[str, Value]


def as_value(plain: object, field: str = "value") -> Value:
    """A value of a configuration."""
    value = _unwrapped(plain)
    match value:
        case None | bool():
            fits = True
        case int():
            fits = -(2**63) <= value < 2**63
        case float():
            fits = math.isfinite(value)
        case str():
            fits = not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value)
        case _:
            fits = False
    if not fits:
        raise SpecError(
            f"{field}: {plain!r} cannot be the value of a parameter",
            hint="values are text, finite 64-bit numbers, true, false or null; pass anything larger by name",
        )
    return cast(Value, value)


def as_values(plain: object, field: str = "values") -> tuple[Value, ...]:
    """The values of a list, tuple, range or array, or one value alone. A set is refused: it has no lasting order."""
    plain = _unwrapped(plain)
    if isinstance(plain, Sequence) and not isinstance(plain, str | bytes):
        return tuple(as_value(value, field) for value in plain)
    return (as_value(plain, field),)


def as_number(plain: object, field: str = "number") -> float:
    """A float. Text is parsed too, because common YAML readers take 1e-4 for text."""
    value = _unwrapped(plain)
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise SpecError(f"{field}: {plain!r} is not a number", hint="write it as 0.001 or 1e-3")


def as_whole(plain: object, field: str = "number") -> int:
    value = _unwrapped(plain)
    if type(value) is int:
        return value
    number = as_number(value, field)
    if not number.is_integer():
        raise SpecError(f"{field}: {plain!r} is not a whole number", hint="leave the fraction out")
    return int(number)


def as_fraction(plain: object, field: str = "fraction") -> float:
    """A data fraction, above 0 and up to 1. Text may be a ratio, "1/16": files have no other way to write it."""
    over, slash, under = plain.partition("/") if isinstance(plain, str) else ("", "", "")
    try:
        value = as_number(over, field) / as_number(under, field) if slash else as_number(plain, field)
    except (SpecError, ZeroDivisionError):
        value = math.nan
    if not 0.0 < value <= 1.0:
        raise SpecError(
            f"{field}: {plain!r} is not a data fraction",
            hint='fractions lie above 0 and up to 1: write one as 0.25 or "1/4"',
        )
    return value


def as_fractions(plain: object, field: str = "fractions") -> tuple[float, ...]:
    """Data fractions, ascending, without duplicates. 1 is always added, because the objective is defined on all of the
    data; empty if none are given."""
    listed = _unwrapped(plain)
    if isinstance(listed, str | Mapping) or not isinstance(listed, Iterable):
        raise SpecError(f"{field}={plain!r} is not a list of fractions", hint=f"write it as {field}=[1/16, 1/4, 1]")
    fractions = {as_fraction(value, field) for value in listed}
    return tuple(sorted({1.0, *fractions})) if fractions else ()


def is_reference(name: str) -> bool:
    """Is this a reference implementation: a paper's method exactly as printed, to compare with? Listed apart, and not
    in hints: a user who looks for a name wants one that works well."""
    return name.endswith("_as_printed")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The hint for an unknown name: similar known names, else all of them."""
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(str(word), names, n=2, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known: {', '.join(names)}" if names else "there are none"


def _unwrapped(plain: object) -> object:
    """numpy's scalars and arrays as Python's own."""
    return plain.tolist() if hasattr(plain, "tolist") else plain
