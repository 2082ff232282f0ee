"""A table of names whose values are imported on first use: a run needs one recipe, not the modules of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


class LazyTable(Mapping[str, T]):
    """Names are known at once, a value when it is looked up: from "module:attribute"."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> T:
        module, _, attribute = self._homes[name].partition(":")
        value: T = getattr(import_module(module), attribute)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._homes  # Mapping's would import the module

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)
