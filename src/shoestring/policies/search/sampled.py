"""Every trial to its end, each drawn by a sampler that may have learned from those before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.search.samplers.protocol import SEARCH_WAKERS, Sampler, has_room, planned, run_whole, supplied


@dataclass(frozen=True)
class Sampled:
    """Unlike random search it draws nothing ahead of the places there are: whoever is drawn later knows more."""

    sampler: Sampler
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        count = planned(state.spec)
        while state.phase == "running" and has_room(state) and (number := len(state.jobs)) < count:
            job = state.next_job()
            yield from run_whole(state, job, supplied(state, number, job, self.sampler), f"{number + 1} of {count}")
