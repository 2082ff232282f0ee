"""What the command line wants of the calls a file makes: `shoestring run study.py --budget 20` overrides the 10 in it.

A file is run as it is; `tune` and `run_bag` ask here whether somebody at the prompt has said otherwise.
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


def _say_nothing(text: str) -> None:
    """In a program of their own, people print what they want to see."""


@dataclass(frozen=True)
class CliContext:
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Fields given on the command line; they win over those in the file."""
    mode: Literal["run", "simulate"] = "run"
    handler: Callable[[RunRequest], Study] | None = None
    """What is done with what a call asks for, in the place of running or simulating it."""
    say: Callable[[str], None] = _say_nothing
    studies: list[Study] = field(default_factory=list)
    """What the calls came to, in order."""


_current: ContextVar[CliContext | None] = ContextVar("prompt", default=None)


def current_context() -> CliContext:
    """The prompt a file is run from, or one at which nobody has said anything."""
    return _current.get() or CliContext()


@contextmanager
def cli_context(prompt: CliContext) -> Iterator[CliContext]:
    token = _current.set(prompt)
    try:
        yield prompt
    finally:
        _current.reset(token)
