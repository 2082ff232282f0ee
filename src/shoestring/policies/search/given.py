"""The jobs of a bag: every configuration that was given, each to its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.search.samplers.protocol import SEARCH_WAKERS, given_or_drawn, run_all


@dataclass(frozen=True)
class Given:
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase == "running":
            yield from run_all(state, len(state.spec.given), given_or_drawn, "")
