"""Random search: as many trials as asked for, drawn from the space, each to its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.search.samplers.protocol import SEARCH_WAKERS, given_or_drawn, planned, run_all


@dataclass(frozen=True)
class RandomSearch:
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase == "running":
            yield from run_all(state, planned(state.spec), given_or_drawn, "drawn at random")
