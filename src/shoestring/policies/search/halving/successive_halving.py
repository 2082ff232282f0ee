"""Successive halving: all trials take the first rung, the best 1/eta of them take the next, until one or few are left.

A rung is judged when everybody on it has come to rest; trials that failed, diverged or were dropped count as the worst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.climbing import climb
from shoestring.policies.search.halving.rungs import Ladder, rung_steps, when_all_are_in
from shoestring.policies.search.samplers.protocol import AT_RANDOM, SEARCH_WAKERS, Sampler, planned


@dataclass(frozen=True)
class SuccessiveHalving:
    eta: int = 3
    grace_steps: int = 1
    """The step of the first rung."""
    sampler: Sampler = AT_RANDOM
    """Where new trials come from."""
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        return climb(state, self, self._ladders, self.sampler)

    def _ladders(self, state: RunView) -> list[Ladder]:
        spec = state.spec
        steps = rung_steps(self.grace_steps, self.eta, spec.max_steps)
        return [Ladder(steps, self.eta, planned(spec), when_all_are_in, minimize=spec.direction == "minimize")]
