"""What the command line wants of the calls a file makes: `shoestring run study.py --budget 20` overrides the 10 in it.

A file is run as it is; `tune` and `run_bag` ask here whether somebody at the prompt has said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from shoestring.study import Study


def _say_nothing(text: str) -> None:
    """In a program of their own, people print what they want to see."""


@dataclass(frozen=True)
class Session:
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Fields given on the command line; they win over those in the file."""
    mode: Literal["run", "simulate"] = "run"
    say: Callable[[str], None] = _say_nothing
    studies: list[Study] = field(default_factory=list)
    """What the calls came to, in order."""


_current: ContextVar[Session | None] = ContextVar("session", default=None)


def current_session() -> Session:
    """The session a file is run in, or one in which nobody has said anything."""
    return _current.get() or Session()


@contextmanager
def at_the_prompt(session: Session) -> Iterator[Session]:
    token = _current.set(session)
    try:
        yield session
    finally:
        _current.reset(token)
