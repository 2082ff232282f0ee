"""How the command line changes the calls of a study file: `shoestring run study.py --budget 20` overrides the 10 in it.

The file is run unchanged; `tune` and `run_bag` look up the options of the command line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from shoestring.report.study import Study

if TYPE_CHECKING:
    from shoestring.specs.request import RunRequest


def _silent(text: str) -> None:
    """A call from a Python program prints nothing."""


@dataclass(frozen=True)
class CliContext:
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Fields given on the command line; they win over those in the file."""
    mode: Literal["run", "simulate"] = "run"
    handler: Callable[[RunRequest], Study] | None = None
    """Called with each request, instead of running or simulating it."""
    say: Callable[[str], None] = _silent
    loading_since: float | None = None
    """When the study file began to run, on the monotonic clock: until its first call it does what every worker does."""
    studies: list[Study] = field(default_factory=list)
    """The results of the calls, in order."""


_current: ContextVar[CliContext | None] = ContextVar("cli_context", default=None)


def current_context() -> CliContext:
    """The context a file is run in; an empty one outside the command line."""
    return _current.get() or CliContext()


@contextmanager
def cli_context(context: CliContext) -> Iterator[CliContext]:
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)
