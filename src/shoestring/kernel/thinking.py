"""Slow questions: pure functions registered by name, so that a journal can say what was asked without holding code."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from shoestring.errors import PolicyError

Thinker = Callable[[Any], Any]
_THINKERS: dict[str, Thinker] = {}


def thinker(function: Thinker) -> Thinker:
    """Register a pure function of plain JSON data as "module:name"."""
    _THINKERS[f"{function.__module__}:{function.__qualname__}"] = function
    return function


def question(function: Thinker) -> str:
    """The name under which `Think` asks a registered function."""
    name = f"{function.__module__}:{function.__qualname__}"
    if name not in _THINKERS:
        raise PolicyError(f"{name} is asked as a Think but is not registered", hint="decorate it with @thinker")
    return name


def answer(name: str, given: Any) -> Any:
    """Run a registered function, importing its module if this is a fresh process. Never runs anything unregistered."""
    if name not in _THINKERS:
        importlib.import_module(name.partition(":")[0])
    if name not in _THINKERS:
        raise PolicyError(f"{name} is not a registered thinker")
    return _THINKERS[name](given)
